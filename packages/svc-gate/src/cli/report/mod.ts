/**
 * `svc-gate report`: what the rules did and what people decided, counted from receipts.
 *
 * Promises: memory is bounded for any history.
 *
 * Does not: change a ledger.
 *
 * Package: records. May import: replay.
 */
