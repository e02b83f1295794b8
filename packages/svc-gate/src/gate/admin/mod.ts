/**
 * Acts of an operator on a ledger that no gate serves.
 *
 * Promises: each act writes the same row as a gate would.
 *
 * Does not: serve requests, or check keys.
 *
 * Package: gate. May import: policy.
 */
