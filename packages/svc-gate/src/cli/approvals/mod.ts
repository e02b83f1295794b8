/**
 * `svc-gate approvals` and `svc-gate grants`: a person decides calls and makes grants at a terminal.
 *
 * Promises: `approvals show` prints the whole call; nothing is cut.
 *
 * Does not: decide without a running gate.
 *
 * Package: gate. May import: nothing.
 */
