/**
 * Metrics, traces and the stages of a check.
 *
 * Promises: observing a check takes nanoseconds and cannot fail it.
 *
 * Does not: send anything, or write logs.
 *
 * Package: gate. May import: nothing.
 */
