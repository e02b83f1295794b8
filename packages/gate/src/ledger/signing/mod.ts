/**
 * The keys that sign heads: files of keys, signatures, and the change of a key.
 *
 * Promises: a key file that others can read is refused, and so is an unexpected key.
 *
 * Does not: build or read the tree.
 *
 * May import: files, store.
 */
export {
  isKeyText,
  makeSigningKey,
  readSigningKeys,
  Signer,
  writeSigningKeys,
  type SigningKeys,
} from "./signing-key.ts";
