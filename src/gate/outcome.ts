import { count, type Decision, type Move, type Observation, type Outcome, type Prepared } from "../contract/mod.ts";
import type { Canonical } from "../wire/mod.ts";

/**
 * What the receipt says of how the verdict came about: rules fired, what could not be evaluated, counters read; and what
 * observing rules and the candidate would have said, where there are any.
 */
export function outcomeOf({ fired, errors, read, observed }: Decision, candidate: Decision | undefined): Canonical {
  return {
    ...(candidate === undefined ? {} : { candidate: wouldBe(candidate) }),
    counters: Object.fromEntries(read),
    errors: Object.fromEntries(errors),
    fired,
    ...(observed.length === 0 ? {} : { observed: observed.map(wouldBe) }),
  };
}

function wouldBe({ reason, rule, verdict }: Observation): Canonical {
  return { reason: reason.replace(/^Svc: /, ""), rule, verdict };
}

/**
 * What a call moves for the contract in force and for the candidate. A counter of both is one counter, and it is the
 * contract's: what the candidate alone would move it by, as where its schema takes what the contract refuses, decides
 * nothing.
 */
export function countedOf(prepared: Prepared, candidate: Prepared | undefined, outcome: Outcome): readonly Move[] {
  const moves = count(prepared, outcome);
  if (candidate === undefined) return moves;
  const known = new Set(prepared.plan?.movers.map(({ counter }) => counter.identity));
  return [...moves, ...count(candidate, outcome).filter(({ counter }) => !known.has(counter.identity))];
}
