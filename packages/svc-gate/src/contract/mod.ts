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
  type PolicySet,
} from "./compile.ts";
export { type Caller } from "./counters/keys.ts";
export { windowStart } from "./counters/counters.ts";
export type { Counter } from "./counters/counter.ts";
export { planLookups, type LookupPlan, type Lookup, type CounterUpdate, type Prepared } from "./run/plan-lookups.ts";
export { count, decide, prepare } from "./run/decide.ts";
export type { Decision, Observation } from "./run/decision.ts";
export { recount } from "./counters/recount.ts";
export { position, renderDiagnostic, renderPlace, Report } from "./text/diagnostic.ts";
export { type Diagnostic, type SourceFile, type Span } from "./text/diagnostic.ts";
export { EvaluationError } from "./run/rational.ts";
export { show, type Value } from "./run/value.ts";
export { readYaml, toJson, type YamlMap, type YamlNode, type YamlScalar } from "./text/yaml.ts";
export { sensitiveMax } from "./check/sensitive.ts";
