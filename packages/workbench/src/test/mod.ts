/**
 * `svc-gate test`: decides the calls of test files as the gate would, and compares the results.
 *
 * Promises: the calls of a case share one history; coverage names each condition that was never true, or never false.
 *
 * Does not: open a ledger or a port.
 */
