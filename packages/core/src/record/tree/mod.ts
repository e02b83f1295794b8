/**
 * The Merkle tree over the rows: tiles, checkpoints, notes and proofs, in the formats of C2SP (tlog-tiles,
 * tlog-checkpoint, signed-note, tlog-proof).
 *
 * Promises: a proof file or a signed note verifies, or the caller gets the reason why not.
 *
 * Does not: open a ledger, or keep keys.
 *
 * May import: entry.
 */
export { openCheckpoint, parseCheckpointText } from "./checkpoint.ts";
export { claimedText, openNote, parseVerifierKey, signatureLine, signatureTypes, type VerifierKey } from "./note.ts";
export { Frontier } from "./merkle.ts";
export { proofText, verifyProof, type ProvenRow } from "./proof-file.ts";
export { consistencyProof, inclusionProof, parseTilePath, rootAt, type HashReader, type Tile } from "./tiles.ts";
