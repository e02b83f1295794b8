/** Figures measured on one machine: milliseconds, bytes. `measured.ts` names the date and the machine. */
export interface Figures {
  /** A gate's processor time for one check. */
  readonly gateMsPerCheck: number;
  /**
   * The duration of a batch without rows on one ledger alone, from the request for the head's lock to the answer to
   * COMMIT.
   */
  readonly cycleMs: number;
  /** The additional time for each row. */
  readonly cycleMsPerRow: number;
  /** The database's processor time for a batch, and for each of its rows, on the node that has the rows. */
  readonly databaseMsPerBatch: number;
  readonly databaseMsPerRow: number;
  /** The same on the node that the gate talks to, if that is another one. */
  readonly coordinatorMsPerBatch: number;
  readonly coordinatorMsPerRow: number;
  /** The size of a check's rows in all tables and their indexes, on disk. */
  readonly bytesPerCheck: number;
}

/** The load of the system, and its design. */
export interface Question {
  readonly checksPerSecond: number;
  readonly tenants: number;
  /** The exponent of Zipf's law: the tenant of rank r has a load in proportion to r to the power of minus this. */
  readonly skew: number;
  /** The planned maximum use of a gate or a node. */
  readonly busiest: number;
  /** The planned maximum use of one ledger, before its tenant is split. */
  readonly fullest: number;
  readonly coresPerNode: number;
  /** The maximum number of rows in a batch, as in the gate. */
  readonly batchMax: number;
  /** Gates that serve one ledger: 1 if the balancer sends a ledger's calls to one of them. */
  readonly gatesPerLedger: number;
}

export interface PlannedLedger {
  readonly id: number;
  /** The rank of its tenant, from 1: the largest load first. */
  readonly rank: number;
  readonly checksPerSecond: number;
}

export interface Plan {
  /** The checks a second that one ledger can serve, however long calls wait. */
  readonly ledgerBears: number;
  readonly ledgers: readonly PlannedLedger[];
  /** The gate of each ledger. */
  readonly gateOf: readonly number[];
  /** The number of tenants with more than one ledger. */
  readonly split: readonly { readonly rank: number; readonly checksPerSecond: number; readonly ledgers: number }[];
  readonly gates: number;
  readonly shards: number;
  /** The nodes that have rows. */
  readonly workers: number;
  /** The nodes that gates talk to, if the rows are on others. */
  readonly coordinators: number;
  readonly busiestGate: number;
  readonly busiestWorker: number;
}

/** Returns how many gates, shards and nodes the load needs, with ledgers placed by hash and no manual placement. */
export function makePlan(question: Question, figures: Figures): Plan {
  const ledgerBears = bears(question, figures);
  const { ledgers, split } = spread(question, ledgerBears);
  const gates = assignToGates(ledgers, question, figures);
  const perNode = question.busiest * question.coresPerNode;
  const workers = fewest(
    (count) => busiestOf(ledgers, (id) => workerOf(id, shardsFor(count), count), rowsLoad(question, figures)),
    perNode,
  );
  const talk = ledgers.reduce((sum, ledger) => sum + talkLoad(question, figures)(ledger), 0);
  return {
    ledgerBears,
    ledgers,
    split,
    gateOf: gates.gateOf,
    gates: gates.loads.length,
    shards: shardsFor(workers.count),
    workers: workers.count,
    coordinators: Math.ceil(talk / perNode),
    busiestGate: Math.max(...gates.loads),
    busiestWorker: workers.load / question.coresPerNode,
  };
}

/** Returns the most checks a second, for tenants of these sizes, that the node with the rows can serve. */
export function largestFor(question: Question, figures: Figures): number {
  const fits = (checksPerSecond: number): boolean => {
    const { ledgers } = spread({ ...question, checksPerSecond }, bears(question, figures));
    const loads = ledgers.map(rowsLoad(question, figures));
    return loads.reduce((sum, load) => sum + load, 0) <= question.busiest * question.coresPerNode;
  };
  let [low, high] = [0, 10_000_000];
  while (high - low > low / 1000 + 1) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** Returns the lower limit: full batches one after another, or one gate's whole processor. */
function bears({ batchMax }: Question, { cycleMs, cycleMsPerRow, gateMsPerCheck }: Figures): number {
  return 1000 * Math.min(batchMax / (cycleMs + cycleMsPerRow * batchMax), 1 / gateMsPerCheck);
}

/** Distributes tenants over ledgers: one each, or more if one ledger would be too full. */
function spread(question: Question, ledgerBears: number): Pick<Plan, "ledgers" | "split"> {
  const weights = Array.from({ length: question.tenants }, (_, at) => (at + 1) ** -question.skew);
  const unit = question.checksPerSecond / weights.reduce((sum, weight) => sum + weight, 0);
  const ledgers: PlannedLedger[] = [];
  const split: Plan["split"][number][] = [];
  for (const [at, weight] of weights.entries()) {
    const checksPerSecond = weight * unit;
    const parts = Math.ceil(checksPerSecond / (ledgerBears * question.fullest));
    for (let part = 0; part < parts; part += 1)
      ledgers.push({ id: ledgers.length, rank: at + 1, checksPerSecond: checksPerSecond / parts });
    if (parts > 1) split.push({ rank: at + 1, checksPerSecond, ledgers: parts });
  }
  return { ledgers, split };
}

type Load = (ledger: PlannedLedger) => number;

/** Returns the number of processors that a ledger keeps busy. */
function gateLoad({ gateMsPerCheck }: Figures): Load {
  return ({ checksPerSecond }) => (checksPerSecond / 1000) * gateMsPerCheck;
}

function rowsLoad(question: Question, figures: Figures): Load {
  return ({ checksPerSecond }) =>
    (batchesPerSecond(checksPerSecond, question, figures) * figures.databaseMsPerBatch +
      checksPerSecond * figures.databaseMsPerRow) /
    1000;
}

function talkLoad(question: Question, figures: Figures): Load {
  return ({ checksPerSecond }) =>
    (batchesPerSecond(checksPerSecond, question, figures) * figures.coordinatorMsPerBatch +
      checksPerSecond * figures.coordinatorMsPerRow) /
    1000;
}

/** Calls that arrive during a commit form the next batch: n = load * (cycle + row * n), and at least one row. */
function batchesPerSecond(checksPerSecond: number, { batchMax }: Question, figures: Figures): number {
  const perMs = checksPerSecond / 1000;
  const waiting = 1 - perMs * figures.cycleMsPerRow;
  const rows = waiting <= 0 ? batchMax : (perMs * figures.cycleMs) / waiting;
  return checksPerSecond / Math.min(batchMax, Math.max(1, rows));
}

interface Placement {
  readonly gateOf: readonly number[];
  readonly loads: readonly number[];
}

/** Returns the fewest gates on which all ledgers fit. */
function assignToGates(ledgers: readonly PlannedLedger[], { busiest }: Question, figures: Figures): Placement {
  const load = gateLoad(figures);
  const total = ledgers.reduce((sum, ledger) => sum + load(ledger), 0);
  if (ledgers.some((ledger) => load(ledger) > busiest))
    throw new Error("one ledger alone is more than a gate may have");
  for (let count = Math.ceil(total / busiest); ; count += 1) {
    const placement = assignTo(count, ledgers, load, busiest);
    if (placement !== undefined) return placement;
  }
}

/** Hashing with bounded loads, as in balancers: a full gate passes a ledger on to the next. */
function assignTo(count: number, ledgers: readonly PlannedLedger[], load: Load, most: number): Placement | undefined {
  const loads = Array.from({ length: count }, () => 0);
  const gateOf: number[] = [];
  for (const ledger of ledgers) {
    const first = scatter(ledger.id) % count;
    const found = loads.findIndex((_, step) => (loads[(first + step) % count] ?? 0) + load(ledger) <= most);
    if (found === -1) return undefined;
    const gate = (first + found) % count;
    loads[gate] = (loads[gate] ?? 0) + load(ledger);
    gateOf.push(gate);
  }
  return { gateOf, loads };
}

function fewest(load: (count: number) => number, most: number): { readonly count: number; readonly load: number } {
  for (let count = 1; count < 10_000; count += 1) {
    const found = load(count);
    if (found <= most) return { count, load: found };
  }
  throw new Error("one ledger alone is more than a node may have");
}

function busiestOf(ledgers: readonly PlannedLedger[], gateOf: (id: number) => number, load: Load): number {
  const loads: number[] = [];
  for (const ledger of ledgers) {
    const at = gateOf(ledger.id);
    loads[at] = (loads[at] ?? 0) + load(ledger);
  }
  return loads.reduce((most, next) => Math.max(most, next ?? 0), 0);
}

export function workerOf(id: number, shards: number, workers: number): number {
  return (scatter(id + 0x5bd1e995) % shards) % workers;
}

/** Eight shards or more for each node: an added node takes some of each. */
function shardsFor(workers: number): number {
  return 2 ** Math.ceil(Math.log2(8 * workers));
}

/** Returns an even 32-bit hash of a number: the finish of MurmurHash3 (Appleby, public domain). */
function scatter(id: number): number {
  let hash = id >>> 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
