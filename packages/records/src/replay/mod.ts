/**
 * `svc-gate replay`: decides recorded calls again, under their own contract or another one.
 *
 * Promises: counters are computed again from the rows; calls that cannot be decided again are reported.
 *
 * Does not: write rows.
 *
 * May import: memory.
 */
