/**
 * The second door of contracts, for programs about contracts: analysis, differences, explanations, editors. It shows what
 * a contract compiles to: expressions after checking, plans of tools, documents, values and exact numbers.
 *
 * Does not: decide. A service that decides needs mod.ts alone.
 */
export type { KeyPart } from "./counter-keys.ts";
export { diagnosticCodes } from "./diagnostic-codes.ts";
export { documentKeys } from "./document-keys.ts";
export { compileExpression } from "./expression.ts";
export { functions } from "./functions.ts";
export type { Requirement, Route, Rule, ToolPlan } from "./compile-tool.ts";
export { children, type Core, walk } from "./core.ts";
export { type Plan, type Probe, stepsMax } from "./plan.ts";
export { constantValue } from "./constant.ts";
export type { ContractDocument, CounterDocument } from "./document.ts";
export {
  add,
  compare,
  divide,
  exactText,
  floor,
  fromBigint,
  isExact,
  isInteger,
  multiply,
  negate,
  type Exact,
} from "./rational.ts";
export { spellValue } from "./spell.ts";
export { parts, type Syntax } from "./syntax.ts";
export { Duration, isList, Timestamp } from "./value.ts";
export { typeText } from "./type.ts";
