/** A row as an engine keeps it. The columns beside leaf and evidence are for look-up; verification compares them. */
export interface StoredRow {
  readonly seq: number;
  readonly leaf: string;
  readonly evidence: string;
  readonly session: string | null;
  /** The tool's name as it was sent. */
  readonly tool: string;
  readonly verdict: string;
}

/** What a call adds to a counter, under digests: no plain value is kept. */
export interface StoredEffect {
  readonly seq: number;
  readonly at: number;
  readonly counter: string;
  readonly key: string;
  /** A decimal, not negative. */
  readonly amount: string;
}

export interface StoredLookup {
  readonly counter: string;
  readonly key: string;
  /** Milliseconds: events at or before it do not count. */
  readonly after: number;
}

export interface StoredHead {
  readonly seq: number;
  readonly leaf: string;
}

/** One counter definition that the ledger keeps the events of. */
export interface StoredCounter {
  readonly digest: string;
  readonly definition: string;
  /** The last row folded into it while it was not in force; null while it is kept up with every row. */
  readonly through: number | null;
  /** Milliseconds: a window that reaches back to it lacks what it needs; -1 when nothing is lacking. */
  readonly unknownThrough: number;
}

export interface RowQuery {
  /** Rows below this one; newest first. */
  readonly before: number;
  readonly limit: number;
  readonly session?: string | undefined;
  readonly tool?: string | undefined;
  readonly verdict?: string | undefined;
}

/** Some rows, newest first. */
export interface RowSlice {
  readonly rows: readonly StoredRow[];
  /** Where to go on: rows below it were not looked at; 0 when there are none. */
  readonly next: number;
}

/** Where a ledger stops being what it says. */
export interface Broken {
  readonly seq: number;
  readonly problem: string;
  readonly expected: string;
  readonly found: string;
}

/** What a ledger says of itself to one that only reads it. */
export interface StoredHistory {
  readonly log: string;
  /** The secret under which counter keys are digested, 64 hex digits. */
  readonly counterSecret: string;
  /** The number of its last row; 0 when there is none. */
  readonly rows: number;
}

/** A row that something other than the walked file knows. */
export interface Anchor {
  readonly seq: number;
  readonly hash: string;
  /** Who says so, for the report: `head pin`. */
  readonly by: string;
}

export interface Verification {
  readonly log: string;
  readonly rows: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly broken: Broken | undefined;
}

export interface OpenedStore {
  /** The ledger's name, fixed when it was created. */
  readonly log: string;
  readonly created: boolean;
  /** The secret under which counter keys are digested, 64 hex digits. */
  readonly counterSecret: string;
  readonly head: StoredHead | undefined;
  readonly counters: readonly StoredCounter[];
}

/**
 * The whole of what a storage engine must do. One owner; one batch at a time.
 *
 * An engine MUST make a batch durable, whole and in order, before `commit` resolves; MUST reject with `NotKept` only
 * when it is proven that nothing of the batch was kept; MUST refuse a second owner while the first lives; MUST NOT
 * write twice, lose a committed row, or begin a new history where one was.
 */
export interface LedgerStore {
  readonly opened: OpenedStore;
  /** For each lookup the sum of amounts after its moment, as a decimal; undefined where the history is not known. */
  begin(lookups: readonly StoredLookup[]): Promise<readonly (string | undefined)[]>;
  /** @throws {NotKept} nothing of it was kept, and later batches may be. Any other rejection is a fault: stop. */
  commit(rows: readonly StoredRow[], effects: readonly StoredEffect[]): Promise<void>;
  /** Would a batch find room? */
  hasRoom(): Promise<boolean>;
  /** Keeps a contract's text under its digest, durably. */
  keepContract(digest: string, text: string): Promise<void>;
  /** Keeps the events of a counter definition, and adds those found by a fold of older rows. */
  keepCounter(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void>;
  /** Newest first, in slices, from a connection that never holds up writing. */
  read(query: RowQuery): AsyncIterable<readonly StoredRow[]>;
  /** Oldest first, in slices. */
  scan(from: number): AsyncIterable<readonly StoredRow[]>;
  contractText(digest: string): Promise<string | undefined>;
  /** Walks the chain from a row on, beside readers and writers; rows that are vouched for must be there, and the same. */
  verify(from: number, anchors: readonly Anchor[]): Promise<Verification>;
  /** Lets the files go; what was committed stays. */
  close(): Promise<void>;
}

/** A batch of which nothing was kept; the ledger is as it was before. */
export class NotKept extends Error {
  readonly why: "disk-full";
  constructor(why: "disk-full", message: string) {
    super(message);
    this.why = why;
  }
}

/** A ledger that must not be served, with a sentence for the operator that says what and what to do. */
export class LedgerRefused extends Error {}
