/**
 * Anchors: they keep heads of the ledger outside the gate, in sinks and at witnesses. A comparison with them shows rows
 * that were cut off or rewritten. See docs/guides/anchors.md.
 *
 * Promises: a slow or failing anchor never affects a check; a start refuses a ledger that contradicts an anchor, unless
 * an operator stated the loss.
 *
 * Does not: sign heads.
 *
 * May import: telemetry.
 */
export { Anchors, type AnchorReading, type AnchorSites } from "./anchors.ts";
export { compareWithAnchors, type AnchoredCheck } from "./check.ts";
export { parseSinks } from "./sinks.ts";
export { anchorSites } from "./sites.ts";
