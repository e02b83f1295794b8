import type { Calendar } from "../run/time.ts";

/** Which calls a counter counts, by how they were answered or what was decided of them. */
export const countings = ["attempts", "released", "possible", "blocked", "escalated"] as const;
export type Counting = (typeof countings)[number];

/** A counter in force: one idea for velocity, budgets and sequence. */
export interface Counter {
  /** `contract.counter`. */
  readonly name: string;
  /** Its definition in one fixed spelling: two counters of one definition are one counter, whatever their names. */
  readonly identity: string;
  readonly of: readonly string[];
  readonly counting: Counting;
  readonly window: Window;
  /** It adds up a `sum`; any other counts calls, in whole numbers. */
  readonly sums: boolean;
  /** It keeps values apart, to be asked for with `in`; any other counts. */
  readonly remembers: boolean;
  /** The mandate says that it begins at nothing, so older receipts are not folded into it. */
  readonly startsEmpty: boolean;
}

/** From when events count: all of them, those of a rolling time, or those of a calendar period. */
export type Window =
  | { readonly kind: "ever" }
  | { readonly kind: "rolling"; readonly ms: number }
  | { readonly kind: "calendar"; readonly calendar: Calendar };
