/**
 * Exports of a ledger in the format of spec/export.md: written from it, read and verified without it.
 *
 * Promises: an export that verifies holds the leaf of every row under its signed head.
 *
 * Does not: open a ledger.
 *
 * Package: gate. May import: entry, files, history, tree.
 */
export { hintedKeys, hintName, readHint } from "./layout.ts";
export { exportedContract, scanExport } from "./read.ts";
export { verifyExport, type ExportReport } from "./verify.ts";
export { NotYetUnderHead, writeExport, type Exported } from "./write.ts";
