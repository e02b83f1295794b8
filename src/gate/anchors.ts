/**
 * Anchors: whoever outside keeps heads of the ledger, so that its end cannot be cut off or rewritten unseen. Sinks are
 * given checkpoints, witnesses cosign them. See docs/anchors.md and docs/decisions/0025-anchors.md.
 */
export { Anchors, type AnchorReading, type AnchorSites } from "./anchors/anchors.ts";
export { parsePolicy } from "./anchors/policy.ts";
export { parseSinks, type Sink } from "./anchors/sinks.ts";
export type { Vouched } from "./anchors/standing.ts";
