/**
 * The entry point for code that stores or walks ledgers by itself: engines, and files that others verify. It has the
 * interface of engines, and what all engines share.
 *
 * Does not: open an engine of this package.
 */
export { Fault, LedgerRefused } from "./errors.ts";
export { flushFolder, makeFolders, readIfThere, replaceFile } from "./files/durable-file.ts";
export { BrokenHere } from "./history/findings.ts";
export { TablesSource } from "./history/store-source.ts";
export type { WalkResult, WalkedRow, WalkedSlice, WalkSource } from "./history/walk-source.ts";
export { Walk } from "./history/walk.ts";
export { counterEntry } from "./store/checksums.ts";
export { keepIn, startOf, sumAfter, addReserved, withoutTaken } from "./store/running-totals.ts";
export * from "./store/store.ts";
export * from "./store/tables.ts";
