/** The start of a gate that serves, and its settings: mistakes in them are reported before it listens. */
export { readConfig, settings } from "./config.ts";
export { serve, type Serving } from "./serve.ts";
