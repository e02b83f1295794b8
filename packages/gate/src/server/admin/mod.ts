/**
 * An operator's acts on a ledger that no gate in this process serves.
 *
 * Promises: no act changes the contract or the mode.
 *
 * Does not: serve requests, or check keys.
 *
 * May import: policy.
 */
