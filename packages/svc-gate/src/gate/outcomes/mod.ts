/**
 * Outcomes: what became of calls, and the events of counters that they take back.
 *
 * Promises: an outcome only changes what its own call added.
 *
 * Does not: decide calls.
 *
 * Package: gate. May import: policy.
 */
