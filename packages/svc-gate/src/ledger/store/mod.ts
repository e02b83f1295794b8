/**
 * The interface of storage engines, `LedgerStore`, and the code that the engines share.
 *
 * Promises: the interface says what an engine must keep, and in which transaction.
 *
 * Does not: choose an engine.
 *
 * Package: gate. May import: entry, tree.
 */
