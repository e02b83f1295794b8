import { hash } from "node:crypto";
import { bad, good, type Result } from "../../wire/mod.ts";
import { openCheckpoint, type SignedCheckpoint } from "./checkpoint.ts";
import { hashBytes, isIncluded } from "./merkle.ts";
import type { VerifierKey } from "./note.ts";

/** A proof that a row is in a ledger, as one file: C2SP tlog-proof, with the row's leaf as its extra. */
export interface ProofFile {
  readonly leaf: string;
  /** From 0. */
  readonly index: number;
  readonly proof: readonly Buffer[];
  /** The signed checkpoint, unchanged. */
  readonly checkpoint: string;
}

const firstLine = "c2sp.org/tlog-proof@v1";

export function proofText({ leaf, index, proof, checkpoint }: ProofFile): string {
  const lines = [
    firstLine,
    `extra ${Buffer.from(leaf).toString("base64")}`,
    `index ${index}`,
    ...proof.map((hashed) => hashed.toString("base64")),
  ];
  return `${lines.join("\n")}\n\n${checkpoint}`;
}

/** Reads the text that `proofText` writes; undefined for any other text. */
export function parseProof(text: string): ProofFile | undefined {
  const end = text.indexOf("\n\n");
  const [first, extra = "", index = "", ...hashes] = text.slice(0, Math.max(0, end)).split("\n");
  if (first !== firstLine || !extra.startsWith("extra ") || !/^index (?:0|[1-9][0-9]{0,15})$/.test(index))
    return undefined;
  const leaf = Buffer.from(extra.slice("extra ".length), "base64").toString("utf8");
  const proof = hashes.map((line) => Buffer.from(line, "base64"));
  const found = { leaf, index: Number(index.slice("index ".length)), proof, checkpoint: text.slice(end + 2) };
  return proof.every(({ length }) => length === hashBytes) && proofText(found) === text ? found : undefined;
}

/** The content of a valid proof. */
export interface ProvenRow {
  readonly leaf: string;
  /** SHA-256 of a zero byte and the leaf, in hex: the `hash` in the answer to the check. */
  readonly hash: string;
  /** From 1. */
  readonly seq: number;
  readonly checkpoint: SignedCheckpoint;
}

/**
 * Verifies the file of a proof without other files: the checkpoint's signatures, and the path from its leaf to the
 * root.
 */
export function verifyProof(
  text: string,
  log: readonly VerifierKey[],
  witnesses: readonly VerifierKey[] = [],
): Result<ProvenRow, string> {
  const file = parseProof(text);
  if (file === undefined) return bad(`it is not a proof of a row (the first line of a proof is ${firstLine})`);
  const opened = openCheckpoint(file.checkpoint, log, witnesses);
  if (!opened.ok) return bad(`its checkpoint is not valid: ${opened.problem}`);
  const { size, root } = opened.value;
  const leaf = hash("sha256", `\0${file.leaf}`, "buffer");
  if (!isIncluded({ index: file.index, size, leaf, proof: file.proof, root }))
    return bad(`the row is not in the signed tree of ${size} rows`);
  return good({ leaf: file.leaf, hash: leaf.toString("hex"), seq: file.index + 1, checkpoint: opened.value });
}
