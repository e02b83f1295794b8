/**
 * The third entry point for contracts, for packages that add functions: what a function is, and the values it reads and
 * returns.
 *
 * Does not: compile or decide.
 */
export type { CommandLine, CommandWidth, ContractFunction } from "./core/function.ts";
export {
  fileKinds,
  kinds,
  type Kind,
  nameOfForm,
  type CommandTable,
  type CommandEffect,
  type Form,
  type FormException,
  type FormOption,
  type OptionStyle,
  type ProgramShape,
  type FileRole,
  type WordPosition,
  type WordShape,
} from "./commands/form.ts";
export { contractOfPack, isPack, readyPack } from "./commands/pack-name.ts";
export { ownFunctions } from "./functions/functions.ts";
export { library } from "./value/library.ts";
export { compilePattern, type Pattern, type PatternProblem } from "./value/pattern.ts";
export { EvaluationError } from "./value/rational.ts";
export { boolean, listType, recordType, size, string } from "./value/type.ts";
export type { Value } from "./value/value.ts";
