/**
 * The gates of one process, for the root and each tenant: each has its own contracts, ledger and desks.
 *
 * Promises: a change of contracts takes effect between two batches; a tenant's fault ends only that tenant.
 *
 * Does not: read requests, or the environment.
 *
 * May import: admission, anchoring, approvals, core, erasure, events, keys, notify, outcomes, policy, settings,
 * telemetry.
 */
