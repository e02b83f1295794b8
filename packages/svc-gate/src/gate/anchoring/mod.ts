/**
 * Anchors keep heads of the ledger outside of the gate, so that nobody can truncate or rewrite the ledger unnoticed.
 * Sinks receive checkpoints, and witnesses cosign them. See docs/guides/anchors.md and docs/decisions/0025-anchors.md.
 */
export { Anchors, type AnchorReading, type AnchorSites } from "./anchors.ts";
export { compareWithAnchors, type AnchoredCheck } from "./check.ts";
export { parseSinks } from "./sinks.ts";
export { anchorSites } from "./sites.ts";
