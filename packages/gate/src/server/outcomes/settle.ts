import { distance, isAbove } from "../../../../core/src/approvals/mod.ts";
import type { Counter } from "../../../../core/src/contract/mod.ts";
import type { outcomeRows } from "../../../../core/src/record/entry/mod.ts";

/** An amount that a call added to a counter under a key, and the row that added it. */
export interface CountedAmount {
  readonly key: string;
  readonly amount: string;
  readonly seq: number;
  readonly at: number;
}

export interface OutcomeAtRow extends outcomeRows.Outcome {
  readonly seq: number;
  readonly at: number;
}

/** What an outcome does to one counter. */
export interface Settlement {
  /** What counts from the outcome's row on. */
  readonly added: readonly Pick<CountedAmount, "amount" | "key">[];
  /** The events that count no more. */
  readonly taken: readonly CountedAmount[];
}

/** Returns true if an outcome may change the counter. */
export function isSettled({ counting, settles }: Counter): boolean {
  return settles || counting === "done";
}

/**
 * What the last of a call's outcomes does to a counter: it takes back what the earlier ones left, and adds what should
 * count now.
 *
 * @param called what the call itself adds to the counter
 * @param outcomes all outcomes of the call, in order
 */
export function settlementOf(
  counter: Counter,
  called: readonly CountedAmount[],
  outcomes: readonly OutcomeAtRow[],
): Settlement {
  // A counter of `counting: done` has nothing before the first outcome.
  let left: readonly CountedAmount[] = counter.counting === "done" ? [] : called;
  let settled: Settlement = { added: [], taken: [] };
  for (const [index, { at, seq }] of outcomes.entries()) {
    settled = towards(counter, called, left, outcomes.slice(0, index + 1));
    left = [
      ...left.filter((each) => !settled.taken.includes(each)),
      ...settled.added.map((each) => ({ ...each, at, seq })),
    ];
  }
  return settled;
}

/** @param left what counts before the last of the outcomes */
function towards(
  counter: Counter,
  called: readonly CountedAmount[],
  left: readonly CountedAmount[],
  outcomes: readonly OutcomeAtRow[],
): Settlement {
  const added: Pick<CountedAmount, "amount" | "key">[] = [];
  const taken: CountedAmount[] = [];
  for (const { amount: own, key } of called) {
    const amount = amountAfter(counter, own, outcomes);
    const before = left.find((each) => each.key === key);
    if (distance(amount, before?.amount ?? "0") === "0") continue;
    if (before !== undefined) taken.push(before);
    if (distance(amount, "0") !== "0") added.push({ amount, key });
  }
  return { added, taken };
}

/**
 * How much a call counts after some outcomes. The last report of a key that cannot ask is the truth: what it leaves out is as the
 * check said. Before it, or after its `unknown`, a claim of the asking key only raises an amount.
 *
 * @param own the amount of the check
 */
function amountAfter({ claims, counting, sumOf }: Counter, own: string, outcomes: readonly OutcomeAtRow[]): string {
  const readAmount = ({ amount, of }: OutcomeAtRow): string =>
    counting === "done" || amount === undefined || of === undefined || of !== sumOf ? own : amount;
  const truth = outcomes.findLast((outcome) => outcome.may_lower);
  if (truth?.status === "failed") return "0";
  if (truth?.status === "done") return readAmount(truth);
  const claimed = outcomes.filter((outcome) => !outcome.may_lower && outcome.status === "done").map(readAmount);
  if (counting === "done") return claims && claimed.length > 0 ? own : "0";
  return claimed.reduce((most, each) => (isAbove(each, most) ? each : most), own);
}
