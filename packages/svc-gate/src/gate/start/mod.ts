/**
 * The start of a gate that serves, and its settings.
 *
 * Promises: mistakes in the settings are reported before the gate listens.
 */
export { readConfig, settings } from "./config.ts";
export { serve, type Serving } from "./serve.ts";
