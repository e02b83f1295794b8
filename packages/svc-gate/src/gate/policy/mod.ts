/**
 * What is in force: contracts from files, the mode, counters, stops, the clock, and the rows that change them.
 *
 * Promises: contracts and mode change between two batches, never within one.
 *
 * Does not: decide calls, or serve requests.
 *
 * Package: gate. May import: nothing.
 */
export { loadContracts, renderDiagnostics } from "./contracts.ts";
export { toolMatcher } from "./tool-patterns.ts";
