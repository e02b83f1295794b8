/**
 * The rows of the ledger: leaf, evidence, receipt, verification, and what rows say about approvals, grants, stops,
 * outcomes and erasures.
 *
 * Promises: a leaf has one spelling, and every verifier can recompute its hash and its evidence digest.
 *
 * Does not: read files or databases.
 *
 * May import: nothing.
 */
export { actOf, readGrantable, readJudgement, findEndedApproval, endedBy, foldApproval } from "./approval-rows.ts";
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
  type RowRange,
} from "./erasure.ts";
export { cutInputText, headBytesMax, readCutInput } from "./cut-input.ts";
export { covers, evidenceDigest, missingParts, partText, presentParts, wholeText, withoutParts } from "./evidence.ts";
export type { PartName } from "./disclosure.ts";
export { leafHash, leafKinds, parseLeaf, type Leaf, type LeafKind } from "./leaf.ts";
export type { Durable, Receipt } from "./receipt.ts";
export type { Mistake, StoredRow } from "./row.ts";
export * as grantRows from "./grant-rows.ts";
export * as outcomeRows from "./outcome-rows.ts";
export { effectsIn, readCall, readEffects } from "./verifier.ts";
