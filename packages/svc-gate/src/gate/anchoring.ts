/**
 * Anchors keep heads of the ledger outside of the gate, so that nobody can truncate or rewrite the ledger unnoticed.
 * Sinks receive checkpoints, and witnesses cosign them. See docs/guides/anchors.md and docs/decisions/0025-anchors.md.
 */
export { Anchors, type AnchorReading, type AnchorSites } from "./anchoring/anchors.ts";
export { compareWithAnchors, type AnchoredCheck } from "./anchoring/check.ts";
export { parseSinks } from "./anchoring/sinks.ts";
export { anchorSites } from "./anchoring/sites.ts";
