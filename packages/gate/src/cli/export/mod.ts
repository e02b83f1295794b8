/**
 * `svc-gate export`: writes a ledger as files that others can verify, or as CSV or JSON Lines.
 *
 * Promises: an interrupted export of a folder can be continued.
 *
 * Does not: verify an export.
 *
 * Package: gate. May import: nothing.
 */
