/**
 * The routes and the server.
 *
 * Promises: a request without a valid key is refused before its body is read; every refusal is in one table.
 *
 * Does not: decide: it hands calls to the service.
 *
 * Package: gate. May import: admission, anchoring, approvals, console, console/oidc, dialects, erasure, events, keys,
 * notify, outcomes, policy, request, service, settings, telemetry.
 */
