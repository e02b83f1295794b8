/**
 * `svc-gate verify --deep`: decides checks again, folds counters again, and compares both with the ledger.
 *
 * Promises: differences are counted, and the first is reported with its row.
 *
 * Does not: repair anything.
 *
 * May import: export, replay.
 */
