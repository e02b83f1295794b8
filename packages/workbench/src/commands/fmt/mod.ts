/**
 * `svc-gate fmt`: one layout for contracts, mandates, packs and test files.
 *
 * Promises: the formatted text means the same, and keeps every comment.
 *
 * Does not: change a name or a value.
 *
 * May import: nothing.
 */
