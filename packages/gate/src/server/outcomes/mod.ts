/**
 * Outcomes of calls: what became of a call, and what it adds to counters or takes back.
 *
 * Promises: an outcome takes back only events of its own call.
 *
 * Does not: decide calls.
 *
 * May import: policy.
 */
