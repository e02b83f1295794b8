import { count, windowStart, type CounterUpdate, type PolicySet } from "../../../core/src/contract/mod.ts";
import {
  activePolicy,
  countersOf,
  counterDigest,
  isSettled,
  settledBy,
  type OutcomeAtRow,
  type ActivePolicy,
  type ReportedCall,
  type SettledCounter,
} from "../../../gate/src/server/mod.ts";
import type { Mode } from "../../../core/src/wire/mod.ts";
import { withoutParts, type Leaf } from "../../../core/src/record/entry/mod.ts";
import { eachRow, type History, type RecordedRow } from "../history.ts";
import { everyRow, firstSince, type RowSpan } from "../span.ts";
import { Contracts, decideAgain, difference, type Again, type Difference } from "./decide-again.ts";
import { inputNotKept, otherKind, readLeaf, readReceiptCheck, recordedAt, type ReceiptCheck } from "./recorded.ts";
import type { JudgeOptions } from "./recorded-judge.ts";
import {
  outcomeMsMax,
  outcomeOfRow,
  ReplayLedger,
  type ReplayLedgerOptions,
  type OutcomeEffects,
} from "./replay-ledger.ts";

/** Receives the progress of a replay. */
export interface ReplayObserver {
  /** A row was read. */
  onRow(seq: number): void;
  /** A row cannot be decided again. */
  onSkip(seq: number, why: string): void;
}

export interface Agreement extends ReplayObserver, ReplayLedgerOptions {
  /**
   * Handles a check whose input was not stored whole. Returns a clause with the reason why it cannot be decided again,
   * its difference, or undefined to decide it without the input. By default none is decided again.
   */
  readonly withoutInput?: (policySet: PolicySet, recorded: ReceiptCheck) => Difference | string | undefined;
  onAgreement(recorded: ReceiptCheck, again: Again): void;
  differs(recorded: ReceiptCheck, difference: Difference): void;
  /** An outcome was settled again; undefined if a part of its call was erased. */
  readonly settled?: (row: RecordedRow, outcome: OutcomeAtRow, settled: OutcomeEffects | undefined) => void;
  /** The contract of the next rows is unavailable. */
  readonly lost?: () => void;
  /**
   * Reads values of counters from the ledger's own tables, if some of them depend on rows that cannot be read.
   *
   * @returns the events of each lookup's window before a row; undefined if the counter is not kept
   */
  readonly stored?: (lookups: Again["lookups"], leaf: Leaf) => Promise<readonly (string | undefined)[]>;
}

/**
 * Decides each row again under the contract that it names, and compares the result with the record.
 *
 * @returns the ledger after the last row
 */
export async function compareWithItself(history: History, observer: Agreement): Promise<ReplayLedger> {
  return new SelfReplay(history, observer).run();
}

/** Why a differing row is skipped if it has read a counter whose value then cannot be computed. */
export const standsOnErased = "a counter that it read depends on a row that cannot be read";

class SelfReplay {
  readonly #history: History;
  readonly #observer: Agreement;
  readonly #contracts: Contracts;
  readonly #ledger: ReplayLedger;
  #inForce: string | null = null;
  #policySet: PolicySet | string = "no contract";
  #policies = new Map<Mode, ActivePolicy>();

  constructor(history: History, observer: Agreement) {
    this.#history = history;
    this.#observer = observer;
    this.#contracts = new Contracts(history);
    this.#ledger = new ReplayLedger(history, observer);
  }

  async run(): Promise<ReplayLedger> {
    for await (const { row, leaf, recorded } of readReplayRows(this.#history, everyRow)) {
      this.#observer.onRow(row.seq);
      // A row that cannot be decided again still names the contract in force.
      if (leaf !== undefined) await this.#follow(leaf);
      if (recorded !== undefined) await this.#check(row, leaf, recorded);
      else if (leaf !== undefined) await this.#act(row, leaf);
    }
    return this.#ledger;
  }

  async #follow({ contract, seq }: Leaf): Promise<void> {
    if (contract === this.#inForce) return;
    this.#inForce = contract;
    this.#policies = new Map();
    this.#policySet = await this.#contracts.of(contract ?? "");
    if (typeof this.#policySet === "string") this.#observer.lost?.();
    else await this.#ledger.align(this.#policySet, seq);
  }

  async #check(row: RecordedRow, leaf: Leaf | undefined, recorded: ReceiptCheck | string): Promise<void> {
    const again = await this.#decide(row, recorded);
    if (leaf === undefined) return this.#ledger.lose(row);
    // Counts what was recorded: one row that differs does not make others differ.
    this.#ledger.count(row, leaf, this.#known, again?.effects);
    this.#ledger.pass(row, leaf, typeof recorded === "string" ? undefined : (recorded.trace.asked ?? {}));
  }

  /** @returns the decision if it agrees */
  async #decide(row: RecordedRow, recorded: ReceiptCheck | string): Promise<Again | undefined> {
    const policySet = this.#policySet;
    if (typeof recorded === "string") return this.#skip(row, recorded);
    if (typeof policySet === "string") return this.#skip(row, policySet);
    const without = this.#observer.withoutInput ?? ((): string => inputNotKept);
    const cut = recorded.cutInput && without(policySet, recorded);
    if (cut === undefined) return this.#compare(policyIn(this.#policies, policySet, recorded.leaf.mode), recorded);
    if (typeof cut === "string") return this.#skip(row, cut);
    this.#observer.differs(recorded, cut);
    return undefined;
  }

  #skip({ seq }: RecordedRow, why: string): undefined {
    this.#observer.onSkip(seq, why);
  }

  async #compare(policy: ActivePolicy, recorded: ReceiptCheck): Promise<Again | undefined> {
    const again = await decideAgain(this.#ledger, policy, recorded);
    const found = difference(recorded, again, this.#history);
    if (found === undefined) {
      this.#observer.onAgreement(recorded, again);
      return again;
    }
    const isOther = await this.#isOtherwise(policy, recorded, again);
    if (isOther === undefined) this.#observer.differs(recorded, found);
    else if (isOther) this.#observer.onAgreement(recorded, again);
    else this.#observer.onSkip(recorded.leaf.seq, standsOnErased);
    return undefined;
  }

  /**
   * Decides a differing check with the other values that its counters may have had.
   *
   * @returns true if one of them agrees; undefined if all values are certain
   */
  async #isOtherwise(policy: ActivePolicy, recorded: ReceiptCheck, { lookups }: Again): Promise<boolean | undefined> {
    const agrees = async (options: JudgeOptions): Promise<boolean> => {
      const again = await decideAgain(this.#ledger, policy, recorded, options);
      return difference(recorded, again, this.#history) === undefined;
    };
    const { own } = recorded.trace.asked ?? {};
    const without = this.#ledger.doubtful.filter(
      ({ counter, seq }) => seq !== own && lookups.some((lookup) => lookup.counter === counter),
    );
    if (without.length > 0 && (await agrees({ without }))) return true;
    const isLacking = lookups.some((lookup) => this.#ledger.isLacking(lookup));
    const values = isLacking ? await this.#observer.stored?.(lookups, recorded.leaf) : undefined;
    if (values !== undefined && (await agrees({ values }))) return true;
    return isLacking || without.length > 0 ? false : undefined;
  }

  async #act(row: RecordedRow, leaf: Leaf): Promise<void> {
    const outcome = outcomeOfRow(row);
    if (outcome !== undefined) await this.#settle(row, leaf, outcome);
    this.#ledger.pass(row, leaf);
  }

  async #settle(row: RecordedRow, leaf: Leaf, outcome: OutcomeAtRow): Promise<void> {
    const policySet = this.#known;
    const found =
      policySet && (await this.#ledger.settle(outcome, (call) => settledAgain(policySet, call, this.#ledger)));
    this.#observer.settled?.(row, outcome, found?.isWhole === true ? found.settled : undefined);
    // Older gates settled by other rules, so what the row records counts, if its keys are known.
    if (found === undefined || this.#ledger.hasSecret) this.#ledger.count(row, leaf, policySet);
    else this.#ledger.addSettled(outcome, found.settled);
  }

  /** The contract in force; undefined if it is unavailable. */
  get #known(): PolicySet | undefined {
    return typeof this.#policySet === "string" ? undefined : this.#policySet;
  }
}

/** The policy of a contract in a mode, made once for each mode. */
function policyIn(made: Map<Mode, ActivePolicy>, policySet: PolicySet, mode: Mode | null): ActivePolicy {
  return made.getOrInsertComputed(mode ?? "enforce", (own) => activePolicy(policySet, own));
}

/** What a call of older rows added to the counters of a contract. */
function settledAgain(policySet: PolicySet, call: ReportedCall, ledger: ReplayLedger): readonly SettledCounter[] {
  // Without the ledger's secret, the keys of recorded effects are not those of lookups.
  const evidence = ledger.hasSecret ? call.evidence : withoutParts(call.evidence, ["effects"]);
  return settledBy(policySet, { ...call, evidence }, (key) => ledger.digest(key));
}

export interface Comparison extends ReplayObserver {
  onDecision(recorded: ReceiptCheck, again: Again): void;
}

export interface Against {
  readonly policySet: PolicySet;
  /** Replaces the mode in which each row was answered. */
  readonly mode: Mode | undefined;
  /** The rows to decide; all by default. */
  readonly span?: RowSpan;
}

/**
 * Decides each row of a span as if another contract had come into force at the first of them. Its own decisions update
 * its counters. Before the span, its counters count the recorded calls, as they do when a gate reloads.
 */
export async function decideAllAgain(
  history: History,
  { policySet, mode, span = everyRow }: Against,
  observer: Comparison,
): Promise<void> {
  const uncounted = new Set<number>();
  const ledger = new ReplayLedger(history, {
    uncounted: (_counter, row, at) => {
      if (otherKind(row) !== undefined) return row.leaf.includes('"act":"resume"') ? at : -1;
      if (!uncounted.has(row.seq)) observer.onSkip(row.seq, notCounted);
      uncounted.add(row.seq);
      return -1;
    },
  });
  const called = new CallEffects(ledger, policySet);
  const policies = new Map<Mode, ActivePolicy>();
  const from = await firstCounted(history, policySet, span);
  ledger.start(policySet, from);
  let hasStarted = false;
  for await (const { row, leaf, recorded } of readReplayRows(history, { first: from, end: span.end })) {
    observer.onRow(row.seq);
    if (!hasStarted && row.seq >= span.first) await ledger.align(policySet, row.seq);
    hasStarted ||= row.seq >= span.first;
    if (hasStarted && recorded !== undefined) await decideOne(row, recorded);
    const outcome = hasStarted && recorded === undefined ? outcomeOfRow(row) : undefined;
    if (outcome !== undefined) await settle(row, outcome);
    const judgement = typeof recorded === "object" ? (recorded.trace.asked ?? {}) : undefined;
    if (leaf !== undefined) ledger.pass(row, leaf, judgement);
  }

  async function decideOne({ seq }: RecordedRow, recorded: ReceiptCheck | string): Promise<void> {
    if (typeof recorded === "string") return observer.onSkip(seq, recorded);
    if (recorded.cutInput !== undefined) return observer.onSkip(seq, inputNotKept);
    const policy = policyIn(policies, policySet, mode ?? recorded.leaf.mode);
    const again = await decideAgain(ledger, policy, recorded, { underAnother: true });
    observer.onDecision(recorded, again);
    ledger.tables.add(again.effects);
    if (again.answered === "ALLOW") called.add(again, recorded.leaf);
  }

  async function settle(row: RecordedRow, outcome: OutcomeAtRow): Promise<void> {
    const found = await ledger.settle(outcome, (call) =>
      call.leaf.seq < span.first ? settledAgain(policySet, call, ledger) : called.of(call.leaf.seq),
    );
    if (found === undefined) ledger.lose(row);
    else ledger.addSettled(outcome, found.settled);
  }
}

const notCounted =
  "it is before the first receipt to decide, and a counter cannot count it because a part cannot be read";

/** What calls added to the counters that their outcomes may change, as another contract counts them. */
class CallEffects {
  readonly #ledger: ReplayLedger;
  readonly #policySet: PolicySet;
  readonly #calls = new Map<number, { readonly at: number; readonly settled: readonly SettledCounter[] }>();
  #forgetAt = callsAtFirst;

  constructor(ledger: ReplayLedger, policySet: PolicySet) {
    this.#ledger = ledger;
    this.#policySet = policySet;
  }

  of(seq: number): readonly SettledCounter[] {
    return this.#calls.get(seq)?.settled ?? [];
  }

  add({ prepared, decision: { verdict }, answered, how }: Again, { at, seq }: Leaf): void {
    const updates = count(prepared, { verdict, answered, how, isDone: true }).filter(({ counter }) =>
      isSettled(counter),
    );
    if (updates.length === 0) return;
    const settled = [...Map.groupBy(updates, ({ counter }) => counter.identity)].map(([identity, moves]) => ({
      owned: { counter: (moves[0] as CounterUpdate).counter, policySet: this.#policySet },
      counter: counterDigest(identity),
      called: moves.map(({ key, amount }) => ({ key: this.#ledger.digest(key), amount, seq, at })),
    }));
    this.#calls.set(seq, { at, settled });
    if (this.#calls.size > this.#forgetAt) this.#forget(at);
  }

  /** Forgets calls that can have no outcome any more. It runs so seldom that the cost for each call is constant. */
  #forget(now: number): void {
    for (const [seq, { at }] of this.#calls) if (at < now - outcomeMsMax) this.#calls.delete(seq);
    this.#forgetAt = Math.max(callsAtFirst, this.#calls.size * 2);
  }
}

const callsAtFirst = 4096;

/** The first row before a span that a counter may count at the first row of the span. */
async function firstCounted(history: History, policySet: PolicySet, { first }: RowSpan): Promise<number> {
  const counters = countersOf(policySet);
  if (first === 1 || counters.length === 0) return first;
  const row = await rowFrom(history, first);
  if (row === undefined) return first;
  const at = recordedAt(row.leaf);
  const start = Math.min(...counters.map(({ counter }) => windowStart(counter.window, at)));
  return start < 0 ? 1 : Math.min(first, await firstSince(history, start));
}

async function rowFrom(history: History, seq: number): Promise<RecordedRow | undefined> {
  for await (const [row] of history.scan(seq)) if (row !== undefined) return row;
  return undefined;
}

/** A row, as far as it can be read. */
interface ReplayRow {
  readonly row: RecordedRow;
  /** Undefined if the leaf cannot be read. */
  readonly leaf: Leaf | undefined;
  /** The check, or a clause with the reason why it cannot be decided again; undefined if the row is none. */
  readonly recorded: ReceiptCheck | string | undefined;
}

async function* readReplayRows(history: History, { first, end }: RowSpan): AsyncGenerator<ReplayRow> {
  for await (const row of eachRow(history, first, end)) {
    const recorded = otherKind(row) === undefined ? readReceiptCheck(row) : undefined;
    const leaf = typeof recorded === "object" ? recorded.leaf : readLeaf(row);
    yield { row, leaf: typeof leaf === "string" ? undefined : leaf, recorded };
  }
}
