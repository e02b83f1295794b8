/**
 * The files of a data folder: their names, their modes, and how a file is replaced.
 *
 * Promises: a replaced file is on disk, whole, when `replaceFile` resolves.
 *
 * Does not: open a database.
 *
 * May import: store.
 */
