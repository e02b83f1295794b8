/**
 * Functions for sizes, sums, times and calendar dates.
 *
 * Promises: a function changes nothing, and returns a value or throws `EvaluationError`.
 *
 * Does not: read a clock or the machine's time zone.
 *
 * May import: core, value.
 */
