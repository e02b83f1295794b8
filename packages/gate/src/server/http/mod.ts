/**
 * The routes and the two servers.
 *
 * Promises: the API, except /health, refuses a request without a valid key before it reads the body.
 *
 * Does not: reach a verdict; the room core does.
 *
 * Package: gate. May import: admission, anchoring, approvals, console, console/oidc, dialects, erasure, events, keys,
 * notify, outcomes, policy, request, service, settings, telemetry.
 */
