/**
 * Contracts: from text to a plan that decides. Pure: the same contract, call, facts, counters and time give the same
 * decision, on every machine and every time.
 *
 * Promises: a compiled contract reads no member that may be absent, compares no text with a number, and no pattern
 * hangs. All errors of all files are reported together, each with its position. `decide` never throws: if an expression
 * cannot be evaluated, the verdict is a BLOCK that names it. Numbers are exact. Counters and their keys are known
 * before the decision; they are updated after it.
 *
 * Does not: read files, clocks or counters; hash; keep state; know whether a decision is recorded, or in which mode it
 * is answered.
 */
export {
  compileContracts,
  compileMandate,
  loadFunctions,
  recompile,
  type CompileOptions,
  type PolicySet,
} from "./compile/compile.ts";
export { isContract } from "./compile/files.ts";
export { type Caller } from "./compile/keys.ts";
export { windowStart, type Counter } from "./core/counter.ts";
export {
  lookupsOf,
  planLookups,
  type LookupPlan,
  type Lookup,
  type CounterUpdate,
  type Prepared,
} from "./run/plan-lookups.ts";
export { count, decide, prepare } from "./run/decide.ts";
export type { Decision } from "./core/decision.ts";
export { causesOf, requirementFor } from "./compile/causes.ts";
export { recount } from "./run/recount.ts";
export { position, renderDiagnostic, renderPlace, Report } from "./text/diagnostic.ts";
export { type Diagnostic, type SourceFile, type Span } from "./text/diagnostic.ts";
export { EvaluationError } from "./value/rational.ts";
export { show, type Value } from "./value/value.ts";
export { readYaml, toJson, type YamlMap, type YamlNode, type YamlScalar } from "./text/yaml.ts";
export { sensitiveMax } from "./compile/sensitive.ts";
