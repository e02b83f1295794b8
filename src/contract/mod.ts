/**
 * Contracts: from text to a plan that decides. Pure: the same contract, call, snapshot, counters and moment give the
 * same decision, on every machine and every time.
 *
 * Promises: a contract that compiles reads no member that may be absent, compares no text with a number, hangs in no
 * pattern; all errors of all files come at once, each with its place. `decide` never throws: what cannot be evaluated
 * is a BLOCK that names it. Numbers are exact. Counters are named with their keys before the decision and counted
 * after it.
 *
 * Does not: read files, clocks or counters; hash; keep state; know that a decision is recorded, or in which mode it is
 * answered.
 */
export {
  compileContracts,
  compileMandate,
  isContract,
  loadFunctions,
  recompile,
  type CompileOptions,
  type ContractInForce,
} from "./compile.ts";
export { type Caller, type KeyPart } from "./counter-keys.ts";
export { windowStart, type Counter } from "./counters.ts";
export { consult, type Consultation, type Lookup, type Move, type Prepared } from "./consult.ts";
export { count, decide, prepare, type Decision, type Observation } from "./decide.ts";
export { recount } from "./recount.ts";
export { diagnosticCodes } from "./diagnostic-codes.ts";
export { position, renderDiagnostic, renderPlace, Report } from "./diagnostic.ts";
export { type Diagnostic, type SourceFile, type Span } from "./diagnostic.ts";
export { documentKeys } from "./document-keys.ts";
export { compileExpression } from "./expression.ts";
export { functions } from "./functions.ts";
export { type Requirement, type Route, type Rule, type ToolPlan } from "./compile-tool.ts";
export { children, type Core } from "./core.ts";
export { type Plan, type Probe } from "./plan.ts";
export { EvaluationError } from "./rational.ts";
export { show, type Value } from "./value.ts";
export { readYaml, toJson, type YamlMap, type YamlNode, type YamlScalar } from "./yaml.ts";
export { constantValue } from "./constant.ts";
export { walk } from "./core.ts";
export { type ContractDocument, type CounterDocument } from "./document.ts";
export { stepsMax } from "./plan.ts";
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
export { sensitiveMax } from "./sensitive.ts";
export { spellValue } from "./spell.ts";
export { parts, type Syntax } from "./syntax.ts";
export { Duration, isList, Timestamp } from "./value.ts";
export { typeText } from "./type.ts";
