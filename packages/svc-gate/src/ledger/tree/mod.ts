/**
 * The Merkle tree over the rows and its signatures: tiles, checkpoints, notes, proofs and signing keys, in the formats
 * of C2SP (tlog-tiles, tlog-checkpoint, signed-note, tlog-proof).
 *
 * Does not: read or write a ledger.
 */
export { openCheckpoint, parseCheckpointText } from "./checkpoint.ts";
export { claimedText, openNote, parseVerifierKey, signatureLine, signatureTypes, type VerifierKey } from "./note.ts";
export { Frontier } from "./merkle.ts";
export { proofText, verifyProof, type Proven } from "./proof-file.ts";
export { consistencyProof, inclusionProof, parseTilePath, rootAt, type HashReader, type Tile } from "./tiles.ts";
