import type { Result } from "../../wire/mod.ts";
import type { PatternProblem } from "../run/pattern.ts";
import type { Type } from "../check/type.ts";
import type { Value } from "../run/value.ts";

/**
 * A function that conditions may call. Bodies are pure and total: they return a value or throw `EvaluationError`,
 * which blocks. Its examples run as tests, and the table in spec/contract.md is made of it.
 */
export interface ContractFunction {
  readonly name: string;
  /** Called on its first parameter (`text.startsWith(prefix)`), or by itself (`duration("10m")`). */
  readonly style: "method" | "function";
  readonly parameters: readonly Type["kind"][];
  readonly result: Type;
  readonly doc: string;
  /** Expressions and what they come to, as `show` prints it. */
  readonly examples: readonly (readonly [expression: string, shown: string])[];
  readonly run: (args: readonly Value[]) => Value;
  /** Steps that a call takes off the budget, where they are more than the arguments' length. */
  readonly cost?: (args: readonly Value[]) => number;
  /**
   * A parser, brought in when a contract in force calls it. Until then a call is an error, so BLOCK. A decision parses
   * the same texts once, however many rules ask.
   */
  readonly load?: () => Promise<void>;
  /** What is wrong with a last argument that is written in the contract, to say it when the contract is compiled. */
  readonly checkLiteral?: (literal: string) => PatternProblem | undefined;
  /** For a function whose last argument must be a literal: makes the body for it once, when the contract is compiled. */
  readonly bind?: (literal: string) => Result<Pick<ContractFunction, "run" | "cost">, PatternProblem>;
}
