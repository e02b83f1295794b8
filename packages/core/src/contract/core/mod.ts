/**
 * The data types of a checked contract: typed expressions, counters, functions, decisions.
 *
 * Promises: each expression has a type, and a `member` node reads only a member that was proven present.
 *
 * Does not: check, plan or decide.
 *
 * May import: commands, text, value.
 */
