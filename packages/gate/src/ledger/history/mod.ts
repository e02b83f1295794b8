/**
 * The history of a ledger: walks that verify it, queries, the head pin, and observed heads.
 *
 * Promises: a walk from row 1 reports the first mistake in rows, counters, approvals and outcomes.
 *
 * Does not: write rows.
 *
 * May import: files, signing, store.
 */
