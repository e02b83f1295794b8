/**
 * The ledger: receipts in a hash chain, durable before they are answered.
 *
 * Promises: a committed batch is on disk, whole and in order. Leaves are never silently rewritten, dropped or
 * restarted, and evidence only loses parts whose erasure a row records. Verification finds a changed byte and its row.
 * Counters match the receipts. One owner at a time has the head of the chain, the counters' events, the pin and the
 * lock. Reading never delays writing.
 *
 * Does not: know what a contract is, decide, choose answers, read the clock, or retry a failed flush. A body is JSON
 * text to it.
 */
export { Ledger, type LedgerCheck } from "./ledger.ts";
export { inspectLedger, openLedger, readLedger, type LedgerOptions } from "./opening.ts";
export type { RecordedChange, LedgerHistory, Rows } from "./history/history.ts";
export * as ledgerTables from "./history/table-reads.ts";
export { AppendTransaction } from "./append-transaction.ts";
export { PendingCounters } from "./pending-counters.ts";
export type { CheckEntry, CounterLookup, CounterEvent, FoldedEvent } from "./entries.ts";
export type { Database } from "./store/store.ts";
export { sqliteThreads, type SqliteThreads } from "./store/sqlite/sqlite.ts";
export * as dataFolder from "./files/data-folder.ts";
export {
  divergenceOf,
  divergences,
  headOf,
  notesIn,
  readCollected,
  type AskOthers,
  type Divergence,
  type ObservedHead,
} from "./history/observed.ts";
export {
  openPastPin,
  readResume,
  resetMoment,
  resetThroughOf,
  resumeAct,
  resumeBody,
  resumeOf,
  statedLosses,
  type PastPin,
} from "./resume.ts";
export { missingCheckpoint, otherSigningKey } from "./history/folder-check.ts";
export { readPin, type PinReading } from "./history/pin.ts";
export type { ReceiptQuery } from "./history/query.ts";
export type { EventPosition, InForce, ScrubResult, StoredEffect } from "./store/store.ts";
export type { ApprovalQuery, KeptCounter } from "./store/tables.ts";
export type { InTurn } from "./store/steps.ts";
export { flushFile, flushFolder, makeFolders, replaceFile } from "./files/durable-file.ts";
