/**
 * The reader of SQL: the statements of a text, and the tables that they read and write.
 *
 * Promises: every statement is either read or reported as unknown.
 *
 * Does not: connect to a database, or know its schema.
 *
 * Package: readers. May import: core, value.
 */
