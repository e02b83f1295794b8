/**
 * The table of the functions that conditions may call. The folders below implement them, by subject.
 *
 * Promises: every function has examples, which run as tests.
 *
 * Does not: implement a function.
 *
 * Package: core. May import: core, functions/net, functions/path, functions/shell, functions/sql, functions/text,
 * functions/values.
 */
