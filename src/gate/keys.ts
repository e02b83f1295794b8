/**
 * API keys: who may ask, for what, how often and until when. They are rows of the root's ledger, digests alone, and a
 * ring in memory folds them. See docs/decisions/0014-keys-in-the-root-ledger.md.
 */
export {
  createFault,
  createKey,
  listKeys,
  revokeKey,
  rotateKey,
  type ActedKey,
  type DeskAsking,
  type ShownKey,
} from "./keys/desk.ts";
export { KeyFileDamaged, keptFirstKey, loadFirstKey, type FirstKey } from "./keys/first-key.ts";
export { firstKeyFileFault, makeFirstKey } from "./keys/first-row.ts";
export { otherFirstKey, recordFirstKey } from "./keys/first-key-note.ts";
export { openIdleKeys, type IdleKeys } from "./keys/idle.ts";
export { type Scope } from "./keys/record.ts";
export { KeyRing, type Key } from "./keys/ring.ts";
export { hasKeyForm, looksLikeKey } from "./keys/token.ts";
