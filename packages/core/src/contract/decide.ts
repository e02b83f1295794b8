/**
 * The entry point for contracts of code that decides: a call is prepared, its counters are looked up, it is decided and
 * counted. It loads nothing that compiles.
 */
export { causesOf, requirementFor } from "./compile/causes.ts";
export type { Decision } from "./core/decision.ts";
export { count, decide, prepare } from "./run/decide.ts";
export { lookupsOf, planLookups, type LookupPlan, type Prepared } from "./run/plan-lookups.ts";
export { readLine } from "./run/command-line.ts";
export type { Caller } from "./compile/keys.ts";
