import { canonical, type Canonical } from "../../wire/mod.ts";
import { calendarStart, type Calendar } from "../value/time.ts";

/** The calls that a counter counts, by their answer or their decision. */
export const countings = ["attempts", "released", "possible", "blocked", "escalated", "done"] as const;
/** `held` is the part of a `possible` counter that parked calls reserve; no contract writes it. */
export type CountingKind = (typeof countings)[number] | "held";

/** A counter in force: one concept for velocity, budgets and sequences of calls. */
export interface Counter {
  /** `contract.counter`. */
  readonly name: string;
  /**
   * Its definition in one canonical spelling: two counters with one definition are one counter, whatever their names.
   */
  readonly identity: string;
  readonly of: readonly string[];
  readonly counting: CountingKind;
  /** True if parked calls reserve amounts in it. */
  readonly mayReserve: boolean;
  readonly window: Window;
  /** It adds up a `sum`; any other counter counts calls, in whole numbers. */
  readonly sums: boolean;
  /** An outcome may change what a call added to it. */
  readonly settles: boolean;
  /** With `counting: done`: it also counts what the asking key reports, until another key says otherwise. */
  readonly claims: boolean;
  /** The member of the input that it adds up, such as `input.amount`; undefined if its sum is another expression. */
  readonly sumOf: string | undefined;
  /** It keeps separate values, which `in` looks up; any other counter counts. */
  readonly remembers: boolean;
  /** The mandate lets it start at zero, so older receipts are not folded into it. */
  readonly startsEmpty: boolean;
}

/** The name of the part of a counter that parked calls reserve, such as `payments.spent.held`. */
export function reservedName(counter: string): string {
  return `${counter}.held`;
}

/**
 * The part of a `possible` counter that parked calls reserve. It is a counter of its own: it has no events, and each amount
 * that the counter reserves is reserved under it too. So both end together.
 */
export function reservedPart(counter: Counter): Counter {
  const definition = JSON.parse(counter.identity) as Readonly<Record<string, Canonical>>;
  return {
    ...counter,
    name: reservedName(counter.name),
    identity: canonical({ ...definition, counting: "held" }),
    counting: "held",
    settles: false,
  };
}

/** The events that count: all events, those of a rolling time, or those of a calendar period. */
export type Window =
  | { readonly kind: "ever" }
  | { readonly kind: "rolling"; readonly ms: number }
  | { readonly kind: "calendar"; readonly calendar: Calendar };

/** The window starts after this time (milliseconds): `(now - within, now]`, or the calendar period so far. */
export function windowStart(window: Window, now: number): number {
  switch (window.kind) {
    case "ever":
      return -1;
    case "rolling":
      return Math.max(-1, now - window.ms);
    case "calendar":
      return calendarStart(window.calendar, now) - 1;
    default:
      return window satisfies never;
  }
}
