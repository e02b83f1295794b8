import { formulaOf } from "./formula.ts";
import { possible } from "./satisfy.ts";
import { isFalse, isTrue, type Condition, type Subject } from "./subject.ts";

/**
 * Proves that no call that the tool's rules see can fulfil the conditions, with intervals, sets and elimination. Returns
 * false without a proof.
 */
export function impossible(subject: Subject, ...conditions: readonly Condition[]): boolean {
  const formulas = [...subject.context, ...conditions].map(({ core, isTrue }) => formulaOf(core, isTrue));
  return !possible(formulas, subject.world);
}

/** Proves that whenever all conditions hold, one of those in `by` does. */
export function covered(subject: Subject, by: readonly Condition[], ...conditions: readonly Condition[]): boolean {
  const opposite = by.map((condition) => (condition.isTrue ? isFalse(condition.core) : isTrue(condition.core)));
  return impossible(subject, ...conditions, ...opposite);
}
