/**
 * `svc-gate export`: writes a ledger as files that others verify, or as CSV.
 *
 * Promises: an interrupted export can be continued.
 *
 * Does not: verify an export.
 *
 * Package: gate. May import: nothing.
 */
