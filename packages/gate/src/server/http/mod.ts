/**
 * The routes and the two servers.
 *
 * Promises: the API, except /health, refuses a request without a valid key before it reads the body.
 *
 * Does not: reach a verdict; the room core does.
 *
 * May import: admission, anchoring, approvals, dialects, erasure, events, keys, notify, outcomes, policy, request,
 * service, settings, telemetry.
 */
