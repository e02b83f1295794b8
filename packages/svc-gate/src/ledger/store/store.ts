import type { Broken, StoredRow } from "../entry/row.ts";
import type { Erasure } from "../entry/erasure.ts";
import type { TreeNode } from "../tree/merkle.ts";

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

/** Where an event of a counter stands, or would: its events are in the order of their moments, then of their rows. */
export interface EventPosition {
  /** The counter's digest. */
  readonly counter: string;
  /** The key's digest. */
  readonly key: string;
  readonly at: number;
  readonly seq: number;
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
  /** Milliseconds: it counts nothing at or before it, because a person has reset it. A store never takes it back. */
  readonly resetThrough?: number | undefined;
}

/** A counter as an engine keeps it. */
export interface KeptCounter extends StoredCounter {
  /** The number that stands for it in the rows of its events. */
  readonly id: number;
  /** How many events were found by folds of older rows. */
  readonly folded: number;
  /** -1 if it was never reset. */
  readonly resetThrough: number;
}

export interface RowQuery {
  /** Rows below this one; newest first. */
  readonly before: number;
  /** Rows from this one on; by default from the first. */
  readonly from?: number | undefined;
  readonly limit: number;
  readonly session?: string | undefined;
  readonly tool?: string | undefined;
  readonly verdict?: string | undefined;
  /** Checks whose verdict is BLOCK or ESCALATE: they have an index. */
  readonly refused?: boolean | undefined;
  /** Checks alone: no people's acts, and no results of tools. */
  readonly checks?: boolean | undefined;
  /** Texts that the leaf must contain, all of them. */
  readonly leafHas?: readonly string[] | undefined;
}

/** Some rows, newest first. */
export interface RowSlice {
  readonly rows: readonly StoredRow[];
  /** Where to go on: rows below it were not looked at; 0 when there are none. */
  readonly next: number;
}

/** What a ledger says of itself to one that only reads it. */
export interface StoredHistory {
  readonly log: string;
  /** The secret under which counter keys are digested, 64 hex digits. */
  readonly counterSecret: string;
  /** The counters that it kept, at a moment when there were no more rows than `rows`. */
  readonly kept: readonly KeptCounter[];
  /** The number of its last row; 0 when there is none. */
  readonly rows: number;
  /** The verifier key whose private half signs its heads; undefined before the first. */
  readonly signer: string | undefined;
  /** As `OpenedStore` has it. */
  readonly firstKey?: string | undefined;
}

/** A row that something other than the walked file knows. */
export interface Anchor {
  readonly seq: number;
  /** SHA-256 in hex, where the row itself was seen. */
  readonly hash?: string | undefined;
  /** Of the tree up to it, base64, where that was seen. */
  readonly root?: string | undefined;
  /** Who says so, for the report: `head pin`. */
  readonly by: string;
}

export interface Verification {
  readonly log: string;
  readonly rows: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly broken: Broken | undefined;
}

/** What decides on a ledger. Gates that share one must agree on it: a row is decided under what it names. */
export interface InForce {
  /** SHA-256 of the body of GET /rules, in hex. */
  readonly contract: string;
  readonly mode: string;
  /** Such as `svc-gate/1.0.0`. */
  readonly engine: string;
}

/** The tree over the rows, as a batch leaves it. */
export interface GrownTree {
  /** What `Frontier.text` writes. */
  readonly frontier: string;
  /** The inner hashes that are complete with it. */
  readonly nodes: readonly TreeNode[];
  /**
   * The head that the batch makes, signed; nobody sees it before the rows are durable. An engine that gates share keeps it
   * in the transaction that locks the head, so that it is seen when the rows are, or never.
   */
  readonly signed: Promise<string>;
}

/** What changes with a batch beside its rows. */
export interface CommitOptions {
  /** What decides from these rows on, where it changes. */
  readonly inForce?: InForce | undefined;
  readonly tree?: GrownTree | undefined;
  /** The key that signs heads from these rows on, where it changes. */
  readonly signer?: string | undefined;
  /** What the rows say is erased, of rows before them: text and salt go, in the same transaction. */
  readonly erasures?: readonly Erasure[] | undefined;
}

/**
 * Where what was erased may still be: nowhere; in pages that are still to be written anew; in a log that a reader holds;
 * or where only the engine's own care reaches.
 */
export type Scrubbed = "clean" | "later" | "held" | "vacuum";

export interface OpenedStore {
  /** The ledger's name, fixed when it was created. */
  readonly log: string;
  readonly created: boolean;
  /** The secret under which counter keys are digested, 64 hex digits. */
  readonly counterSecret: string;
  readonly head: StoredHead | undefined;
  /** The last row of a person's act; 0 before the first. */
  readonly changed: number;
  /** The verifier key whose private half signs its heads; undefined before the first. */
  readonly signer: string | undefined;
  /** The last mode; undefined if it was never served, or if rows name it. */
  readonly mode: string | undefined;
  /** What was noted of the first key; undefined where nothing was, and where gates share the ledger. */
  readonly firstKey?: string | undefined;
  readonly counters: readonly StoredCounter[];
}

/**
 * The exclusive right to add to the ledger, from `begin` until `commit` or `abort`; nobody else adds a row meanwhile.
 * What an engine that several gates share says here is true inside its lock.
 */
export interface StoreTransaction {
  /** The last row; undefined before the first. */
  readonly head: StoredHead | undefined;
  /** The last row of a person's act; 0 before the first. */
  readonly changed: number;
  /** What decides, where gates share the ledger; undefined where one gate owns it, or before any has begun. */
  readonly inForce: InForce | undefined;
  /** Where gates share it: the frontier of the tree at the head; undefined where it is not that of the last row. */
  readonly frontier: string | undefined;
  /** Where gates share it: the verifier key whose private half signs heads. */
  readonly signer: string | undefined;
  /** Milliseconds by the engine's clock, where gates share it; undefined where the gate's own clock counts. */
  readonly at: number | undefined;
  /** For each lookup the sum of amounts after its moment, as a decimal; undefined where the history is not known. */
  values(lookups: readonly StoredLookup[]): Promise<readonly (string | undefined)[]>;
  /** As of the store, and no later than what the transaction commits. */
  keepCounter(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void>;
  /**
   * Ends the transaction. With no rows, only what `keepCounter` and `beside` say is kept.
   *
   * @throws {NotKept} nothing of it was kept, and later batches may be. Any other rejection is a fault: stop.
   */
  commit(rows: readonly StoredRow[], effects: readonly StoredEffect[], options?: CommitOptions): Promise<void>;
  /** Ends the transaction; nothing of it is kept. Of one that has ended, by itself or with an error, nothing is left to do. */
  abort(): Promise<void>;
}

/**
 * The whole of what a storage engine must do. One transaction at a time.
 *
 * An engine MUST make a batch durable, whole and in order, before `commit` resolves; MUST reject with `NotKept` only
 * when it is proven that nothing of the batch was kept; MUST NOT write twice, lose a committed row, or begin a new
 * history where one was. One that a single gate owns MUST refuse a second owner while the first lives; one that gates
 * share MUST let nobody add a row between `begin` and the end of a transaction.
 */
export interface LedgerStore {
  readonly opened: OpenedStore;
  readonly history: HistoryReader;
  readonly keyNotes: KeyNotes;
  /** @throws {NotKept} where the engine cannot be reached now: nothing was begun. Any other rejection is a fault. */
  begin(): Promise<StoreTransaction>;
  /** Would a batch find room? */
  hasRoom(): Promise<boolean>;
  /** Keeps a contract's text under its digest, durably. */
  keepContract(digest: string, text: string): Promise<void>;
  /**
   * Keeps the events of a counter definition, and adds those found by a fold of older rows. Not within a transaction. Where gates
   * share the ledger, two may fold one counter at once: events at or before the row through which it is kept are left
   * out, and one that is kept up with every row stays so.
   */
  keepCounter(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void>;
  /** Keeps which key signs heads, durably, unless one does already; which one that is now. */
  keepSigner(verifier: string): Promise<string>;
  /**
   * Newest first, in slices, from a connection that never holds up writing. A slice is empty if no row in its part of the
   * ledger matches, so that a reader who leaves ends the search.
   */
  read(query: RowQuery): AsyncIterable<readonly StoredRow[]>;
  /** Where gates share it: the head that was signed last; undefined before the first, and where one gate owns it. */
  checkpoint(): Promise<string | undefined>;
  /** Walks the chain from a row on, beside readers and writers; rows that are vouched for must be there, and the same. */
  verify(from: number, anchors: readonly Anchor[]): Promise<Verification>;
  /**
   * Clears the engine's own files, its log too, of what was erased. Not within a transaction; batches go on beside it.
   *
   * @param rewrite it may hold up batches for as long as indexes take to be written anew; else they keep what they keep
   */
  scrub(rewrite: boolean): Promise<Scrubbed>;
  /** Lets the files go; what was committed stays. */
  close(): Promise<void>;
}

/** Reads a ledger, whether a gate serves it or not: nothing is locked, written or begun. */
export interface HistoryReader {
  /** Stored rows oldest first, in slices. */
  scan(from: number): AsyncIterable<readonly StoredRow[]>;
  /** The body of GET /rules, by its SHA-256 in hex. */
  contractText(digest: string): Promise<string | undefined>;
  /** Every counter definition that the ledger keeps the events of, as it is now. */
  counters(): Promise<readonly KeptCounter[]>;
  /** For each place the total of all events before it, a decimal; undefined where no such counter is kept. */
  totals(places: readonly EventPosition[]): Promise<readonly (string | undefined)[]>;
  /**
   * Hashes of the tree that stand side by side, 32 bytes each: of level 0 those of the leaves, above it the roots of full
   * tiles below. Rejects unless all are there.
   */
  hashes(level: number, from: number, count: number): Promise<Uint8Array>;
  /** The leaves of so many rows from one on, as far as they are there. */
  leaves(from: number, count: number): Promise<readonly string[]>;
}

/** Notes about API keys. They are no part of the history. */
export interface KeyNotes {
  /** Keeps a note of the first key, durably, where one gate owns the ledger. Not within a transaction. */
  keepFirst(note: string): Promise<void>;
  /** When each key was last used, in milliseconds; what `keepUses` was told, a minute late at most. */
  uses(): Promise<ReadonlyMap<string, number>>;
  /** Notes when keys were used. Best effort: nothing fails with it. */
  keepUses(uses: ReadonlyMap<string, number>): Promise<void>;
}

/** Why nothing of a batch was kept. */
export type NotKeptWhy = "disk-full" | "unreachable" | "not-committed" | "forbidden";

/** A batch of which nothing was kept; the ledger is as it was before. */
export class NotKept extends Error {
  readonly why: NotKeptWhy;
  constructor(why: NotKeptWhy, message: string) {
    super(message);
    this.why = why;
  }
}

/** An error that must stop the gate. A store must not treat it as a broken connection. */
export class Fault extends Error {}

/** A ledger that must not be served, with a sentence for the operator that says what and what to do. */
export class LedgerRefused extends Error {}

/** A ledger that must exist and does not: its name may be mistyped. */
export class NoLedger extends LedgerRefused {}

/** Hashes that a store has read of its tree, in hex, side by side. @throws {LedgerRefused} where some of them are not there */
export function joinHashes(
  found: readonly string[],
  { level, from, count }: Readonly<Record<"count" | "from" | "level", number>>,
): Buffer {
  if (found.length === count) return Buffer.from(found.join(""), "hex");
  throw new LedgerRefused(
    `the ledger is damaged: its tree has ${found.length} of ${count} hashes at level ${level} from ${from}; ` +
      "run `svc-gate verify`, and restore it from a backup",
  );
}
