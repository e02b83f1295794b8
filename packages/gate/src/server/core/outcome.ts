import type { Decision } from "../../../../core/src/contract/mod.ts";
import type { Canonical } from "../../../../core/src/wire/mod.ts";

/**
 * Returns the evidence for a verdict: the rules that fired, evaluation errors, the counters that were read, and the
 * results of observing rules, if any.
 *
 * @param asked what became of the call if a person had to decide it
 */
export function outcomeOf(
  { fired, errors, read, observed }: Decision,
  asked?: Readonly<Record<string, Canonical>>,
): Canonical {
  return {
    counters: Object.fromEntries(read),
    errors: Object.fromEntries(errors),
    fired,
    ...(observed.length === 0 ? {} : { observed: observed.map(observationJson) }),
    ...asked,
  };
}

function observationJson({ reason, rule, verdict }: Decision["observed"][number]): Canonical {
  return { reason: reason.replace(/^Svc: /, ""), rule, verdict };
}
