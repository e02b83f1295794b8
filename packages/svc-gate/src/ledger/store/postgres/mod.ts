/**
 * The engine on PostgreSQL: many ledgers in one database, shared by many gates.
 *
 * Promises: the lock on a ledger's row is the only right to append; a lost connection keeps nothing half.
 *
 * Does not: know contracts or keys.
 *
 * Package: gate. May import: entry, history, store, tree.
 */
