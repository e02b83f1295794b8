/** Tables of commands, for programs that explain them or check their examples. */
export {
  contractOfPack,
  EvaluationError,
  isPack,
  nameOfForm,
  type CommandTable,
  type Form,
} from "../../core/src/contract/function.ts";
export { explainCommands, findWrongExamples, type ExplainedCommands } from "./commands/examples.ts";
export type { TableAnswer } from "./commands/judge.ts";
