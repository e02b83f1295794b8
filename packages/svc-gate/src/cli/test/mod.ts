/**
 * `svc-gate test`: decides the calls of test files as the gate would, and compares.
 *
 * Promises: the calls of a file share one history, and coverage names each condition that no test made true and false.
 *
 * Does not: open a ledger or a port.
 *
 * Package: workbench. May import: explain.
 */
