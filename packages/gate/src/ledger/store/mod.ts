/**
 * The interface of storage engines, `LedgerStore`, and their common code: totals, checksums, calls, threads.
 *
 * Promises: the interface says when a batch is durable, and what one transaction keeps.
 *
 * Does not: choose an engine.
 *
 * May import: nothing.
 */
