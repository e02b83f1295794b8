/**
 * Metrics, traces and the stages of a check.
 *
 * Promises: no check waits for an observer or a collector.
 *
 * Does not: serve routes, or decide calls.
 *
 * May import: nothing.
 */
