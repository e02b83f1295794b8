import type { Verdict } from "../../wire/mod.ts";

/** What a rule says that decides nothing. */
export interface Observation {
  readonly rule: string;
  readonly verdict: Verdict;
  readonly reason: string;
}

/** What the contract reached for one call: pure data, the same for the same call, snapshot, counters and moment. */
export interface Decision {
  readonly verdict: Verdict;
  /** One sentence for a person, beginning with `Svc: `. */
  readonly reason: string;
  /**
   * `contract.rule`, `$route`, `contract.$input`, `contract.$platform`, `contract.$requires.N`,
   * `contract.$counters.name` or `contract.$otherwise`.
   */
  readonly rule: string;
  /** A BLOCK that stays one in assist mode. */
  readonly final: boolean;
  /** The rules that fired, in the order of the contracts and of their text. */
  readonly fired: readonly string[];
  /** What could not be evaluated, and why. */
  readonly errors: readonly (readonly [rule: string, message: string])[];
  /** The counters that were read, with what they stood at. */
  readonly read: readonly (readonly [counter: string, value: string])[];
  /** What the rules in `mode: observe` would have said: those that fired, or could not be evaluated. */
  readonly observed: readonly Observation[];
  /** Something threw that is not an evaluation error: a defect, and an alarm. */
  readonly defect: unknown;
}
