/**
 * The forms of a checked contract: typed expressions, counters, functions, decisions.
 *
 * Promises: each expression has a type, and each read of an optional member has a proof that the member is present.
 *
 * Does not: check, plan or decide.
 *
 * Package: core. May import: text, value.
 */
