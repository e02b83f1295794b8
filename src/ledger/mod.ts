/**
 * The ledger: receipts in a hash chain, durable before they are answered.
 *
 * Promises: a committed batch is on disk, whole and in order; leaves are never rewritten, dropped or begun anew in
 * silence, and of their evidence only goes what a row says was erased; a changed byte is found, at its row; counters are
 * what the receipts say; one owner at a time. It owns the head of the chain, the counters' events, the pin and the lock.
 * Reading never holds up writing.
 *
 * Does not: know what a contract is, decide, choose what a caller is told, read the clock, or retry a flush that
 * failed. A body is JSON text to it.
 */
export {
  erasableParts,
  eraseAct,
  erasureBody,
  isErasable,
  rangesMax,
  rangesOf,
  readErasure,
  withWhatQuotes,
  type ErasablePart,
  type Erasure,
  type RowRange,
} from "./erasure.ts";
export { cutInputText, headBytesMax, readCutInput, type CutInput } from "./cut-input.ts";
export { covers, evidenceDigest, missingParts, partText, presentParts, wholeText } from "./evidence.ts";
export type { PartName } from "./disclosure.ts";
export { Ledger, type Change, type LedgerCheck } from "./ledger.ts";
export { inspectLedger, openLedger, readLedger, type LedgerHistory, type LedgerOptions } from "./opening.ts";
export { Turn, type CheckEntry, type CounterLookup, type CounterMove, type FoldedMove } from "./turn.ts";
export type { Database } from "./stores/postgres.ts";
export {
  inspectSharedLedger,
  migratePostgres,
  openPostgres,
  readSharedLedger,
  type SharedPlace,
} from "./in-database.ts";
export { sqliteThreads, type SqliteThreads } from "./stores/sqlite.ts";
export { backUpLedger, hasLedger, type Backup } from "./backup.ts";
export { placeRestoration, planRestore, type Restoration } from "./restore.ts";
export { headOf, partings, readCheckpoint, type AskOthers, type SeenHead } from "./seen.ts";
export { enterBody, openPastPin, readResume, resumeAct, resumeBody, resumeOf, type PastPin } from "./resume.ts";
export { leafHash, leafKinds, parseLeaf, type Leaf, type LeafKind } from "./leaf.ts";
export { missingCheckpoint, otherSigningKey } from "./folder-check.ts";
export { readPin, type PinReading } from "./pin.ts";
export { firstSince, type ReceiptQuery } from "./query.ts";
export { type Durable, type Receipt } from "./receipt.ts";
export type { KeptCounter } from "./stores/seals.ts";
export {
  LedgerRefused,
  NoLedger,
  NotKept,
  type Broken,
  type EventPlace,
  type InForce,
  type Scrubbed,
  type StoredRow,
} from "./stores/store.ts";
export { readCall, readEffects } from "./verifier.ts";
export { makeFolders, replaceFile } from "./durable-file.ts";
export { openCheckpoint, parseCheckpointText } from "./tree/checkpoint.ts";
export {
  parseNote,
  parseVerifierKey,
  signatureLine,
  signatureTypes,
  verifyNote,
  type VerifierKey,
} from "./tree/note.ts";
export { proofText, verifyProof, type Proven } from "./tree/proof-file.ts";
export {
  isKeyText,
  makeSigningKey,
  readSigningKeys,
  Signer,
  writeSigningKeys,
  type SigningKeys,
} from "./tree/signing-key.ts";
export { consistencyProof, inclusionProof, parseTilePath, rootAt, type HashReader, type Tile } from "./tree/tiles.ts";
export { hintedKeys, hintName, readHint } from "./export/layout.ts";
export { verifyExport, type ExportReport } from "./export/verify.ts";
export { NotYetUnderHead, writeExport, type Exported } from "./export/write.ts";
