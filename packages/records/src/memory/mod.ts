/**
 * The engine in memory, for ledgers that need not outlive the process: test cases of contracts, and decisions made again.
 *
 * Promises: all that a store promises but durability. Its counters join events that later lookups count only together.
 *
 * Does not: write files, or serve a gate.
 *
 * May import: nothing.
 */
export { CounterTables, type Lookback } from "./counter-tables.ts";
export { openMemory } from "./memory.ts";
export { MemoryLedger } from "./tables.ts";
