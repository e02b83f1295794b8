import { bad, good, type Result } from "../../wire/mod.ts";
import { hashBytes } from "./merkle.ts";
import { openNote, parseVerifierKey, type VerifiedSignature, type VerifierKey } from "./note.ts";

/** The content of a checkpoint: C2SP tlog-checkpoint. */
export interface Checkpoint {
  /** The ledger's name. */
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

/** Returns the three lines that are signed. */
export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${root.toString("base64")}\n`;
}

/** Reads the text of a checkpoint; lines after the third are ignored. */
export function parseCheckpointText(text: string): Checkpoint | undefined {
  const [origin = "", size = "", root = "", ...rest] = text.split("\n");
  const bytes = Buffer.from(root, "base64");
  const isWhole = origin !== "" && /^(?:0|[1-9][0-9]{0,15})$/.test(size) && Number.isSafeInteger(Number(size));
  if (!isWhole || bytes.length !== hashBytes || bytes.toString("base64") !== root || rest.at(-1) !== "")
    return undefined;
  return rest.slice(0, -1).includes("") ? undefined : { origin, size: Number(size), root: bytes };
}

/** A checkpoint with its verified signatures. */
export interface SignedCheckpoint extends Checkpoint {
  /** The signed text. */
  readonly text: string;
  readonly signed: readonly VerifiedSignature[];
}

/**
 * Reads a signed checkpoint and verifies the signatures of known keys.
 *
 * @param log keys of the log. At least one must have signed it, and its name must be the origin
 * @param witnesses keys of witnesses, whose cosignatures are verified if present
 */
export function openCheckpoint(
  written: string,
  log: readonly VerifierKey[],
  witnesses: readonly VerifierKey[] = [],
): Result<SignedCheckpoint, string> {
  const opened = openNote(written, [...log, ...witnesses]);
  if (!opened.ok) return opened;
  const { text, signed } = opened.value;
  const checkpoint = parseCheckpointText(text);
  if (checkpoint === undefined) return bad("its text is not a checkpoint");
  const byLog = signed.some(({ key }) => log.includes(key) && key.name === checkpoint.origin);
  if (!byLog) return bad(`no known key of ${checkpoint.origin} has signed it`);
  return good({ ...checkpoint, text, signed });
}

/** Reads a checkpoint that one key must have signed. @param signer its verifier key */
export function openSignedBy(signer: string, written: string): Result<SignedCheckpoint, string> {
  const key = parseVerifierKey(signer);
  return key.ok ? openCheckpoint(written, [key.value]) : key;
}
