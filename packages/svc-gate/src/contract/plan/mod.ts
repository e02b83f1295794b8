/**
 * Plans: a typed expression becomes a function over one call.
 *
 * Promises: an evaluation ends within its budget of steps, with a value or an `EvaluationError`.
 *
 * Does not: resolve names, or decide.
 *
 * Package: core. May import: core, text, value.
 */
