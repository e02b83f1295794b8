/**
 * The engine on SQLite: one file, one thread that writes and one that reads.
 *
 * Promises: a committed batch has been flushed; a file with another layout is refused, never converted.
 *
 * Does not: know contracts or keys.
 *
 * Package: gate. May import: entry, files, history, store, tree.
 */
