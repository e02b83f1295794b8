import { canonical } from "../../../core/src/wire/mod.ts";
import {
  cancelledBy,
  reopenedBy,
  withStopAct,
  type Approval,
  type Grant,
  type Stops,
} from "../../../core/src/approvals/mod.ts";
import {
  changeRow,
  checkRow,
  resultRow,
  type CheckEntry,
  type ChangeEntry,
  type OutcomeEntry,
  type ResultEntry,
  type CounterEvent,
  type FoldedEvent,
  type UnlinkedRow,
} from "./entries.ts";
import { readApprovals, storedApproval } from "../../../core/src/record/entry/approval-rows.ts";
import { isAboutStops, stopActOf } from "../../../core/src/record/entry/stop-rows.ts";
import { withGrantRow } from "../../../core/src/record/entry/grant-rows.ts";
import type { Erasure } from "../../../core/src/record/entry/erasure.ts";
import { effectsText, outcomeAct, outcomeBody, outcomeEffects } from "../../../core/src/record/entry/outcome-rows.ts";
import { makeEvidence } from "../../../core/src/record/entry/evidence.ts";
import { leafHash, leafText } from "../../../core/src/record/entry/leaf.ts";
import { asDurable, type Durable, type Receipt } from "../../../core/src/record/entry/receipt.ts";
import {
  noApprovals,
  type ApprovalLookup,
  type ApprovalsFound,
  type InForce,
  type StoredEffect,
  type StoreTransaction,
} from "./store/store.ts";
import type { StoredCounter } from "./store/tables.ts";
import { Fault } from "./errors.ts";
import { rowsAt } from "./history/table-reads.ts";
import { PendingCounters } from "./pending-counters.ts";
import {
  readRepeat,
  repeatId,
  storedRepeat,
  type RecordedAnswer,
  type StoredRepeat,
} from "../../../core/src/record/entry/repeat.ts";
import type { StoredRow, StoredApproval, StoredOutcome } from "../../../core/src/record/entry/row.ts";
import type { Link } from "../../../core/src/record/entry/verifier.ts";
import type { Checkpoint } from "../../../core/src/record/tree/checkpoint.ts";
import type { Frontier, TreeNode } from "../../../core/src/record/tree/merkle.ts";

export interface TransactionContext {
  readonly head: Link;
  /** The tree at the head. The transaction may change it. */
  readonly tree: Frontier;
  readonly sign: (head: TreeHead) => string;
  readonly log: string;
  readonly engine: string;
  readonly store: StoreTransaction;
  readonly stops: Stops;
  readonly grants: readonly Grant[];
  readonly digest: (key: string) => string;
  readonly counterOf: (counter: Omit<StoredCounter, "digest">) => StoredCounter;
  readonly committed: (reached: CommittedState) => void;
}

/** A tree's size and root, which the head's signature covers. */
export type TreeHead = Pick<Checkpoint, "size" | "root">;

/** The ledger after a transaction with rows. */
export interface CommittedState {
  readonly head: Link;
  readonly leaf: string;
  readonly tree: Frontier;
  /** The signed checkpoint over the tree. */
  readonly checkpoint: string;
  readonly stops: Stops;
  readonly grants: readonly Grant[];
}

/**
 * The exclusive right to add rows, which become durable together. Each call sees the counters as earlier calls of the
 * transaction left them. The owner must end it with `commit` or `abort`.
 */
export class AppendTransaction {
  readonly #context: TransactionContext;
  /** What the store read before the rows of this transaction. */
  readonly store: Pick<StoreTransaction, "at" | "changed" | "hasApprovals" | "inForce" | "signer" | "tables">;
  readonly counters: Pick<PendingCounters, "reserve" | "look" | "value">;
  /** The ledger's name. */
  readonly log: string;
  /** A keyed digest of a text, in hex. The text starts with its domain. */
  readonly digest: (text: string) => string;
  readonly #counters: PendingCounters;
  readonly #rows: StoredRow[] = [];
  readonly #receipts: Receipt[] = [];
  /** What becomes durable with the rows. */
  readonly #beside = {
    erasures: [] as Erasure[],
    approvals: [] as StoredApproval[],
    released: [] as number[],
    repeats: [] as StoredRepeat[],
    outcomes: [] as StoredOutcome[],
  };
  #head: Link;
  readonly #tree: Frontier;
  readonly #nodes: TreeNode[] = [];
  #stops: Stops;
  #grants: readonly Grant[];

  constructor(context: TransactionContext) {
    this.#context = context;
    this.store = context.store;
    this.log = context.log;
    this.digest = context.digest;
    this.#counters = new PendingCounters(context.store, context.digest);
    this.counters = this.#counters;
    this.#head = context.head;
    this.#tree = context.tree;
    this.#stops = context.stops;
    this.#grants = context.grants;
  }

  /** The last row, including the rows of this transaction. */
  get head(): Link {
    return this.#head;
  }

  /** The ledger's stops, including those of this transaction. */
  get stops(): Stops {
    return this.#stops;
  }

  /** The grants that no row has ended, including those of this transaction. */
  get grants(): readonly Grant[] {
    return this.#grants;
  }

  /** Reads the approvals that calls may meet, as they were before this transaction. */
  async approvals(lookup: ApprovalLookup): Promise<ApprovalsFound & { readonly approvals: readonly Approval[] }> {
    const found = this.store.hasApprovals ? await this.#context.store.approvals(lookup) : noApprovals;
    return { ...found, approvals: readApprovals(found.kept) };
  }

  /** Reads open approvals whose time has ended: at most 10,000. */
  async dueApprovals(at: number): Promise<readonly Approval[]> {
    return this.store.hasApprovals ? readApprovals(await this.#context.store.dueApprovals(at)) : [];
  }

  /** Reads rows before this transaction by their numbers. */
  rowsAt(rows: readonly number[]): Promise<readonly StoredRow[]> {
    return rowsAt(this.#context.store.tables, rows);
  }

  /** Reads the rows that opened the approvals which are open before this transaction. */
  async openApprovals(): Promise<readonly StoredRow[]> {
    if (!this.store.hasApprovals) return [];
    const open = await this.#context.store.dueApprovals(Number.MAX_SAFE_INTEGER);
    return open.map(({ row }) => row);
  }

  /** Keeps an approval with the rows of this transaction. */
  keepApproval(approval: Approval): void {
    this.#beside.approvals.push(storedApproval(approval, this.digest));
  }

  /** The id under which the answer of a check is recorded. */
  repeatId(key: string, callId: string): string {
    return repeatId(key, callId, this.digest);
  }

  /** Reads recorded answers of checks before this transaction, by their ids. @throws {Fault} if one was changed */
  async recordedAnswers(ids: readonly string[]): Promise<ReadonlyMap<string, RecordedAnswer>> {
    const found = await this.#context.store.tables.where("repeats", "id", ids);
    return new Map(
      found.map((stored) => {
        const answer = readRepeat(stored, this.digest);
        if (answer === undefined)
          throw new Fault("the recorded answer of a check was changed: restore the ledger from a backup");
        return [stored.id, answer];
      }),
    );
  }

  /** Records the answer of a check, for exact repeats. */
  recordAnswer(id: string, answer: RecordedAnswer): void {
    this.#beside.repeats.push(storedRepeat(id, answer, this.digest));
  }

  /** Ends the amounts that a row reserves: from here on they do not count. */
  release(row: number, reservations: readonly StoredEffect[]): void {
    this.#beside.released.push(row);
    this.#counters.subtract(reservations);
  }

  /**
   * Adds the row of a check. Nothing is durable before `commit`.
   *
   * @returns the row's number and hash, and what it added to counters
   */
  append(entry: CheckEntry, moves: readonly CounterEvent[]): Receipt & { readonly effects: readonly StoredEffect[] } {
    const effects = this.#counters.count(moves, this.#head.seq + 1, entry.at);
    this.#add(checkRow(entry, effectsText(effects)));
    return { seq: this.#head.seq, hash: this.#head.hash, effects };
  }

  /**
   * Adds the row of a person's act, which changes no counter.
   *
   * @returns the approvals that it ends or reopens, after it
   */
  change({ erases, ends = [], reopens = [], ...entry }: ChangeEntry): readonly Approval[] {
    if (erases !== undefined) this.#beside.erasures.push(erases);
    this.#add(changeRow(entry, "[]"));
    const { seq } = this.#head;
    const row = this.#rows.at(-1);
    if (row !== undefined && (this.#grants.length > 0 || entry.act.startsWith("grant.")))
      this.#grants = withGrantRow(this.#grants, row, this.digest);
    for (const { row: ended } of ends) this.release(ended, []);
    const changed = [
      ...ends.map((approval) => cancelledBy(approval, seq)),
      ...reopens.map((approval) => reopenedBy(approval, seq)),
    ];
    for (const approval of changed) this.keepApproval(approval);
    const stop = isAboutStops(entry.act) ? stopActOf(entry.act, canonical(entry.body), entry.by) : undefined;
    if (stop !== undefined) this.#stops = withStopAct(this.#stops, { seq, at: entry.at, act: stop });
    return changed;
  }

  /** Adds the row of a call's outcome, and what it does to counters. */
  outcome({ outcome, added, taken, ...entry }: OutcomeEntry): void {
    const seq = this.#head.seq + 1;
    const events = added.map((event): StoredEffect => ({ ...event, seq, at: entry.at }));
    const takenBack = taken.map((event): StoredEffect => ({ ...event, takenBy: seq }));
    const change = { ...entry, act: outcomeAct, body: outcomeBody(outcome) };
    this.#add(changeRow(change, outcomeEffects(events, takenBack)));
    this.#counters.settle(events, takenBack);
    this.#beside.outcomes.push({ seq: outcome.row, outcome: seq, status: outcome.status });
  }

  /** Adds the row of a tool's result, which changes no counter. */
  result(entry: ResultEntry): void {
    this.#add(resultRow(entry, this.digest));
  }

  /** Like `Ledger.keepCounter`, but becomes durable no later than this transaction's rows. */
  async keepCounter(counter: Omit<StoredCounter, "digest">, folded: readonly FoldedEvent[]): Promise<void> {
    const stored = this.#context.counterOf(counter);
    await this.#context.store.keepCounter(
      stored,
      folded.map(({ key, ...event }) => ({ ...event, key: this.digest(key) })),
    );
  }

  /**
   * Makes all rows durable in order, with one flush.
   *
   * @param inForce the shared ledger's contract and mode from these rows on, if they change
   * @param signer the key that signs heads from these rows on, if it changes
   * @returns one receipt for each row, each under a signed head
   * @throws {NotKept} if nothing was kept; any other rejection is a fault
   */
  async commit(inForce?: InForce, signer?: string): Promise<readonly Durable<Receipt>[]> {
    const { store, committed } = this.#context;
    const leaf = this.#rows.at(-1)?.leaf;
    if (leaf === undefined) await store.commit([], this.#counters.effects, { inForce, signer });
    else {
      const signed = this.#sign();
      signed.catch(() => undefined); // If nothing is kept, nobody awaits it.
      const tree = { frontier: this.#tree.text(), nodes: this.#nodes, signed };
      await store.commit(this.#rows, this.#counters.effects, { inForce, signer, tree, ...this.#beside });
      const standing = { stops: this.#stops, grants: this.#grants };
      committed({ head: this.#head, leaf, tree: this.#tree, checkpoint: await signed, ...standing });
    }
    return this.#receipts.map(asDurable);
  }

  /**
   * Signs during the flush: the store has handed over the rows before this runs. Another thread would sign no
   * earlier, and waking it costs more. Nobody sees the signature before the rows are durable.
   */
  #sign(): Promise<string> {
    return Promise.resolve().then(() => this.#context.sign({ size: this.#tree.size, root: this.#tree.root() }));
  }

  abort(): Promise<void> {
    return this.#context.store.abort();
  }

  #add({ leaf, parts, columns, sensitive }: UnlinkedRow): void {
    const seq = this.#head.seq + 1;
    const { engine, log } = this.#context;
    const evidence = makeEvidence(parts, sensitive);
    const text = leafText({ ...leaf, engine, evidence: evidence.digest, log, prev: this.#head.hash, seq, v: 1 });
    this.#head = { seq, hash: leafHash(text), at: leaf.at };
    this.#nodes.push(...this.#tree.append(this.#head.hash));
    this.#rows.push({ seq, leaf: text, evidence: evidence.stored, ...columns });
    this.#receipts.push({ seq, hash: this.#head.hash });
  }
}
