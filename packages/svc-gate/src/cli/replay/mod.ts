/**
 * `svc-gate replay`: decides recorded calls again, under the recorded or another contract.
 *
 * Promises: counters are computed from the same rows, and calls that cannot be decided again are counted.
 *
 * Does not: write rows.
 *
 * Package: records. May import: nothing.
 */
