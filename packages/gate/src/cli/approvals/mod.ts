/**
 * `svc-gate approvals` and `svc-gate grants`: a person decides calls and makes grants at a terminal.
 *
 * Promises: `approvals show` prints the whole call; nothing is cut.
 *
 * Does not: decide with the operator's key. Without a running gate, it asks the gate's own routes.
 *
 * May import: nothing.
 */
