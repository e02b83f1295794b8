import type { InTurn } from "./steps.ts";
import type {
  Mistake,
  KeptApproval,
  StoredApproval,
  StoredOutcome,
  StoredRow,
} from "../../../../core/src/record/entry/row.ts";
import type { Erasure } from "../../../../core/src/record/entry/erasure.ts";
import type { StoredRepeat } from "../../../../core/src/record/entry/repeat.ts";
import type { TreeNode } from "../../../../core/src/record/tree/merkle.ts";
import type { Anchor } from "../../../../core/src/record/tree/walk.ts";
import type { Description, StoredCounter, StoredHead, Tables } from "./tables.ts";

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
  readonly votes: readonly StoredRow[];
  /** The amounts that these approvals reserve. */
  readonly reservations: readonly StoredEffect[];
  /** Open approvals of the keys. */
  readonly open: readonly (readonly [key: string, place: string, count: number])[];
  /** Open approvals of the ledger. */
  readonly all: number;
}

export const noApprovals: ApprovalsFound = { kept: [], votes: [], reservations: [], open: [], all: 0 };

/** The most old answers that one commit deletes: more than a batch adds, and so few that no commit takes long. */
export const repeatsDeletedMax = 1024;

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

export interface Verification {
  readonly log: string;
  readonly rows: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly broken: Mistake | undefined;
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
  /** Rows whose reserved amounts count no more. */
  readonly released?: readonly number[] | undefined;
  /** Answers that exact repeats of the checks get. Those that are too old for a repeat may be deleted with them. */
  readonly repeats?: readonly StoredRepeat[] | undefined;
  /** Outcomes that the rows report. */
  readonly outcomes?: readonly StoredOutcome[] | undefined;
}

/**
 * Where erased data may remain: nowhere; in pages that are not rewritten yet; in a log that a reader keeps open; or in old
 * row versions that only the database server can remove.
 */
export type ScrubResult = "clean" | "later" | "busy" | "vacuum";

export interface OpenedStore extends Description {
  readonly created: boolean;
  readonly head: StoredHead | undefined;
  /** The last row of a person's act; 0 before the first. */
  readonly changed: number;
  /** The last mode; undefined if no gate has served the ledger yet, or if rows name the mode. */
  readonly mode: string | undefined;
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
  /** Reads entries by their keys: rows, outcomes, recorded answers. */
  readonly tables: Pick<Tables, "where">;
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
  readonly tables: Tables;
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
  scrub(rewrite: boolean): Promise<ScrubResult>;
  /** Closes the files or connections. */
  close(): Promise<void>;
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

export interface DatabaseLedger {
  /** The id in the database. */
  readonly ledger: string;
  /** The name of a new ledger. */
  readonly log: string | undefined;
  /** Whether a new ledger must not be created. */
  readonly mustExist?: boolean;
}

/** One PostgreSQL database, which has many ledgers, each under its id. */
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
  /** Waits until every transaction of a ledger that started before has ended; returns at once if there is no such ledger. */
  passHead(ledger: string): Promise<void>;
  isReachable(): Promise<boolean>;
  /** Closes all connections, including those of the ledgers. */
  close(): Promise<void>;
}
