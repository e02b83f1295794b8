/**
 * The engine in memory, for ledgers that need not outlive the process: test cases of contracts, and decisions made again.
 *
 * Promises: all that a store promises but durability. Events that no later lookup reads alone are joined, if the owner
 * says which.
 *
 * Does not: write files, or keep a ledger for a gate.
 *
 * Package: gate. May import: entry, history, store, tree.
 */
