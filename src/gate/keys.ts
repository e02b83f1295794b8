/**
 * API keys: who may ask, for what, how often and until when. They are rows of the root's ledger, digests alone, and a
 * ring in memory folds them. See docs/decisions/0014-keys-in-the-root-ledger.md.
 */
export { firstKeyName, KeyFileDamaged, loadFirstKey, type FirstKey } from "./keys/first-key.ts";
export { type Rate, type Scope } from "./keys/record.ts";
export { KeyRing, type Key, type Keys } from "./keys/ring.ts";
export { loadKeys, type LoadedKeys } from "./keys/loading.ts";
