import type { PolicySet, Lookup } from "../../contract/mod.ts";
import {
  readResume,
  resetThroughOf,
  type EventPosition,
  type KeptCounter,
  type LedgerHistory,
} from "../../ledger/mod.ts";
import { placedOutcome, reportedCall, rowsBehind, settleCounters, settledBy } from "../../gate/mod.ts";
import { outcomeRows, wholeText, type Leaf } from "../../ledger/entry/mod.ts";
import type { RecordedRow } from "../history.ts";
import {
  askAgain,
  Contracts,
  decideAsked,
  difference,
  type AskedAgain,
  type Difference,
} from "../replay/decide-again.ts";
import { hasErasedPart, inputNotKept, otherKind, readLeaf, readRecorded, type Recorded } from "../replay/recorded.ts";
import { standsOnErased } from "../replay/replay.ts";
import { counterDigest } from "../replay/replay-counters.ts";
import { Folds } from "./folds.ts";
import { Holds, type Held } from "./holds.ts";
import { VerdictAccumulator, type DeepFound } from "./found.ts";
import { addDecimals, visible } from "../../wire/mod.ts";
import { between } from "./totals.ts";

/**
 * Decides every recorded check again under the contract that it names, and folds the counters again: the walk over the
 * chain cannot check this. Run that walk too, because it compares every total that is read here with the receipts.
 *
 * Rows are read in slices, and the values of counters are looked up in the ledger, so memory does not grow with it.
 *
 * @param passed receives the number of each row that was examined
 * @returns the findings through the last row that existed when the ledger was opened
 */
export async function replayAndFold(ledger: LedgerHistory, passed: (seq: number) => void): Promise<DeepFound> {
  const replay = new DeepReplay(ledger);
  const last = ledger.rows;
  for await (const slice of ledger.scan(1)) {
    const rows = slice.filter(({ seq }) => seq <= last);
    await replay.take(rows);
    passed(Math.min(last, slice.at(-1)?.seq ?? 0));
    if (rows.length < slice.length) break;
  }
  return replay.end(last);
}

/** A check that will be decided again. */
interface Pending {
  readonly recorded: Recorded;
  readonly asked: AskedAgain;
  readonly acts: CounterActs;
  /** For each lookup, what approvals held when the row was decided. */
  readonly held: readonly Held[];
}

/** Changes to counters by acts before a row: milliseconds by the counter's digest. */
interface CounterActs {
  /** The counter was unknown through this time. */
  readonly lost: ReadonlyMap<string, number>;
  /** The counter counted nothing at or before this time. */
  readonly reset: ReadonlyMap<string, number>;
}

/** The values of the counters that rows look up. */
type Values = ReadonlyMap<Lookup, string | undefined>;

class DeepReplay {
  readonly #ledger: LedgerHistory;
  readonly #contracts: Contracts;
  readonly #folds: Folds;
  readonly #kept: ReadonlyMap<string, KeptCounter>;
  #acts: CounterActs = { lost: new Map(), reset: new Map() };
  #named: string | null = null;
  #policySet: PolicySet | string = "no contract";
  readonly #verdicts = new VerdictAccumulator();
  /** True after the first outcome. */
  #hasOutcomes = false;
  readonly #holds: Holds;
  #heldUnder: string | null = null;

  constructor(ledger: LedgerHistory) {
    this.#ledger = ledger;
    this.#contracts = new Contracts(ledger);
    this.#folds = new Folds(ledger);
    this.#holds = new Holds(ledger);
    this.#kept = new Map(ledger.kept.map((counter) => [counter.digest, counter]));
  }

  async take(rows: readonly RecordedRow[]): Promise<void> {
    const pending: Pending[] = [];
    for (const row of rows) {
      await this.#hold(row);
      if (otherKind(row) !== undefined) {
        this.#act(row);
        this.#holds.settle(row);
        await this.#outcome(row);
        continue;
      }
      const next = await this.#pendingOf(row);
      this.#holds.settle(row);
      if (typeof next === "string") this.#verdicts.skipped(row.seq, next);
      else if ("what" in next) this.#verdicts.differed(row.seq, next);
      else pending.push(next);
    }
    const values = await this.#valuesOf(pending);
    for (const each of pending) this.#compare(each, values);
  }

  async end(last: number): Promise<DeepFound> {
    const folds = await this.#folds.end(last, this.#acts.reset);
    const wrong = [folds.firstWrong, await this.#holds.firstWrong()].filter((each) => each !== undefined);
    const [firstWrong] = wrong.toSorted((one, other) => one.seq - other.seq);
    return { ...this.#verdicts.found(last), counters: { ...folds, firstWrong } };
  }

  /** A contract comes into force with the first row that names it, of whatever kind. */
  async #hold(row: RecordedRow): Promise<void> {
    const leaf = readLeaf(row);
    if (typeof leaf === "string" || leaf.contract === this.#heldUnder) return;
    this.#heldUnder = leaf.contract;
    const policySet = await this.#contracts.of(leaf.contract ?? "");
    if (typeof policySet !== "string") this.#holds.align(policySet);
  }

  async #pendingOf(row: RecordedRow): Promise<Pending | Difference | string> {
    const recorded = readRecorded(row);
    if (typeof recorded === "string") {
      // A check with erased parts still names its contract, and counters begin with it.
      const leaf = readLeaf(row);
      if (typeof leaf !== "string") await this.#inForce({ leaf });
      return recorded;
    }
    const policySet = await this.#inForce(recorded);
    if (typeof policySet === "string") return policySet;
    const cut = withoutInput(policySet, recorded);
    if (cut !== undefined) return cut;
    const asked = askAgain(policySet, recorded);
    return {
      recorded,
      asked,
      acts: this.#acts,
      held: asked.lookups.map((lookup) => this.#holds.heldFor(lookup, recorded)),
    };
  }

  /** A row that records a loss makes counters unknown. A reset counter is known, and counts from zero. */
  #act(row: RecordedRow): void {
    const leaf = readLeaf(row);
    const resumed = typeof leaf === "string" ? undefined : readResume(leaf, row.evidence);
    if (typeof leaf === "string" || resumed === undefined) return;
    const [lost, reset] = [new Map(this.#acts.lost), new Map(this.#acts.reset)];
    for (const digest of resumed.unknown) lost.set(digest, leaf.at);
    for (const digest of resumed.reset.keys()) {
      lost.delete(digest);
      reset.set(digest, resetThroughOf(leaf.at));
    }
    this.#acts = { lost, reset };
  }

  /** Computes again what an outcome did to counters. */
  async #outcome(row: RecordedRow): Promise<void> {
    const leaf = readLeaf(row);
    const outcome = typeof leaf === "string" ? undefined : placedOutcome(leaf, row.evidence);
    if (typeof leaf === "string" || outcome === undefined) return;
    this.#hasOutcomes = true;
    const policySet = await this.#inForce({ leaf });
    const behind = new Map((await this.#ledger.rowsAt(rowsBehind(outcome))).map((each) => [each.seq, each]));
    const call = reportedCall(outcome, (seq) => behind.get(seq));
    if (call === undefined || typeof policySet === "string" || hasErasedPart(call.evidence)) return;
    if (outcome.rules !== outcomeRows.outcomeRules) return; // an older gate settled it by other rules
    const settled = settledBy(policySet, call, (key) => this.#ledger.keyDigest(key));
    const { added, taken } = await settleCounters(settled, call.outcomes, this.#ledger);
    const [was, is] = [wholeText(row.evidence, "effects") ?? "", outcomeRows.outcomeEffects(added, taken)];
    if (was !== is) this.#verdicts.differed(leaf.seq, { what: "effects", was, is });
  }

  /** The contract in force for the row, or a clause with the reason why it is unavailable. */
  async #inForce({ leaf }: Pick<Recorded, "leaf">): Promise<PolicySet | string> {
    if (leaf.contract === this.#named) return this.#policySet;
    this.#named = leaf.contract;
    this.#policySet = await this.#contracts.of(leaf.contract ?? "");
    if (typeof this.#policySet === "string") this.#folds.lose();
    else await this.#folds.align(this.#policySet, leaf.seq);
    return this.#policySet;
  }

  /** What outcomes of rows before each row had taken back. A ledger without outcomes is not asked. */
  async #takenBefore(
    asked: readonly { readonly lookup: Lookup; readonly after: number; readonly leaf: Leaf }[],
  ): Promise<readonly (readonly string[])[]> {
    if (!this.#hasOutcomes) return [];
    return this.#ledger.taken(
      asked.map(({ lookup, after, leaf }) => {
        const key = this.#ledger.keyDigest(lookup.key);
        return { counter: counterOf(lookup), key, after, before: leaf.seq };
      }),
    );
  }

  #compare({ recorded, asked, acts: { lost }, held }: Pending, values: Values): void {
    const { seq, at, mode } = recorded.leaf;
    const differing = (unknown: (counter: string) => number, of: Values = values): ReturnType<typeof difference> =>
      difference(
        recorded,
        decideAsked(
          asked,
          (lookup) => (lookup.after < unknown(counterOf(lookup)) ? undefined : of.get(lookup)),
          mode ?? "enforce",
        ),
        this.#ledger,
      );
    const isUncertain = held.some(({ doubtful, isUnknown }) => isUnknown || doubtful !== "0");
    const unknown = (counter: string): number => this.#kept.get(counter)?.unknownThrough ?? -1;
    const then = (counter: string): number =>
      Math.max(lost.get(counter) ?? -1, unknown(counter) < at ? unknown(counter) : -1);
    const found = differing(then);
    // Like a later loss, a reset replaces the record of the rows that were unknown before it.
    const now = (counter: string): number => Math.max(unknown(counter), this.#kept.get(counter)?.resetThrough ?? -1);
    const isDoubtful = (lookup: Lookup): boolean =>
      now(counterOf(lookup)) >= at && lookup.after < now(counterOf(lookup));
    if (found === undefined) this.#verdicts.agreed();
    else if (isUncertain) {
      const less = asked.lookups.map((lookup, index) => {
        const value = values.get(lookup);
        return [lookup, value && addDecimals(value, `-${held[index]?.doubtful ?? "0"}`)] as const;
      });
      if (differing(then, new Map(less)) === undefined) this.#verdicts.agreed();
      else this.#verdicts.skipped(seq, standsOnErased);
    } else if (!asked.lookups.some(isDoubtful)) this.#verdicts.differed(seq, found);
    // A later loss, which made a counter unknown, has covered everything before it that was unknown.
    else if (differing(now) === undefined) this.#verdicts.agreed();
    else this.#verdicts.skipped(seq, standsOnErased);
  }

  /** The result of each lookup when its row was decided: the events before the row, without those before its window. */
  async #valuesOf(pending: readonly Pending[]): Promise<Values> {
    const asked = pending.flatMap(({ recorded, acts, held, asked: { lookups } }) =>
      lookups.map((lookup, index) => {
        const after = Math.max(lookup.after, acts.reset.get(counterOf(lookup)) ?? -1);
        return { lookup, after, leaf: recorded.leaf, held: held[index]?.amount ?? "0" };
      }),
    );
    const values = new Map<Lookup, string | undefined>();
    for (let from = 0; from < asked.length; from += lookupsAtOnce) {
      const some = asked.slice(from, from + lookupsAtOnce);
      const places = some.flatMap(({ lookup, after, leaf }): readonly EventPosition[] => {
        const counter = counterOf(lookup);
        const key = this.#ledger.keyDigest(lookup.key);
        const { at, seq } = leaf;
        const start = Math.max(-1, Math.min(after, at));
        return [
          { counter, key, at: start, seq: start < at ? Number.MAX_SAFE_INTEGER : seq },
          { counter, key, at, seq },
        ];
      });
      const totals = await this.#ledger.totals(places);
      const taken = await this.#takenBefore(some);
      for (const [index, { lookup, held }] of some.entries()) {
        const value = between(totals[index * 2], totals[index * 2 + 1]);
        const whole = value === undefined ? undefined : addDecimals(value, held);
        values.set(
          lookup,
          (taken[index] ?? []).reduce((sum, amount) => sum && addDecimals(sum, `-${amount}`), whole),
        );
      }
    }
    return values;
  }
}

/**
 * Why a check cannot be decided again if its input was not stored whole. It can be if no contract routes the tool. A
 * gate always stores the whole input of a call that a rule decided.
 */
export function withoutInput(
  policySet: PolicySet,
  { cutInput, leaf, request: { toolName } }: Recorded,
): Difference | string | undefined {
  if (cutInput === undefined) return undefined;
  if (!policySet.tools.has(policySet.aliases.get(toolName) ?? toolName)) return undefined;
  const rule = leaf.rule ?? "";
  if (leaf.verdict === "BLOCK" && /\.\$(?:input|platform|requires\.[0-9]+)$/.test(rule)) return inputNotKept;
  return { what: "input", was: "a part of it", is: `all of it, since ${visible(rule)} decided` };
}

/** Counters that are looked up together: bounds memory if a row reads many. */
const lookupsAtOnce = 4096;

function counterOf({ counter }: Lookup): string {
  return counterDigest(counter.identity);
}
