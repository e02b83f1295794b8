import { isSettled, settlementOf, type CountedAmount, type OutcomeAtRow, type Settlement } from "./settle.ts";
import { recountRow, type OwnedCounter } from "../policy/owned-counters.ts";
import { parseLeaf, type Leaf, type StoredRow, outcomeRows } from "../../../../core/src/record/entry/mod.ts";

/** A call that was let through, and all of its outcomes up to one. */
export interface ReportedCall {
  readonly leaf: Leaf;
  readonly evidence: string;
  readonly outcomes: readonly OutcomeAtRow[];
}

/** The rows that must be read to know what an outcome does: those of the check and of the earlier outcomes. */
export function rowsBehind({ row, before }: Pick<OutcomeAtRow, "before" | "row">): readonly number[] {
  return [row, ...before];
}

/** Reads an outcome with its row; undefined if the row has none. */
export function readOutcomeAt(leaf: Leaf, evidence: string): OutcomeAtRow | undefined {
  const outcome = outcomeRows.readOutcome(leaf, evidence);
  return outcome && { ...outcome, seq: leaf.seq, at: leaf.at };
}

/** Reads the outcome in a row, with that row; undefined if the row has none. */
export function outcomeIn({ leaf: text, evidence }: Pick<StoredRow, "evidence" | "leaf">): OutcomeAtRow | undefined {
  const leaf = parseLeaf(text);
  return leaf && readOutcomeAt(leaf, evidence);
}

/**
 * Returns the call of an outcome.
 *
 * @param rowOf returns the rows of `rowsBehind`
 * @returns undefined if a row is missing or cannot be read
 */
export function reportedCall(
  outcome: OutcomeAtRow,
  rowOf: (seq: number) => Pick<StoredRow, "evidence" | "leaf"> | undefined,
): ReportedCall | undefined {
  const row = rowOf(outcome.row);
  const leaf = row && parseLeaf(row.leaf);
  if (row === undefined || leaf === undefined) return undefined;
  const before = outcome.before.flatMap((seq) => {
    const earlier = rowOf(seq);
    return (earlier && outcomeIn(earlier)) ?? [];
  });
  if (before.length < outcome.before.length) return undefined;
  return { leaf, evidence: row.evidence, outcomes: [...before, outcome] };
}

/**
 * What the last outcome of a call does to a counter, with plain keys.
 *
 * @returns undefined if what the call added to it cannot be known, because a part was erased
 */
export function recountOutcome(owned: OwnedCounter, call: ReportedCall): Settlement | undefined {
  const { leaf, evidence, outcomes } = call;
  if (!isSettled(owned.counter)) return { added: [], taken: [] };
  const updates = recountRow(owned, leaf, evidence, true);
  const { seq, at } = leaf;
  const called = updates?.map(({ key, amount }): CountedAmount => ({ key, amount, seq, at }));
  return called && settlementOf(owned.counter, called, outcomes);
}
