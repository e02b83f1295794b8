/**
 * Anchors: whoever outside keeps heads of the ledger, so that its end cannot be cut off or rewritten unseen. Sinks are
 * given checkpoints, witnesses cosign them. See docs/guides/anchors.md and docs/decisions/0025-anchors.md.
 */
export { Anchors, type AnchorReading, type AnchorSites } from "./anchoring/anchors.ts";
export { holdAgainst, type AnchoredCheck } from "./anchoring/check.ts";
export { parseSinks } from "./anchoring/sinks.ts";
export { anchorSites } from "./anchoring/sites.ts";
