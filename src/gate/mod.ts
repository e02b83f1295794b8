/**
 * The service: it is asked over HTTP, decides, records and answers.
 *
 * Promises: no answer leaves before its receipt is on disk; a mode softens a decision and never makes one up; what is
 * wrong at a start is said before the door opens; a fault is caught by nobody and ends it.
 *
 * Does not: print, read a command line, or know how contracts are worked on.
 */
export { parseSinks } from "./anchors.ts";
export { answered } from "./answer.ts";
export { readConfig, settings } from "./config.ts";
export { loadContracts, NoSuchFile, renderDiagnostics, whyNot } from "./contracts.ts";
export type { Erased, Lacking, Preview } from "./erasure/eraser.ts";
export { eraseIdle } from "./erasure/idle.ts";
export { countersOf, recountRow, type Owned } from "./counters.ts";
export { lengthMs, readMoment } from "./moment.ts";
export { outcomeOf } from "./outcome.ts";
export {
  createFault,
  createKey,
  firstKeyFileFault,
  hasKeyForm,
  KeyFileDamaged,
  listKeys,
  looksLikeKey,
  makeFirstKey,
  openIdleKeys,
  otherFirstKey,
  revokeKey,
  rotateKey,
  type ActedKey,
  type IdleKeys,
  type ShownKey,
} from "./keys.ts";
export { type IdlePlace } from "./idle.ts";
export { readOperatorFile } from "./operator-file.ts";
export { ledgerIdOf, StartRefused } from "./place.ts";
export { resetCounters, resumeAfterRestore, type Resumed, type ResumedCounter } from "./resume.ts";
export { serve, type Serving } from "./serve.ts";
export { version } from "./version.ts";
