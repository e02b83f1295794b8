/**
 * `svc-gate report` and GET /report: what the rules did, what people decided, and what enforce mode would ask.
 *
 * Promises: a table has at most 10,000 names; the rest are counted together.
 *
 * Does not: change a ledger.
 *
 * May import: replay.
 */
