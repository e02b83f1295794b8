/**
 * The policy in force on a ledger: contracts, mode, counters and stops. Also the clock, and rows of acts.
 *
 * Promises: contracts and mode change between two batches, never within one.
 *
 * Does not: decide calls, or serve requests.
 *
 * May import: nothing.
 */
export { besideMandate, loadContracts, openReady, renderDiagnostics } from "./contracts.ts";
export { toolMatcher } from "./tool-patterns.ts";
