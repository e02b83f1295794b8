/**
 * `svc-gate verify --deep`: decides every check again and compares it with its receipt.
 *
 * Promises: every difference is reported with its row.
 *
 * Does not: repair anything.
 *
 * Package: records. May import: replay.
 */
