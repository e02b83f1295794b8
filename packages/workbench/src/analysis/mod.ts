/**
 * Statements about a contract without a call: what it can never do, and how it differs from another one.
 *
 * Promises: a difference of verdicts is confirmed by the engine, and an unknown result is reported as unknown. Pure, apart
 * from the solver, which is loaded when contracts are compared.
 *
 * Does not: decide calls, read files or receipts, change a contract.
 */
export { analyze } from "./analyze.ts";
export { findingKinds, severityOf, type ContractFinding } from "./findings/finding.ts";
export { type KnownKey } from "./findings/approvers.ts";
export { compareForms, formChangeText, type FormChange } from "./forms.ts";
export { looseningRules, type LooseningRule } from "./loosening.ts";
export { compareAliases, type AliasChange } from "./proof/aliases.ts";
export { changeText, compareSettings, type ApprovalChange } from "./proof/approvals.ts";
export { compareContracts, type ToolDifference } from "./proof/compare.ts";
export { type CallComparison, type ChangeDirection } from "./proof/call.ts";
export { openSolver, type Solver } from "./proof/solver.ts";
