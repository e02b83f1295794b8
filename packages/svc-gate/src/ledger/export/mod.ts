/**
 * Exports of a ledger: written, read and verified offline, in the format of spec/export.md.
 *
 * Promises: an export that verifies holds every row under its signed head.
 *
 * Does not: open a ledger.
 *
 * Package: gate. May import: entry, files, history, tree.
 */
export { hintedKeys, hintName, readHint } from "./layout.ts";
export { exportedContract, scanExport } from "./read.ts";
export { verifyExport, type ExportReport } from "./verify.ts";
export { NotYetUnderHead, writeExport, type Exported } from "./write.ts";
