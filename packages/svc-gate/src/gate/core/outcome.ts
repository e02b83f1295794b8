import type { Decision, Observation } from "../../contract/mod.ts";
import type { Canonical } from "../../wire/mod.ts";

/**
 * What the receipt says of how the verdict came about: rules fired, what could not be evaluated, counters read; and what
 * observing rules would have said, where there are any.
 */
export function outcomeOf({ fired, errors, read, observed }: Decision): Canonical {
  return {
    counters: Object.fromEntries(read),
    errors: Object.fromEntries(errors),
    fired,
    ...(observed.length === 0 ? {} : { observed: observed.map(wouldBe) }),
  };
}

function wouldBe({ reason, rule, verdict }: Observation): Canonical {
  return { reason: reason.replace(/^Svc: /, ""), rule, verdict };
}
