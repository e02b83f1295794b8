/**
 * `svc-gate approvals`: a person decides calls and grants at a terminal.
 *
 * Promises: the person sees the whole call before the decision.
 *
 * Does not: decide without a running gate.
 *
 * Package: gate. May import: nothing.
 */
