import { canonical } from "../wire/mod.ts";
import { cancelledBy, reopenedBy, withStopAct, type Approval, type Grant, type Stops } from "../approvals/mod.ts";
import type {
  CheckEntry,
  ChangeEntry,
  OutcomeEntry,
  ResultEntry,
  CounterEvent,
  CounterLookup,
  FoldedEvent,
} from "./entries.ts";
import { readApprovals, storedApproval } from "./entry/approval-rows.ts";
import { isAboutStops, stopActOf } from "./entry/stop-rows.ts";
import { withGrantRow } from "./entry/grant-rows.ts";
import type { Erasure } from "./entry/erasure.ts";
import { effectsText, outcomeAct, outcomeBody, outcomeEffects } from "./entry/outcome-rows.ts";
import { makeEvidence, type SensitiveMember } from "./entry/evidence.ts";
import { leafHash, leafText, type Leaf } from "./entry/leaf.ts";
import { asDurable, type Durable, type Receipt } from "./entry/receipt.ts";
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
import { outcomesAt, rowsAt } from "./history/table-reads.ts";
import { PendingCounters } from "./pending-counters.ts";
import { readRepeat, repeatId, storedRepeat, type RecordedAnswer, type StoredRepeat } from "./entry/repeat.ts";
import { changeColumns, resultVerdict, type StoredRow, type StoredApproval, type StoredOutcome } from "./entry/row.ts";
import type { Checkpoint } from "./tree/checkpoint.ts";
import type { Frontier, TreeNode } from "./tree/merkle.ts";
import { callText } from "./entry/verifier.ts";

export interface LedgerHead {
  readonly seq: number;
  readonly hash: string;
  /** Milliseconds; 0 before the first row. */
  readonly at: number;
}

export interface TransactionContext {
  readonly head: LedgerHead;
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
  readonly committed: (reached: Reached) => void;
}

/** A tree's size and root, which the head's signature covers. */
export type TreeHead = Pick<Checkpoint, "size" | "root">;

/** The ledger after a transaction with rows. */
export interface Reached {
  readonly head: LedgerHead;
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
  readonly #counters: PendingCounters;
  readonly #rows: StoredRow[] = [];
  readonly #receipts: Receipt[] = [];
  readonly #erasures: Erasure[] = [];
  readonly #approvals: StoredApproval[] = [];
  readonly #released: number[] = [];
  readonly #repeats: StoredRepeat[] = [];
  readonly #outcomes: StoredOutcome[] = [];
  #head: LedgerHead;
  readonly #tree: Frontier;
  readonly #nodes: TreeNode[] = [];
  #stops: Stops;
  #grants: readonly Grant[];

  constructor(context: TransactionContext) {
    this.#context = context;
    this.#counters = new PendingCounters(context.store, context.digest);
    this.#head = context.head;
    this.#tree = context.tree;
    this.#stops = context.stops;
    this.#grants = context.grants;
  }

  /** The last row, including the rows of this transaction. */
  get head(): LedgerHead {
    return this.#head;
  }

  /** The last row of a person's act before this transaction; 0 if there is none. */
  get changed(): number {
    return this.#context.store.changed;
  }

  /** The shared ledger's contract and mode; undefined if one gate owns the ledger, or if no gate has served it yet. */
  get inForce(): InForce | undefined {
    return this.#context.store.inForce;
  }

  /** The verifier key on record for the heads of a shared ledger. */
  get signer(): string | undefined {
    return this.#context.store.signer;
  }

  /** Milliseconds by the shared ledger's clock; undefined if one gate owns the ledger. */
  get sharedTime(): number | undefined {
    return this.#context.store.at;
  }

  /** Reads the values of counters before this transaction. @throws {NotKept} or a fault */
  look(lookups: readonly CounterLookup[]): Promise<void> {
    return this.#counters.look(lookups);
  }

  /** The counter's value after the transaction's rows so far; undefined if its history is not known. */
  value(lookup: CounterLookup): string | undefined {
    return this.#counters.value(lookup);
  }

  /** The ledger's stops, including those of this transaction. */
  get stops(): Stops {
    return this.#stops;
  }

  /** The grants that no row has ended, including those of this transaction. */
  get grants(): readonly Grant[] {
    return this.#grants;
  }

  /** The ledger's name. */
  get log(): string {
    return this.#context.log;
  }

  /** True if a call was ever parked for a person. */
  get hasApprovals(): boolean {
    return this.#context.store.hasApprovals;
  }

  /** Reads the approvals that calls may meet, as they were before this transaction. */
  async approvals(lookup: ApprovalLookup): Promise<ApprovalsFound & { readonly approvals: readonly Approval[] }> {
    const found = this.hasApprovals ? await this.#context.store.approvals(lookup) : noApprovals;
    return { ...found, approvals: readApprovals(found.kept) };
  }

  /** Reads open approvals whose time has ended: at most 10,000. */
  async dueApprovals(at: number): Promise<readonly Approval[]> {
    return this.hasApprovals ? readApprovals(await this.#context.store.dueApprovals(at)) : [];
  }

  /** Reads rows before this transaction by their numbers. */
  rowsAt(rows: readonly number[]): Promise<readonly StoredRow[]> {
    return rowsAt(this.#context.store.tables, rows);
  }

  /** Reads the rows that opened the approvals which are open before this transaction. */
  async openApprovals(): Promise<readonly StoredRow[]> {
    if (!this.hasApprovals) return [];
    const open = await this.#context.store.dueApprovals(Number.MAX_SAFE_INTEGER);
    return open.map(({ row }) => row);
  }

  /** Adds an amount that an earlier row holds, unless the store has it. */
  hold({ key, ...event }: FoldedEvent): void {
    this.#counters.hold({ ...event, key: this.#context.digest(key), held: true });
  }

  /** A keyed digest of a text, in hex. The text begins with its domain. */
  digest(text: string): string {
    return this.#context.digest(text);
  }

  /** Keeps an approval with the rows of this transaction. */
  keepApproval(approval: Approval): void {
    this.#approvals.push(storedApproval(approval, (text) => this.digest(text)));
  }

  /** Reads the last outcomes of calls before this transaction, by the rows of their checks. */
  outcomes(rows: readonly number[]): Promise<readonly StoredOutcome[]> {
    return outcomesAt(this.#context.store.tables, rows);
  }

  /** The id under which the answer of a check is recorded. */
  repeatId(key: string, callId: string): string {
    return repeatId(key, callId, (text) => this.digest(text));
  }

  /** Reads recorded answers of checks before this transaction, by their ids. @throws {Fault} if one was changed */
  async recordedAnswers(ids: readonly string[]): Promise<ReadonlyMap<string, RecordedAnswer>> {
    const found = await this.#context.store.tables.where("repeats", "id", ids);
    return new Map(
      found.map((stored) => {
        const answer = readRepeat(stored, (text) => this.digest(text));
        if (answer === undefined)
          throw new Fault("the recorded answer of a check was changed: restore the ledger from a backup");
        return [stored.id, answer];
      }),
    );
  }

  /** Records the answer of a check, for exact repeats. */
  recordAnswer(id: string, answer: RecordedAnswer): void {
    this.#repeats.push(storedRepeat(id, answer, (text) => this.digest(text)));
  }

  /** Ends the amounts that a row holds: from here on they do not count. */
  release(row: number, holds: readonly StoredEffect[]): void {
    this.#released.push(row);
    this.#counters.subtract(holds);
  }

  /**
   * Adds the row of a check. Nothing is durable before `commit`.
   *
   * @returns the row's number and hash, and what it added to counters
   */
  append(entry: CheckEntry, moves: readonly CounterEvent[]): Receipt & { readonly effects: readonly StoredEffect[] } {
    const effects = this.#counters.count(moves, this.#head.seq + 1, entry.at);
    this.#checksum(
      {
        act: null,
        answered: entry.answered,
        at: entry.at,
        check: null,
        contract: `sha256:${entry.contract}`,
        key: entry.keyName,
        kind: "check",
        mode: entry.mode,
        rule: entry.rule,
        tool: entry.routed ? entry.toolName : null,
        verdict: entry.verdict,
      },
      [
        callText(entry.alias ?? entry.toolName, entry.sessionId, {
          approval: entry.approvalId,
          keyKind: entry.keyKind,
        }),
        entry.inputText,
        entry.platformText ?? "null",
        JSON.stringify(entry.reason),
        canonical(entry.outcome),
        effectsText(effects),
      ],
      { session: entry.sessionId, tool: entry.toolName, verdict: entry.verdict },
      entry.sensitive,
    );
    return { seq: this.#head.seq, hash: this.#head.hash, effects };
  }

  /**
   * Adds the row of a person's act, which changes no counter.
   *
   * @returns the approvals that it ends or reopens, after it
   */
  change({ erases, ends = [], reopens = [], ...entry }: ChangeEntry): readonly Approval[] {
    if (erases !== undefined) this.#erasures.push(erases);
    this.#change(entry, "[]");
    const { seq } = this.#head;
    const row = this.#rows.at(-1);
    if (row !== undefined && (this.#grants.length > 0 || entry.act.startsWith("grant.")))
      this.#grants = withGrantRow(this.#grants, row, (text) => this.digest(text));
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
    this.#change({ ...entry, act: outcomeAct, body: outcomeBody(outcome) }, outcomeEffects(events, takenBack));
    this.#counters.settle(events, takenBack);
    this.#outcomes.push({ seq: outcome.row, row: seq, status: outcome.status });
  }

  #change(
    { at, by, act, body, reason, contract, mode }: Omit<ChangeEntry, "ends" | "erases" | "reopens">,
    effects: string,
  ): void {
    this.#checksum(
      {
        act,
        answered: null,
        at,
        check: null,
        contract: `sha256:${contract}`,
        key: by,
        kind: "change",
        mode,
        rule: null,
        tool: null,
        verdict: null,
      },
      ["null", canonical(body), "null", JSON.stringify(reason), "{}", effects],
      changeColumns,
    );
  }

  /** Adds the row of a tool's result, which changes no counter. */
  result({ values, ...entry }: ResultEntry): void {
    const { at, check, mode, toolName, sessionId } = entry;
    const digests = values.map((value) => this.#context.digest(`${resultDomain}${value}`));
    this.#checksum(
      {
        act: null,
        answered: null,
        at,
        check,
        contract: `sha256:${entry.contract}`,
        key: entry.keyName,
        kind: "result",
        mode,
        rule: null,
        tool: entry.routed ? toolName : null,
        verdict: null,
      },
      [
        callText(toolName, sessionId),
        canonical({ digests: [...new Set(digests)].toSorted() }),
        "null",
        "null",
        "{}",
        "[]",
      ],
      { session: sessionId, tool: toolName, verdict: resultVerdict },
    );
  }

  /** Like `Ledger.keepCounter`, but becomes durable no later than this transaction's rows. */
  async keepCounter(counter: Omit<StoredCounter, "digest">, folded: readonly FoldedEvent[]): Promise<void> {
    const stored = this.#context.counterOf(counter);
    await this.#context.store.keepCounter(
      stored,
      folded.map(({ key, ...event }) => ({ ...event, key: this.#context.digest(key) })),
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
      const kept = {
        erasures: this.#erasures,
        approvals: this.#approvals,
        released: this.#released,
        repeats: this.#repeats,
        outcomes: this.#outcomes,
      };
      await store.commit(this.#rows, this.#counters.effects, { inForce, signer, tree, ...kept });
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

  #checksum(
    leaf: Omit<Leaf, "engine" | "evidence" | "log" | "prev" | "seq" | "v">,
    parts: readonly string[],
    columns: Pick<StoredRow, "session" | "tool" | "verdict">,
    sensitive: readonly SensitiveMember[] = [],
  ): void {
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

/** A prefix of values, so that a value and a counter's key never have the same digest. */
const resultDomain = "svc-gate/result/1\n";
