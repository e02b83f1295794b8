/**
 * API keys: their scopes, tools, rates and ends. Keys are rows of the root's ledger, which have only digests, and
 * `KeyRing` folds these rows in memory. See docs/decisions/archive/0014-keys-in-the-root-ledger.md.
 */
export {
  addPerson,
  changeKey,
  createFault,
  listKeys,
  listPeople,
  type ChangedKey,
  type KeyAdmin,
  type KeyRequest,
} from "./key-admin.ts";
export { readFirstKeyDigest, loadFirstKey, type FirstKey } from "./first-key.ts";
export { firstKeyFileFault, makeFirstKey } from "./first-row.ts";
export { otherFirstKey, recordFirstKey } from "./first-key-note.ts";
export { openOfflineKeys } from "./offline.ts";
export { type KeyScope } from "./record.ts";
export { endOfSessions } from "./ended-sessions.ts";
export { operatorKey, type ValidKey } from "./known-keys.ts";
export { KeyRing } from "./ring.ts";
export { hasKeyForm, looksLikeKey } from "./token.ts";
