import type { Approval } from "../../approvals/mod.ts";
import type { InTurn } from "./steps.ts";
import type { Broken, KeptApproval, StoredApproval, StoredOutcome, StoredRow } from "../entry/row.ts";
import type { Erasure } from "../entry/erasure.ts";
import type { StoredRepeat } from "../entry/repeat.ts";
import type { TreeNode } from "../tree/merkle.ts";
import type { Anchor } from "../tree/walk.ts";
import { LedgerRefused } from "../errors.ts";

/** A call's addition to a counter. The counter and the key are digests, so that no plain value is stored. */
export interface StoredEffect {
  readonly seq: number;
  readonly at: number;
  readonly counter: string;
  readonly key: string;
  /** A decimal that is not negative. */
  readonly amount: string;
  /** True while a person must decide the call. The amount counts, but it is not an event of the counter yet. */
  readonly held?: true;
  /** The row of the outcome that takes this event back. The other members are those of the event. */
  readonly takenBy?: number;
}

/** The amounts that outcomes took back under one key, of events after a moment, by rows before a row. */
export interface TakenQuery extends StoredLookup {
  readonly before: number;
}

/** The approvals that a batch needs. */
export interface ApprovalLookup {
  /** Digests of calls: their open approvals and their denials. */
  readonly attaches: readonly string[];
  readonly rows: readonly number[];
  /** Keys: their denials, and the numbers of their open approvals. */
  readonly keys: readonly string[];
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export interface ApprovalsFound {
  readonly kept: readonly KeptApproval[];
  /** The rows of their votes. */
  readonly votes: readonly StoredRow[];
  /** The amounts that these approvals hold. */
  readonly holds: readonly StoredEffect[];
  /** Open approvals of the keys. */
  readonly open: readonly (readonly [key: string, place: string, count: number])[];
  /** Open approvals of the ledger. */
  readonly all: number;
}

export const noApprovals: ApprovalsFound = { kept: [], votes: [], holds: [], open: [], all: 0 };

/** The most old answers that one commit deletes: more than a batch adds, and so few that no commit takes long. */
export const repeatsDeletedMax = 1024;

/** An open approval, by the row that asked, and the amounts that it holds. An unknown counter has an empty digest. */
export interface OpenHolds {
  readonly row: number;
  readonly holds: readonly Pick<StoredEffect, "amount" | "at" | "counter" | "key">[];
}

/** Groups the columns row, counter, key, time and amount by row. The last four are null if a row holds nothing. */
export function openHoldsOf(
  columns: readonly (readonly unknown[])[],
  counters: readonly Pick<KeptCounter, "digest" | "id">[],
): readonly OpenHolds[] {
  const digests = new Map(counters.map(({ id, digest }) => [id, digest]));
  return [...Map.groupBy(columns, ([row]) => Number(row))].map(([row, held]) => ({
    row,
    holds: held
      .filter(([, counter]) => counter !== null)
      .map(([, counter, key, at, amount]) => ({
        counter: digests.get(Number(counter)) ?? "",
        key: Buffer.from(key as Uint8Array).toString("hex"),
        at: Number(at),
        amount: String(amount),
      })),
  }));
}

/** How many approvals wait for a person. */
export interface WaitingApprovals {
  readonly calls: number;
  /** Those that have waited for more than half of their time. */
  readonly late: number;
}

/** Which approvals to list, newest first. */
export interface ApprovalQuery {
  /** Only approvals of rows below this one. */
  readonly before: number;
  readonly limit: number;
  readonly statuses?: readonly string[] | undefined;
  readonly key?: string | undefined;
  readonly session?: string | undefined;
  /** Only these rows. */
  readonly rows?: readonly number[] | undefined;
}

export interface StoredLookup {
  readonly counter: string;
  readonly key: string;
  /** Milliseconds: events at or before this moment do not count. */
  readonly after: number;
}

/** A position among a counter's events, which are ordered by moment and then by row. */
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

/** A counter definition whose events the ledger keeps. */
export interface StoredCounter {
  readonly digest: string;
  readonly definition: string;
  /** The last row that was folded into the counter; null while every new row updates it. */
  readonly through: number | null;
  /** Milliseconds: a window that begins before this moment is not known; -1 if all history is known. */
  readonly unknownThrough: number;
  /** Milliseconds: a person has reset the counter, so events up to this moment do not count. It never decreases. */
  readonly resetThrough?: number | undefined;
}

/** A counter as a store keeps it. */
export interface KeptCounter extends StoredCounter {
  /** The number of the counter in the rows of its events. */
  readonly id: number;
  /** The number of events that folds of existing rows found. */
  readonly folded: number;
  /** -1 if it was never reset. */
  readonly resetThrough: number;
}

export interface RowQuery {
  /** Only rows below this one; newest first. */
  readonly before: number;
  /** Only rows from this one on; by default from the first. */
  readonly from?: number | undefined;
  readonly limit: number;
  readonly session?: string | undefined;
  readonly tool?: string | undefined;
  readonly verdict?: string | undefined;
  /** Only checks whose verdict is BLOCK or ESCALATE, which have an index. */
  readonly refused?: boolean | undefined;
  /** Only checks: neither people's acts nor results of tools. */
  readonly checks?: boolean | undefined;
  /** Only checks whose last outcome has this status; `missing` means those that were let through and have none. */
  readonly outcome?: string | undefined;
  /** Texts that the leaf must all contain. */
  readonly leafHas?: readonly string[] | undefined;
}

/** Some rows, newest first. */
export interface RowSlice {
  readonly rows: readonly StoredRow[];
  /** The row below which the next slice continues; 0 if there are no more rows. */
  readonly next: number;
}

/** The description of a ledger that is only read. */
export interface StoredHistory {
  readonly log: string;
  /** The secret under which counter keys are digested, 64 hex digits. */
  readonly counterSecret: string;
  /** The counters at a moment when there were at most `rows` rows. */
  readonly kept: readonly KeptCounter[];
  /** The number of the last row; 0 if there is none. */
  readonly rows: number;
  /** The verifier key of the key that signs heads; undefined before the first. */
  readonly signer: string | undefined;
  /** As in `OpenedStore`. */
  readonly firstKey?: string | undefined;
}

export interface Verification {
  readonly log: string;
  readonly rows: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly broken: Broken | undefined;
}

/** The contract and mode in force. Gates that share a ledger must agree on them, because each row names them. */
export interface InForce {
  /** SHA-256 of the body of GET /rules, in hex. */
  readonly contract: string;
  readonly mode: string;
  /** For example `svc-gate/1.0.0`. */
  readonly engine: string;
}

/** The tree over the rows after a batch. */
export interface GrownTree {
  /** The text from `Frontier.text`. */
  readonly frontier: string;
  /** The inner hashes that the batch completes. */
  readonly nodes: readonly TreeNode[];
  /**
   * The signed head after the batch, which nobody sees before the rows are durable. A shared store writes it in the
   * transaction that locks the head, so that it becomes visible with the rows or never.
   */
  readonly signed: Promise<string>;
}

/** The changes that a batch makes besides its rows. */
export interface CommitOptions {
  /** The contract and mode from these rows on, if they change. */
  readonly inForce?: InForce | undefined;
  readonly tree?: GrownTree | undefined;
  /** The key that signs heads from these rows on, if it changes. */
  readonly signer?: string | undefined;
  /** The erasures that the rows report. The same transaction deletes the text and salt of the parts. */
  readonly erasures?: readonly Erasure[] | undefined;
  /** Approvals that the rows open or change. */
  readonly approvals?: readonly StoredApproval[] | undefined;
  /** Rows whose held amounts count no more. */
  readonly released?: readonly number[] | undefined;
  /** Answers that exact repeats of the checks get. Those that are too old for a repeat may be deleted with them. */
  readonly repeats?: readonly StoredRepeat[] | undefined;
  /** Outcomes that the rows report. */
  readonly outcomes?: readonly StoredOutcome[] | undefined;
}

/**
 * Where erased data may remain: nowhere; in pages that are not rewritten yet; in a log that a reader holds open; or in old
 * row versions that only the database server can remove.
 */
export type Scrubbed = "clean" | "later" | "held" | "vacuum";

export interface OpenedStore {
  /** The ledger's name, which never changes. */
  readonly log: string;
  readonly created: boolean;
  /** The secret under which counter keys are digested, 64 hex digits. */
  readonly counterSecret: string;
  readonly head: StoredHead | undefined;
  /** The last row of a person's act; 0 before the first. */
  readonly changed: number;
  /** The verifier key of the key that signs heads; undefined before the first. */
  readonly signer: string | undefined;
  /** The last mode; undefined if no gate has served the ledger yet, or if rows name the mode. */
  readonly mode: string | undefined;
  /** The note about the first key; undefined if there is none, or if gates share the ledger. */
  readonly firstKey?: string | undefined;
  readonly counters: readonly StoredCounter[];
  /** True if a call was ever parked for a person. */
  readonly hasApprovals: boolean;
}

/**
 * The exclusive right to add to the ledger, from `begin` until `commit` or `abort`. If gates share the ledger, the fields
 * were read under the lock of its head.
 */
export interface StoreTransaction {
  /** The last row; undefined before the first. */
  readonly head: StoredHead | undefined;
  /** The last row of a person's act; 0 before the first. */
  readonly changed: number;
  /** The shared ledger's contract and mode; undefined if one gate owns the ledger, or if no gate has served it yet. */
  readonly inForce: InForce | undefined;
  /** The shared ledger's tree at the head; undefined if it does not match the last row, or if one gate owns the ledger. */
  readonly frontier: string | undefined;
  /** The verifier key of the key that signs the shared ledger's heads. */
  readonly signer: string | undefined;
  /** Milliseconds by the database's clock; undefined if one gate owns the ledger and uses its own clock. */
  readonly at: number | undefined;
  /** The sum of the amounts after the moment of each lookup, as a decimal; undefined if the history is not known. */
  values(lookups: readonly StoredLookup[]): Promise<readonly (string | undefined)[]>;
  /** True if a call was ever parked for a person. Without approvals, nobody needs to look for them. */
  readonly hasApprovals: boolean;
  /** Reads the approvals that calls may meet. */
  approvals(lookup: ApprovalLookup): Promise<ApprovalsFound>;
  /** Reads open approvals whose time has ended: at most 10,000. */
  dueApprovals(at: number): Promise<readonly KeptApproval[]>;
  /** Reads rows by their numbers, in order. */
  rowsAt(rows: readonly number[]): Promise<readonly StoredRow[]>;
  /** Reads the last outcomes of calls by the rows of their checks. */
  outcomes(rows: readonly number[]): Promise<readonly StoredOutcome[]>;
  /** Reads recorded answers by their ids. */
  repeats(ids: readonly string[]): Promise<readonly StoredRepeat[]>;
  /** Like `LedgerStore.keepCounter`, but becomes durable no later than the rows of this transaction. */
  keepCounter(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void>;
  /**
   * Ends the transaction. Without rows, only the counters and the options are kept.
   *
   * @throws {NotKept} if nothing was kept and later batches may succeed. Any other rejection is a fault: stop.
   */
  commit(rows: readonly StoredRow[], effects: readonly StoredEffect[], options?: CommitOptions): Promise<void>;
  /** Ends the transaction and keeps nothing of it. Does nothing if the transaction has ended already. */
  abort(): Promise<void>;
}

/**
 * Everything that a storage engine must do. There is one transaction at a time.
 *
 * A store MUST make a batch durable, whole and in order, before `commit` resolves. It MUST reject with `NotKept` only if
 * it is proven that nothing of the batch was kept. It MUST NOT write a batch twice, lose a committed row, or replace an
 * old history with a new one. A store with one owner MUST refuse a second owner while the first lives. A store that gates
 * share MUST let nobody else add a row during a transaction.
 */
export interface LedgerStore {
  readonly opened: OpenedStore;
  readonly history: HistoryReader;
  readonly keyNotes: KeyNotes;
  readonly deliveries: DeliveryNotes;
  /** @throws {NotKept} if the database cannot be reached now. Any other rejection is a fault. */
  begin(): Promise<StoreTransaction>;
  /** True if there is room for a batch. */
  hasRoom(): Promise<boolean>;
  /** Stores a contract's text under its digest, durably. */
  keepContract(digest: string, text: string): Promise<void>;
  /**
   * Keeps the events of a counter definition, and adds the events that a fold of existing rows found. Must not be called
   * during a transaction. Two gates may fold one counter at once: events that the counter has already are left out, and a
   * counter that every new row updates stays so.
   */
  keepCounter(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void>;
  /** Records the key that signs heads, durably, unless a key is on record. Returns the key on record. */
  keepSigner(verifier: string): Promise<string>;
  /**
   * Reads rows newest first, in slices, without delaying writers. A slice is empty if no row in its part of the ledger
   * matches, so that a reader that stops iterating ends the search.
   */
  read(query: RowQuery): AsyncIterable<readonly StoredRow[]>;
  /** The shared ledger's last signed head; undefined before the first, or if one gate owns the ledger. */
  checkpoint(): Promise<string | undefined>;
  /**
   * Walks the chain from a row on, while others read and write. The ledger must contain the anchored rows unchanged.
   *
   * @param inTurn runs each slice of a long walk; by default at once
   */
  verify(from: number, anchors: readonly Anchor[], inTurn?: InTurn): Promise<Verification>;
  /**
   * Removes erased data from the database's files and its log. Must not be called during a transaction. Batches continue.
   *
   * @param rewrite whether indexes may be rewritten, which delays batches; otherwise old index pages stay as they are
   */
  scrub(rewrite: boolean): Promise<Scrubbed>;
  /** Closes the files or connections. */
  close(): Promise<void>;
}

/** Reads a ledger, whether or not a gate serves it. It never locks, writes or creates anything. */
export interface HistoryReader {
  /** Rows oldest first, in slices. */
  scan(from: number): AsyncIterable<readonly StoredRow[]>;
  /** The body of GET /rules, by its SHA-256 in hex. */
  contractText(digest: string): Promise<string | undefined>;
  /** The counters that the ledger keeps now. */
  counters(): Promise<readonly KeptCounter[]>;
  /** The total of all events before each position, as a decimal; undefined if the counter is not kept. */
  totals(places: readonly EventPosition[]): Promise<readonly (string | undefined)[]>;
  /**
   * Adjacent hashes of the tree, 32 bytes each. Level 0 has the hashes of the leaves. Each level above has the roots of
   * full tiles of the level below. Rejects if a hash is missing.
   */
  hashes(level: number, from: number, count: number): Promise<Uint8Array>;
  /** The leaves of at most `count` rows from a row on. */
  leaves(from: number, count: number): Promise<readonly string[]>;
  /** Approvals, newest first. */
  approvals(query: ApprovalQuery): Promise<readonly Approval[]>;
  /** Reads the last outcomes of calls by the rows of their checks. */
  outcomes(rows: readonly number[]): Promise<readonly StoredOutcome[]>;
  /** Reads the amounts that outcomes took back, for each query. */
  taken(queries: readonly TakenQuery[]): Promise<readonly (readonly string[])[]>;
  /** Reads rows by their numbers, in order. */
  rowsAt(rows: readonly number[]): Promise<readonly StoredRow[]>;
  /** Returns those of the rows whose approvals are open now, with what they hold. */
  openHolds(rows: readonly number[]): Promise<readonly OpenHolds[]>;
  /** Counts the approvals that wait for a person at a time. */
  waiting(at: number): Promise<WaitingApprovals>;
}

/**
 * How far each endpoint of webhooks has got. The rows say what is sent, so these notes are not part of the history: a changed
 * one only repeats or skips messages.
 */
export interface DeliveryNotes {
  /**
   * Takes or extends the right to send to an endpoint, for some milliseconds.
   *
   * @param byForce takes it from another gate
   * @returns the note, empty before the first; undefined if another gate has the right
   */
  take(endpoint: string, owner: string, ms: number, byForce?: boolean): Promise<string | undefined>;
  /** Stores a note, durably. Returns false if the owner does not have the right any more. */
  keep(endpoint: string, owner: string, note: string): Promise<boolean>;
  /** All notes, by endpoint. */
  all(): Promise<ReadonlyMap<string, string>>;
}

/** Notes about API keys. They are not part of the history. */
export interface KeyNotes {
  /** Stores a note about the first key, durably, if one gate owns the ledger. Must not be called during a transaction. */
  keepFirst(note: string): Promise<void>;
  /** When each key was last used, in milliseconds, at most a minute late. */
  uses(): Promise<ReadonlyMap<string, number>>;
  /** Records when keys were used. An error is ignored. */
  keepUses(uses: ReadonlyMap<string, number>): Promise<void>;
}

/** A ledger in a database. */
export interface DatabaseLedger {
  /** The id in the database. */
  readonly ledger: string;
  /** The name of a new ledger. */
  readonly log: string | undefined;
  /** Whether a new ledger must not be created. */
  readonly mustExist?: boolean;
}

/** One PostgreSQL database, which holds many ledgers, each under its id. */
export interface Database {
  /** Weaknesses of the setup, in one sentence each for the operator. */
  readonly warnings: readonly string[];
  /**
   * Opens the ledger with an id, or creates it.
   *
   * @param log the name of a new ledger
   * @param mustExist whether a new ledger must not be created
   * @throws {NoLedger} if there is none and `mustExist` is set
   * @throws {LedgerRefused} if the ledger must not be served
   */
  open(options: DatabaseLedger): Promise<LedgerStore>;
  /** Waits until every transaction of a ledger that began before has ended; returns at once if there is no such ledger. */
  passHead(ledger: string): Promise<void>;
  isReachable(): Promise<boolean>;
  /** Closes all connections, including those of the ledgers. */
  close(): Promise<void>;
}

/** Joins the hashes, in hex, that a store has read from its tree. @throws {LedgerRefused} if a hash is missing */
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
