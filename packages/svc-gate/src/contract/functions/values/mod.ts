/**
 * Functions over numbers, lists, times and calendar dates.
 *
 * Promises: pure and total: a function returns a value or throws `EvaluationError`.
 *
 * Does not: read a clock or the machine's time zone.
 *
 * Package: core. May import: core, value.
 */
