/**
 * Every limit of the wire, each with its reason. A request past one is refused whole; nothing is cut to fit.
 * Units are in the names. A test stands at each limit and one past it.
 */
export const limits = {
  /** A tool call with a snapshot of 10,000 payees is under 200 KB; a body is held in memory, once per open request. */
  bodyBytesMax: 262_144,
  /** Deeper than any argument seen in recorded agent sessions; keeps recursion far from the stack's end. */
  jsonDepthMax: 64,
  /** Objects and arrays of one body: an empty object takes 3 bytes to send and 200 to hold. */
  jsonContainersMax: 10_000,
  /** Holds any amount in any currency's smallest unit; keeps exact arithmetic cheap. */
  numberDigitsMax: 40,
  /** Holds every IEEE 754 double; 10^400 stays within the 4,096 bits that a contract may compute with. */
  numberExponentMax: 400,
  /** Names are compared, indexed and shown; 256 bytes is over every tool name of the MCP registries. */
  toolNameBytesMax: 256,
  sessionIdBytesMax: 256,
  /** Values quoted in a reason: enough to recognise, too few to hide text that steers a reviewer. */
  quotedCharactersMax: 64,
  receiptsLimitDefault: 50,
  /** A page is built in memory before it is sent. */
  receiptsLimitMax: 1000,
  /** A body that is still not here after this is a stuck or hostile sender. */
  bodyTimeoutMs: 10_000,
  /** An answer that is not read to its end after this is held by a stuck or hostile reader. */
  answerTimeoutMs: 15_000,
  /** Headers carry one key and little else. */
  headerBytesMax: 16_384,
  /** Calls waiting for a verdict: at the measured rate a second's work, after which a caller is better told. */
  queueCallsMax: 10_000,
  /** Their bodies together, over all tenants of a process: bounds memory whatever the callers send. */
  queueBytesMax: 33_554_432,
  /** So few calls always find room: they share one batch, whatever it takes. */
  lineCallsMin: 64,
  /** A call waits no longer than this for those before it, after which a caller is better told: a burst passes. */
  lineBurstMs: 250,
  /**
   * Where a load stays, all wait for the longest line that there was: calls past this wait are refused instead. 8 and 12
   * refused calls of 256 connections that waited for each answer, and had no better throughput at four times the load.
   */
  lineStandingMs: 25,
  /** What the gate was busy with so long ago is a third as much to what it calls a load that stays. */
  lineBurstFadeMs: 100,
  /** Refusals sent in a second: each costs what an answer does, and these a twentieth of the time. */
  refusalsPerSecond: 500,
  /** Where that many are too few, one waits no longer than this: a caller's patience is some seconds. */
  refusalWaitMs: 2000,
  /** Refusals that wait to be sent: two for each connection that there may be by default. */
  refusalsWaitingMax: 8192,
  /** Rows decided together: one flush for all, and a bounded time in which the ledger's head is held. */
  batchCallsMax: 512,
  /** Counters asked and moved by the calls of one batch: many calls with many values to remember share the time. */
  batchEventsMax: 4096,
} as const;
