/**
 * The engine on PostgreSQL: many ledgers in one database, shared by many gates.
 *
 * Promises: only a gate that has the lock on a ledger's row appends; a batch is kept whole or not at all.
 *
 * Does not: interpret contracts or keys.
 *
 * May import: history, store.
 */
