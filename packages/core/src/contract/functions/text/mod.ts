/**
 * Functions over texts: contents, patterns, similar texts, mentions.
 *
 * Promises: a function returns a value or throws `EvaluationError`; its cost is known before it runs.
 *
 * Does not: parse a language inside the text.
 *
 * May import: core, value.
 */
