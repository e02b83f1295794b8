/**
 * `svc-gate export` and the format of spec/export.md: written from a ledger, read and verified without it.
 *
 * Promises: an export that verifies has the leaf of every row under its signed head.
 *
 * Does not: change a ledger.
 *
 * May import: nothing.
 */
export { hintedKeys, hintName, readHint } from "./layout.ts";
export { exportedContract, scanExport } from "./read.ts";
export { verifyExport, type ExportReport } from "./verify.ts";
export { NotYetUnderHead, writeExport, type ExportResult } from "./write.ts";
