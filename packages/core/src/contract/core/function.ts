import type { OpenWord, Result } from "../../wire/mod.ts";
import type { CommandTable } from "../commands/form.ts";
import type { PatternProblem } from "../value/pattern.ts";
import type { Type } from "../value/type.ts";
import type { Value } from "../value/value.ts";

/** How far later command lines may differ from one and be of the same form. */
export interface CommandWidth {
  /** `same`: not at all. `texts`: in texts, numbers and names. `files`: also in files that are read, below the folder. */
  readonly name: "same" | "texts" | "files";
  /** The words that may differ, in order. */
  readonly open: readonly OpenWord[];
  /** Two command lines are of the same form if their keys are equal. */
  readonly key: string;
}

/** What is known of a command line beside what it does. */
export interface CommandLine {
  /** How far later command lines may differ from it, the narrowest width first; empty if it may not come again. */
  readonly widths: readonly CommandWidth[];
  /** May the person approve it whose agent asks: does no command destroy something, or contact a machine that no form names? */
  readonly isPersonal: boolean;
}

/**
 * A function that conditions may call. Bodies are pure and total: they return a value or throw `EvaluationError`, which
 * blocks. Its examples run as tests, and the table in spec/contract.md is generated from it.
 */
export interface ContractFunction {
  readonly name: string;
  /** Called on its first parameter (`text.startsWith(prefix)`), or alone (`duration("10m")`). */
  readonly style: "method" | "function";
  readonly parameters: readonly Type["kind"][];
  readonly result: Type;
  readonly doc: string;
  /** Members of the result that are sentences for people: a reason shows them without quotes. */
  readonly sentences?: readonly string[];
  /** Expressions and their values, as `show` prints them. */
  readonly examples: readonly (readonly [expression: string, shown: string])[];
  readonly run: (args: readonly Value[]) => Value;
  /** The steps that a call takes from the budget, if they are more than the arguments' length. */
  readonly cost?: (args: readonly Value[]) => number;
  /**
   * Loads a parser when a contract in force calls it. Until then a call is an error, so the verdict is BLOCK. A
   * decision parses the same text once, however many rules call the parser.
   */
  readonly load?: () => Promise<void>;
  /** Returns the problem of a literal last argument, so that the compiler reports it. */
  readonly checkLiteral?: (literal: string) => PatternProblem | undefined;
  /**
   * For a function that reads the contract's table of commands: creates its body. The compiler adds a last argument, which
   * names the table.
   */
  readonly bindCommands?: (table: CommandTable) => Pick<ContractFunction, "run" | "cost" | "line">;
  /** Reads the first argument, which is a command line, for approvals and grants. */
  readonly line?: (args: readonly Value[]) => CommandLine;
  /**
   * For a function whose last argument must be a literal: creates the body for it once, when the contract is compiled.
   */
  readonly bind?: (literal: string) => Result<Pick<ContractFunction, "run" | "cost">, PatternProblem>;
}
