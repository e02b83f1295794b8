/**
 * `svc-gate verify`: verifies a ledger, an export or a proof, without a gate.
 *
 * Promises: the exit code is 0 if no check failed, 1 if one failed, 2 for unusable input.
 *
 * Does not: repair anything.
 *
 * May import: export, deep.
 */
