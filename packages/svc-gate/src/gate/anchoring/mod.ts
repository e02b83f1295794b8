/**
 * Anchors keep heads of the ledger outside of the gate, so that nobody can truncate or rewrite the ledger unnoticed.
 * Sinks receive checkpoints, and witnesses cosign them. See docs/guides/anchors.md.
 *
 * Promises: a head that differs from an observed one is reported, and never sent on.
 *
 * Does not: sign heads.
 *
 * Package: gate. May import: telemetry.
 */
export { Anchors, type AnchorReading, type AnchorSites } from "./anchors.ts";
export { compareWithAnchors, type AnchoredCheck } from "./check.ts";
export { parseSinks } from "./sinks.ts";
export { anchorSites } from "./sites.ts";
