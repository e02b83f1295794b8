/**
 * The decision of a batch: look up counters, decide calls, append rows, commit.
 *
 * Promises: no answer leaves before its receipt is on disk; a mode may soften a decision, and never makes it stricter.
 *
 * Does not: read requests, or send answers.
 *
 * May import: admission, approvals, policy, telemetry.
 */
