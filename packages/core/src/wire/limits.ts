/**
 * Every limit of the wire, each with its reason. A request that exceeds one is refused; nothing is truncated to fit.
 * Units are in the names. A test checks each limit, and one more than the limit.
 */
export const limits = {
  /** A tool call with the facts of 10,000 payees is under 200 KB. Each open request keeps its body in memory. */
  bodyBytesMax: 262_144,
  /** Deeper than any argument in recorded agent sessions, and far from the end of the call stack. */
  jsonDepthMax: 64,
  /** Objects and arrays of one body: an empty object takes 3 bytes to send and 200 bytes of memory. */
  jsonContainersMax: 10_000,
  /** Enough for any amount in the smallest unit of any currency; keeps exact arithmetic cheap. */
  numberDigitsMax: 40,
  /** Enough for every IEEE 754 double; 10^400 stays within the 4,096 bits that a contract may compute with. */
  numberExponentMax: 400,
  /** Names are compared, indexed and shown. No tool name in the MCP registries has 256 bytes. */
  toolNameBytesMax: 256,
  /** Other names of one tool in a contract: more than all known agent hosts have for one of their tools. */
  toolAliasesMax: 64,
  sessionIdBytesMax: 256,
  /** Values quoted in a reason: enough to recognise, too short to hide text that misleads a reviewer. */
  quotedCharactersMax: 64,
  receiptsLimitDefault: 50,
  /** A page is built in memory before it is sent. */
  receiptsLimitMax: 1000,
  /** If a body is incomplete after this time, its sender is stuck or hostile. */
  bodyTimeoutMs: 10_000,
  /** If an answer is not read completely after this time, its reader is stuck or hostile. */
  answerTimeoutMs: 15_000,
  /** How long a connection stays open after a refusal that ends it: its sender can read the refusal. */
  lingerMs: 2000,
  /** Requests on one connection that wait for answers. Few clients send a second one before the first answer. */
  pipelinedMax: 32,
  /** Headers contain one key and little else. */
  headerBytesMax: 16_384,
  /** Calls that wait for a verdict: bounds their memory, where each has more than its body. */
  queueCallsMax: 10_000,
  /** The bodies of waiting calls, over all tenants of a process: bounds memory whatever the callers send. */
  queueBytesMax: 33_554_432,
  /** A call with fewer before it is never refused for its wait: they share one batch, however long that takes. */
  queueCallsMin: 64,
  /** Refusals sent per second. A refusal costs as much as an answer; this many take a twentieth of the time. */
  refusalsPerSecond: 500,
  /** If there are more refusals than that, one waits at most this long: callers wait only a few seconds. */
  refusalWaitMs: 2000,
  /** Refusals that wait to be sent: two for each connection, at the default number of connections. */
  refusalsWaitingMax: 8192,
  /**
   * Rows decided together, while the store is quick. A ledger reads no more calls than fit in a batch from keys with their
   * share of them: with 1,024 calls in memory each cost a third more.
   */
  quickBatchCallsMax: 128,
  /** Rows decided together if they wait for the store: they share one flush, and block the ledger's head for a bounded time. */
  batchCallsMax: 512,
  /** Counter values read and updated by the calls of one batch: bounds its time if many calls remember many values. */
  batchEventsMax: 4096,
  /** The bodies of one batch: a call of 256 KiB takes as long as 50 small ones, and a key with small ones waits for it. */
  batchBytesMax: 2_097_152,
  /** How long an exact repeat of a check gets the recorded answer: longer than any client retries a lost answer. */
  repeatWithinMs: 600_000,
  /** How long one request may wait for a decision: below the time after which most clients and proxies give up. */
  waitSecondsMax: 55,
  /** Evaluations of one AuthZEN request: as many as fit in an empty queue and share a batch. */
  evaluationsMax: 64,
  /** Requests of one key that wait for a decision. Those of all keys use at most a quarter of the connections. */
  waitersOfKeyMax: 64,
  /** Open streams of events of one key. Those of all keys use at most a quarter of the connections. */
  streamsOfKeyMax: 64,
  /** The body of a sign-in to the console, which the gate reads before it knows a key: a key, a code and their names. */
  signInBodyBytesMax: 4096,
  /** Sign-ins of one key, and then one a minute: each session can end with a row in the root's ledger. */
  signInsOfKeyMax: 30,
  /** Explanations of one gate: compiling a contract takes up to half a second of a processor. */
  explainsPerSecond: 2,
  explainsBurst: 20,
  /** Explanations that a process makes at once, each in a thread of its own, with up to 256 MB. Fewer on few processors. */
  explainsMax: 4,
  /** Rows of one report: a few seconds of reading. The command `svc-gate report` has no such limit. */
  reportRowsMax: 100_000,
  /** Short reads, such as a page of receipts, that run at once for a key. Others wait, so a few slices are in memory. */
  readsOfKeyMax: 2,
  readsOfTenantMax: 4,
  /** Long reads, such as a report. They have places of their own, so that no short read waits for minutes. */
  longReadsOfKeyMax: 1,
  longReadsOfTenantMax: 2,
  /** Reads that wait for a place: a waiting request takes some kilobytes. */
  readsWaitingOfKeyMax: 256,
  readsWaitingMax: 2048,
} as const;
