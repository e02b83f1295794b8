/**
 * Plans: a typed expression becomes a function over one call.
 *
 * Promises: an evaluation returns a value or throws `EvaluationError`, also if the steps of its context run out.
 *
 * Does not: resolve names, or decide.
 *
 * May import: core, text, value.
 */
