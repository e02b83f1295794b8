/**
 * The keys that sign heads: files of keys, signatures, and the change of a key.
 *
 * Promises: a private key leaves its file only as a signature; a changed key needs a row that records it.
 *
 * Does not: build or read the tree.
 *
 * Package: gate. May import: files, store, tree.
 */
export {
  isKeyText,
  makeSigningKey,
  readSigningKeys,
  Signer,
  writeSigningKeys,
  type SigningKeys,
} from "./signing-key.ts";
