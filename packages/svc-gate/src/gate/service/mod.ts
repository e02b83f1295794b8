/**
 * A gate and its tenants: contracts, ledger, keys and desks of one tenant, opened and closed together.
 *
 * Promises: a change of contracts takes effect between two batches; a fault ends the process.
 *
 * Does not: know HTTP, or read settings.
 *
 * Package: gate. May import: admission, anchoring, approvals, core, erasure, events, keys, notify, outcomes, policy,
 * settings, telemetry.
 */
