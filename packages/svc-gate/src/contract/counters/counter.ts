import type { Calendar } from "../run/time.ts";

/** The calls that a counter counts, by their answer or their decision. */
export const countings = ["attempts", "released", "possible", "blocked", "escalated", "done"] as const;
export type Counting = (typeof countings)[number];

/** A counter in force: one concept for velocity, budgets and sequences of calls. */
export interface Counter {
  /** `contract.counter`. */
  readonly name: string;
  /**
   * Its definition in one canonical spelling: two counters with one definition are one counter, whatever their names.
   */
  readonly identity: string;
  readonly of: readonly string[];
  readonly counting: Counting;
  readonly window: Window;
  /** It adds up a `sum`; any other counter counts calls, in whole numbers. */
  readonly sums: boolean;
  /** An outcome may change what a call added to it. */
  readonly settles: boolean;
  /** The member of the input that it adds up, such as `input.amount`; undefined if its sum is another expression. */
  readonly sumOf: string | undefined;
  /** It keeps separate values, which `in` looks up; any other counter counts. */
  readonly remembers: boolean;
  /** The mandate lets it begin at zero, so older receipts are not folded into it. */
  readonly startsEmpty: boolean;
}

/** The events that count: all events, those of a rolling time, or those of a calendar period. */
export type Window =
  | { readonly kind: "ever" }
  | { readonly kind: "rolling"; readonly ms: number }
  | { readonly kind: "calendar"; readonly calendar: Calendar };
