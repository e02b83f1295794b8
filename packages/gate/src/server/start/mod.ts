/**
 * The start of a gate that serves, and its settings. Nothing else loads Fastify.
 *
 * Promises: the gate listens only after it has read its settings and the root's contracts.
 *
 * Does not: parse a command line, or print anything but the log.
 *
 * May import: admin, admission, anchoring, approvals, core, http, keys, notify, policy, service, settings, telemetry.
 */
export { readConfig, settings } from "./config.ts";
export { serve, type RunningGate } from "./serve.ts";
export { openUnserved, type AskUnserved } from "./unserved.ts";
