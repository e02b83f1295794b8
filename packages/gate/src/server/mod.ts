/**
 * The service: it takes checks over HTTP, decides, records and answers.
 *
 * Promises: no answer leaves before its receipt is on disk; a mode may soften a decision, and never makes it
 * stricter; mistakes in the settings are reported before the gate listens; a fault of the root's ledger ends the process.
 *
 * Does not: print, read a command line, or know the workbench for contracts. The part that serves has start/mod.ts.
 */
export { parseSinks } from "./anchoring/mod.ts";
export { activePolicy, type ActivePolicy } from "./policy/active-policy.ts";
export { digestOf } from "./policy/counter-digest.ts";
export { exclusiveBy, type TimedTransaction } from "./policy/active-ledger.ts";
export { answeredReason } from "./core/answer.ts";
export type { Deciders } from "./approvals/deciders.ts";
export { ApprovalDesk } from "./approvals/desk.ts";
export { BatchApprovals } from "./approvals/batch-approvals.ts";
export type { AnswerApproval, CallJudge, JudgedCall } from "./approvals/call-judge.ts";
export {
  decideBatch,
  planCall,
  prepareCall,
  type BatchJudge,
  type DecidingTransaction,
  type PlannedCall,
} from "./core/decide-batch.ts";
export type { ErasureResult, NotPresent, ErasurePreview } from "./erasure/eraser.ts";
export { counterDigest, countersOf, recountRow, type OwnedCounter } from "./policy/owned-counters.ts";
export { readOutcome } from "./http/outcomes.ts";
export { OutcomeDesk } from "./outcomes/desk.ts";
export { outcomeIn, readOutcomeAt, reportedCall, type ReportedCall, rowsBehind } from "./outcomes/events.ts";
export {
  settleCounters,
  settledBy,
  totalsAround,
  type SettledCounter,
  type TotalSource,
} from "./outcomes/settle-call.ts";
export { isSettled, settlementOf, type OutcomeAtRow } from "./outcomes/settle.ts";
export { alignCounters, catchUp, foldAhead, type FoldSource } from "./service/counters.ts";
export { lengthMs, readMoment } from "./settings/moment.ts";
export { outcomeOf } from "./core/outcome.ts";
export {
  createFault,
  firstKeyFileFault,
  hasKeyForm,
  looksLikeKey,
  makeFirstKey,
  openOfflineKeys,
  operatorKey,
  otherFirstKey,
  type ChangedKey,
  type KeyRequest,
} from "./keys/keys.ts";
export { type OfflineLedger } from "./admin/offline.ts";
export { filesReadableHere } from "./settings/gate-files.ts";
export { readOperatorFile } from "./start/operator-file.ts";
export { resetCounters, resumeAfterRestore, type ResumeResult, type ResumedCounter } from "./admin/resume.ts";
export type { ExplanationRequest, ReportRequest, GateHistory, NextTurn, ServeHooks } from "./policy/hooks.ts";
