/**
 * The decision of a batch: look up, decide, append, commit.
 *
 * Promises: no answer leaves before its receipt is on disk; a mode softens a decision but never creates one.
 *
 * Does not: know HTTP.
 *
 * Package: gate. May import: admission, approvals, policy, telemetry.
 */
