/**
 * `svc-gate verify`: verifies a ledger, an export or a proof, without a gate.
 *
 * Promises: the exit code says whether something was changed, or could not be read.
 *
 * Does not: repair anything.
 *
 * Package: gate. May import: deep.
 */
