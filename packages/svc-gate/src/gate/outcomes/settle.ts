import type { Counter } from "../../contract/mod.ts";
import type { outcomeRows } from "../../ledger/entry/mod.ts";
import { addDecimals } from "../../wire/mod.ts";

/** An amount that a call added to a counter under a key, and the row that added it. */
export interface Counted {
  readonly key: string;
  readonly amount: string;
  readonly seq: number;
  readonly at: number;
}

/** An outcome with its place. */
export interface PlacedOutcome extends outcomeRows.Outcome {
  readonly seq: number;
  readonly at: number;
}

/** What an outcome does to one counter. */
export interface Settlement {
  /** What counts from the outcome's row on. */
  readonly added: readonly Pick<Counted, "amount" | "key">[];
  /** The events that count no more. */
  readonly taken: readonly Counted[];
}

/** Returns true if an outcome may change the counter. */
export function isSettled({ counting, settles }: Counter): boolean {
  return settles || counting === "done";
}

const nothing: Settlement = { added: [], taken: [] };

/**
 * What the last of a call's outcomes does to a counter.
 *
 * A counter of `counting: done` counts the call once, at its first outcome `done`. From a counter of `settles: outcome`
 * an outcome `failed` takes the call's event back, and `done` with another amount replaces it. Only an outcome that may
 * lower takes back more than it adds.
 *
 * @param called what the call itself adds to the counter
 * @param outcomes all outcomes of the call, in order
 */
export function settlementOf(
  counter: Counter,
  called: readonly Counted[],
  outcomes: readonly PlacedOutcome[],
): Settlement {
  const last = outcomes.at(-1);
  if (last === undefined) return nothing;
  if (counter.counting === "done") {
    const isFirst = last.status === "done" && !outcomes.slice(0, -1).some(({ status }) => status === "done");
    return isFirst ? { added: called, taken: [] } : nothing;
  }
  let standing = called;
  let settled = nothing;
  for (const outcome of outcomes) {
    settled = next(counter, standing, outcome);
    const left = standing.filter((each) => !settled.taken.includes(each));
    standing = [...left, ...settled.added.map((each) => ({ ...each, seq: outcome.seq, at: outcome.at }))];
  }
  return settled;
}

function next({ sumOf }: Counter, standing: readonly Counted[], outcome: PlacedOutcome): Settlement {
  const { status, amount, of, may_lower: mayLower } = outcome;
  if (status === "failed") return mayLower ? { added: [], taken: standing } : nothing;
  if (status !== "done" || amount === undefined || of === undefined || of !== sumOf) return nothing;
  const other = standing.filter((each) => {
    const difference = addDecimals(amount, `-${each.amount}`);
    return addDecimals(difference, "0") !== "0" && (mayLower || !difference.startsWith("-"));
  });
  return { added: other.filter(() => amount !== "0").map(({ key }) => ({ key, amount })), taken: other };
}
