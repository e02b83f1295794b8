/**
 * The engine on SQLite: each ledger is one file, which one thread writes and another reads.
 *
 * Promises: a committed batch has been flushed; a file with another layout is refused, never converted.
 *
 * Does not: interpret contracts or keys.
 *
 * May import: files, history, store.
 */
