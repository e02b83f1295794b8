import type { Verdict } from "../../wire/mod.ts";

/** The result of an observing rule. */
export interface Observation {
  readonly rule: string;
  readonly verdict: Verdict;
  readonly reason: string;
}

/** The contract's decision on one call: pure data, the same for the same call, facts, counters and time. */
export interface Decision {
  readonly verdict: Verdict;
  /** One sentence for a person, starting with `Svc: `. */
  readonly reason: string;
  /**
   * `contract.rule`, `$route`, `contract.$input`, `contract.$platform`, `contract.$requires.N`,
   * `contract.$counters.name` or `contract.$otherwise`.
   */
  readonly rule: string;
  /** A BLOCK that stays a BLOCK in assist mode. */
  readonly final: boolean;
  /** The rules that fired, in the order of the contracts and of their text. */
  readonly fired: readonly string[];
  /** The rules that could not be evaluated, and why. */
  readonly errors: readonly (readonly [rule: string, message: string])[];
  readonly read: readonly (readonly [counter: string, value: string])[];
  /** The results of the rules in `mode: observe`: those that fired, or could not be evaluated. */
  readonly observed: readonly Observation[];
  /** An error that is not an evaluation error: a defect, which raises an alarm. */
  readonly defect: unknown;
}
