/**
 * The start of a gate that serves, and its settings. It is the only door that leads to Fastify.
 *
 * Promises: mistakes in the settings are reported before the gate listens.
 *
 * Does not: print, or read a command line.
 *
 * Package: gate. May import: admission, anchoring, approvals, console, console/oidc, core, http, keys, notify, policy,
 * service, settings, telemetry.
 */
export { readConfig, settings } from "./config.ts";
export { serve, type Serving } from "./serve.ts";
