import { count, windowStart, type PolicySet, type Prepared } from "../../contract/mod.ts";
import { countersOf, isSettled, recountRow, type OwnedCounter } from "../../gate/mod.ts";
import type { Mode } from "../../wire/mod.ts";
import type { Leaf } from "../../ledger/entry/mod.ts";
import type { History, RecordedRow } from "../history.ts";
import { everyRow, firstSince, type Span } from "../span.ts";
import {
  answeredWith,
  askAgain,
  Contracts,
  decideAgain,
  decideAsked,
  difference,
  type Again,
  type Difference,
} from "./decide-again.ts";
import {
  inputNotKept,
  otherKind,
  movedCounters,
  readLeaf,
  readRecorded,
  recordedAt,
  type Recorded,
} from "./recorded.ts";
import { counterDigest, ReplayCounters } from "./replay-counters.ts";

/** Receives the progress of a replay. */
export interface ReplayObserver {
  /** A row was read. */
  passed(seq: number): void;
  /** A row cannot be decided again. */
  skipped(seq: number, why: string): void;
}

export interface Agreement extends ReplayObserver {
  /**
   * Handles a check whose input was not stored whole. Returns a clause with the reason why it cannot be decided again,
   * its difference, or undefined to decide it without the input. By default none is decided again.
   */
  readonly withoutInput?: (policySet: PolicySet, recorded: Recorded) => Difference | string | undefined;
  agreed(recorded: Recorded): void;
  differs(recorded: Recorded, difference: Difference): void;
}

/** Decides each row again under the contract that it names, and compares the result with the record. */
export async function holdAgainstItself(history: History, observer: Agreement): Promise<void> {
  const contracts = new Contracts(history);
  const counters = new ReplayCounters(history);
  let inForce: string | null = null;
  let policySet: PolicySet | string = "no contract";
  for await (const check of checksOf(history, { from: 1, span: everyRow }, observer, counters)) {
    const { leaf, recorded } = check;
    // A row that cannot be decided again still names the contract in force.
    if (leaf !== undefined && leaf.contract !== inForce) {
      inForce = leaf.contract;
      policySet = await contracts.of(inForce ?? "");
      if (typeof policySet !== "string") await counters.align(policySet, leaf.seq);
    }
    if (typeof recorded === "string") {
      skip(check, recorded, observer, counters);
      continue;
    }
    if (typeof policySet === "string") {
      skip(check, policySet, observer, counters);
      continue;
    }
    const without = observer.withoutInput ?? ((): string => inputNotKept);
    const cut = recorded.cutInput && without(policySet, recorded);
    if (cut !== undefined) {
      moveCut(recorded, policySet, counters);
      if (typeof cut === "string") observer.skipped(recorded.leaf.seq, cut);
      else observer.differs(recorded, cut);
      continue;
    }
    const asked = askAgain(policySet, recorded);
    const { own, how } = recorded.trace.asked ?? {};
    const again = decideAsked(asked, (lookup) => counters.value(lookup, own), recorded.leaf.mode ?? "enforce");
    const found = difference(recorded, again, history);
    if (found === undefined) observer.agreed(recorded);
    else if (asked.lookups.some((lookup) => counters.isLacking(lookup)))
      observer.skipped(recorded.leaf.seq, standsOnErased);
    else observer.differs(recorded, found);
    // Counts what was recorded: one row that differs does not make others differ.
    const { verdict, answered } = recorded.leaf;
    if (verdict !== null && answered !== null)
      countAgain(counters, again.prepared, { verdict, answered, how }, recorded.leaf);
  }
}

/** Why a differing row is skipped if it has read a counter whose value then cannot be computed. */
export const standsOnErased = "a counter that it read depends on a row that cannot be read";

export interface Comparison extends ReplayObserver {
  decided(recorded: Recorded, again: Again): void;
}

export interface Against {
  readonly policySet: PolicySet;
  /** Replaces the mode in which each row was answered. */
  readonly mode: Mode | undefined;
  /** The rows to decide; all by default. */
  readonly span?: Span;
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
  const counters = new ReplayCounters(history);
  await counters.align(policySet, 1);
  const owned = countersOf(policySet);
  const from = await firstCounted(history, owned, span);
  for await (const check of checksOf(history, { from, span }, observer, counters)) {
    const { recorded } = check;
    if (check.row.seq < span.first) {
      countRecorded(check, owned, observer, counters);
      continue;
    }
    if (typeof recorded === "string") {
      skip(check, recorded, observer, counters);
      continue;
    }
    if (recorded.cutInput !== undefined) {
      skip(check, inputNotKept, observer, counters);
      continue;
    }
    const again = decideAgain(policySet, recorded, counters, mode ?? recorded.leaf.mode ?? "enforce");
    observer.decided(recorded, again);
    const { decision, prepared } = again;
    // What a person did to the call stays, where the other contract leaves the call to a person too.
    const asked = recorded.trace.asked?.how;
    const how = again.answered === "ESCALATE" || asked === "stopped" ? asked : undefined;
    const answered = answeredWith(again, recorded);
    countAgain(counters, prepared, { verdict: decision.verdict, answered, how }, recorded.leaf);
  }
}

function countAgain(
  counters: ReplayCounters,
  prepared: Prepared,
  outcome: Parameters<typeof count>[1],
  { at, seq }: Pick<Leaf, "at" | "seq">,
): void {
  counters.add(count(prepared, outcome), at, seq);
  if (outcome.answered === "ALLOW") counters.called(count(prepared, { ...outcome, isDone: true }), at, seq);
}

/** The first row before a span that a counter may count at the first row of the span. */
async function firstCounted(history: History, owned: readonly OwnedCounter[], { first }: Span): Promise<number> {
  if (first === 1 || owned.length === 0) return first;
  const row = await rowFrom(history, first);
  if (row === undefined) return first;
  const at = recordedAt(row.leaf);
  const start = Math.min(...owned.map(({ counter }) => windowStart(counter.window, at)));
  return start < 0 ? 1 : Math.min(first, await firstSince(history, start));
}

async function rowFrom(history: History, seq: number): Promise<RecordedRow | undefined> {
  for await (const [row] of history.scan(seq)) if (row !== undefined) return row;
  return undefined;
}

/** A row before the span is not decided again: the counters count it by its recorded verdict and answer. */
function countRecorded(
  { row, leaf }: Check,
  owned: readonly OwnedCounter[],
  observer: ReplayObserver,
  counters: ReplayCounters,
): void {
  const found = owned.map((each) => leaf && recountRow(each, leaf, row.evidence));
  if (found.includes(undefined)) observer.skipped(row.seq, notCounted);
  for (const updates of found) counters.add(updates ?? [], recordedAt(row.leaf), row.seq);
  for (const each of owned)
    if (leaf !== undefined && isSettled(each.counter))
      counters.called(recountRow(each, leaf, row.evidence, true) ?? [], leaf.at, row.seq);
}

const notCounted =
  "it is before the first receipt to decide, and a counter cannot count it because a part cannot be read";

/** The row of a check, as far as it can be read. */
interface Check {
  readonly row: RecordedRow;
  /** Undefined if the leaf cannot be read. */
  readonly leaf: Leaf | undefined;
  /** Or a clause with the reason why it cannot be decided again. */
  readonly recorded: Recorded | string;
}

interface Walk {
  /** The first row to read, at or before the first of the span. */
  readonly from: number;
  readonly span: Span;
}

async function* checksOf(
  history: History,
  { from, span }: Walk,
  observer: ReplayObserver,
  counters: ReplayCounters,
): AsyncGenerator<Check> {
  for await (const slice of history.scan(from)) {
    for (const row of slice) {
      if (row.seq >= span.end) return;
      observer.passed(row.seq);
      const recorded = otherKind(row) === undefined ? readRecorded(row) : undefined;
      const leaf = typeof recorded === "object" ? recorded.leaf : readLeaf(row);
      const read = typeof leaf === "string" ? undefined : leaf;
      if (recorded === undefined) {
        if (read !== undefined) counters.act(read, row.evidence);
        continue;
      }
      yield { row, leaf: read, recorded };
      counters.passed(row);
    }
  }
}

/** The call still updates counters that need no input. Otherwise an agent could prevent their replay. */
function moveCut({ leaf, row }: Recorded, policySet: PolicySet, counters: ReplayCounters): void {
  const lacking = new Set(movedCounters(row));
  for (const owned of countersOf(policySet)) {
    const digest = counterDigest(owned.counter.identity);
    const updates = lacking.has(digest) ? recountRow(owned, leaf, row.evidence) : undefined;
    if (updates === undefined || updates.length === 0) continue;
    counters.add(updates, leaf.at, leaf.seq);
    lacking.delete(digest);
  }
  counters.skip(leaf.at, lacking);
}

function skip({ row }: Check, why: string, observer: ReplayObserver, counters: ReplayCounters): void {
  counters.skip(recordedAt(row.leaf), movedCounters(row));
  observer.skipped(row.seq, why);
}
