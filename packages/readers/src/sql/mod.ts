/**
 * The reader of PostgreSQL's SQL: the statements of a text, the tables that it names, the functions that it calls.
 *
 * Promises: a text that it does not understand whole is an error.
 *
 * Does not: connect to a database, or know its schema.
 *
 * May import: nothing.
 */
