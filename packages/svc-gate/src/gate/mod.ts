/**
 * The service: it is asked over HTTP, decides, records and answers.
 *
 * Promises: no answer leaves before its receipt is on disk; a mode softens a decision and never makes one up; what is
 * wrong at a start is said before the door opens; a fault is caught by nobody and ends it.
 *
 * Does not: print, read a command line, or know how contracts are worked on.
 */
export { parseSinks } from "./anchoring.ts";
export { answeredVerdict } from "./core/answer.ts";
export { readConfig, settings } from "./start/config.ts";
export { loadContracts, NoSuchFile, renderDiagnostics, whyNot } from "./core/contracts.ts";
export type { Erased, Lacking, Preview } from "./admin/erasure/eraser.ts";
export { eraseOffline } from "./admin/erasure/offline.ts";
export { countersOf, recountRow, type Owned } from "./core/counters.ts";
export { lengthMs, readMoment } from "./start/moment.ts";
export { outcomeOf } from "./core/outcome.ts";
export {
  changeKey,
  createFault,
  firstKeyFileFault,
  hasKeyForm,
  KeyFileDamaged,
  listKeys,
  looksLikeKey,
  makeFirstKey,
  openOfflineKeys,
  operatorKey,
  otherFirstKey,
  type ActedKey,
  type KeyRequest,
  type ShownKey,
} from "./admin/keys/keys.ts";
export { type OfflinePlace } from "./admin/offline.ts";
export { readOperatorFile } from "./start/operator-file.ts";
export { StartRefused } from "./start/gate-source.ts";
export { resetCounters, resumeAfterRestore, type Resumed, type ResumedCounter } from "./admin/resume.ts";
export { serve, type Serving } from "./start/serve.ts";
export { version } from "./version.ts";
