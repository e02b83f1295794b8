/**
 * Records, read again: replay, explanations, reports, verification, exports, and a ledger in memory.
 *
 * Promises: calls are decided again by the code that decided them. A ledger is only read.
 *
 * Does not: serve, sign, or change a ledger.
 */
export { countersSeen, type Evaluation } from "./evaluate.ts";
export { EvaluationTrace } from "./evaluation-trace.ts";
export { givenValues, shortName } from "./explain/explain-call.ts";
export { explain, type Explanation } from "./explain/explanation.ts";
export { printRule } from "./explain/print.ts";
export { MemoryLedger as MemoryTables, openMemory } from "./memory/mod.ts";
export { momentOf, pauseOf } from "./time.ts";
