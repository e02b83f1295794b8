import { formulaOf } from "./formula.ts";
import { possible } from "./satisfy.ts";
import { isFalse, isTrue, type Assertion, type AnalysisSubject } from "./subject.ts";

/**
 * Proves that no call that the tool's rules see can fulfil the conditions, with intervals, sets and elimination. Returns
 * false without a proof.
 */
export function impossible(subject: AnalysisSubject, ...conditions: readonly Assertion[]): boolean {
  const formulas = [...subject.context, ...conditions].map((condition) => formulaOf(condition.core, condition.isTrue));
  return !possible(formulas, subject.world);
}

/** Proves that whenever all conditions are true, one of those in `by` is true. */
export function isCoveredBy(
  subject: AnalysisSubject,
  by: readonly Assertion[],
  ...conditions: readonly Assertion[]
): boolean {
  const opposite = by.map((condition) => (condition.isTrue ? isFalse(condition.core) : isTrue(condition.core)));
  return impossible(subject, ...conditions, ...opposite);
}
