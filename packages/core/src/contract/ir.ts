/**
 * The second entry point for contracts, for programs that examine contracts: analysis, differences, explanations,
 * editors. It exports the results of compilation: checked expressions, plans of tools, documents, values and exact
 * numbers.
 *
 * Does not: decide. A service that decides only needs mod.ts.
 */
export type { KeyPart } from "./compile/keys.ts";
export { diagnosticCodes } from "./text/diagnostic-codes.ts";
export { documentKeys } from "./text/document-keys.ts";
export { compileExpression } from "./compile/expression.ts";
export type { Cause } from "./compile/causes.ts";
export { isNumber, memberPath, readMembers } from "./compile/reads.ts";
export type { Requirement, Route, Rule, ToolPlan } from "./compile/compile-tool.ts";
export { children, type Core, walk } from "./core/core.ts";
export { type Plan, type Probe, stepsMax } from "./plan/plan.ts";
export { constantValue } from "./check/constant.ts";
export type { ContractDocument, CounterDocument } from "./text/document.ts";
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
} from "./value/rational.ts";
export { exampleCall } from "./schema/example.ts";
export { spellValue } from "./text/spell.ts";
export { parts, type Syntax } from "./text/syntax.ts";
export { Duration, isList, Timestamp } from "./value/value.ts";
export { typeText } from "./value/type.ts";
