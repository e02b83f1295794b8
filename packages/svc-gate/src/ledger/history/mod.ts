/**
 * Reading a ledger from its beginning: walks that verify, queries, the head pin, and observed heads.
 *
 * Promises: a walk finds the first changed row, and every counter and approval that differs from the rows.
 *
 * Does not: write rows.
 *
 * Package: gate. May import: entry, files, signing, store, tree.
 */
