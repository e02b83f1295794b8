import { createPublicKey, hash, verify, type KeyObject } from "node:crypto";
import { bad, good, type Result } from "../../wire/mod.ts";

/** A text and its signatures: C2SP signed-note. */
export interface Note {
  /** The signed text, with its last line feed. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

export interface NoteSignature {
  readonly name: string;
  /** 8 hex digits. */
  readonly id: string;
  readonly bytes: Buffer;
}

/**
 * `ed25519` signs the text itself. `cosignature` signs the text after a time, as witnesses do (C2SP tlog-cosignature).
 */
export const signatureTypes = { ed25519: 1, cosignature: 4 } as const;
export type SignatureType = (typeof signatureTypes)[keyof typeof signatureTypes];

/** A public key: a vkey of C2SP. */
export interface VerifierKey {
  readonly name: string;
  /** 8 hex digits. */
  readonly id: string;
  readonly type: SignatureType;
  /** 32 bytes, as in RFC 8032. */
  readonly publicKey: Buffer;
  /** `name+id+base64`. */
  readonly text: string;
}

const publicKeyBytes = 32;
const signatureBytes = 64;
/** More signatures than any real note has. Each known one costs a verification. */
const signaturesMax = 64;
/** A name must not have Unicode spaces or a plus. The spaces of Unicode are `\s` without U+FEFF, and U+0085. */
const isKeyName = /^(?:[^\s+\x85]|\ufeff)+$/;

/**
 * Makes the public form of a key.
 *
 * @param publicKey 32 bytes
 */
export function verifierKey(
  name: string,
  publicKey: Buffer,
  type: SignatureType = signatureTypes.ed25519,
): VerifierKey {
  const material = Buffer.concat([Buffer.of(type), publicKey]);
  const id = hash("sha256", Buffer.concat([Buffer.from(`${name}\n`), material]), "buffer").toString("hex", 0, 4);
  return { name, id, type, publicKey, text: `${name}+${id}+${material.toString("base64")}` };
}

/** Reads `name+id+base64`, and recomputes the id. */
export function parseVerifierKey(text: string): Result<VerifierKey, string> {
  const found = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/.exec(text);
  if (found === null) return bad("a verifier key must be NAME+ID+BASE64, such as example.org/log+530d903a+Aekye...");
  const [, name = "", , base64 = ""] = found;
  const material = Buffer.from(base64, "base64");
  const type = Object.values(signatureTypes).find((known) => known === material[0]);
  if (type === undefined || material.length !== 1 + publicKeyBytes)
    return bad(`the verifier key of ${name} is not a key of Ed25519 (its type is ${material[0]})`);
  const key = verifierKey(name, material.subarray(1), type);
  if (key.text !== text || !isKeyName.test(name) || !name.isWellFormed())
    return bad(`the verifier key of ${name} is damaged: its id does not match its key`);
  return good(key);
}

/** Returns one line of a signed note. */
export function signatureLine({ name, id }: Pick<VerifierKey, "name" | "id">, signature: Buffer): string {
  return `— ${name} ${Buffer.concat([Buffer.from(id, "hex"), signature]).toString("base64")}\n`;
}

/** Reads a signed note without verifying it; undefined if it is not a signed note. */
export function parseNote(note: string): Note | undefined {
  const end = note.lastIndexOf("\n\n");
  // oxlint-disable-next-line no-control-regex -- the standard forbids them
  if (end === -1 || !note.endsWith("\n") || /[\0-\x09\x0b-\x1f]/.test(note) || !note.isWellFormed()) return undefined;
  const lines = note.slice(end + 2, -1).split("\n");
  const signatures = lines.map(parseSignature);
  if (lines.length > signaturesMax || !signatures.every((signature) => signature !== undefined)) return undefined;
  return { text: note.slice(0, end + 1), signatures };
}

function parseSignature(line: string): NoteSignature | undefined {
  const [, name = "", base64 = ""] = /^— ([^ ]+) ([A-Za-z0-9+/]+={0,2})$/.exec(line) ?? [];
  const decoded = Buffer.from(base64, "base64");
  if (decoded.length < 5 || decoded.toString("base64") !== base64 || !isKeyName.test(name)) return undefined;
  return { name, id: decoded.toString("hex", 0, 4), bytes: decoded.subarray(4) };
}

export interface VerifiedSignature {
  readonly key: VerifierKey;
  readonly signature: NoteSignature;
  /** Seconds since the epoch, if a witness states a time; else undefined. */
  readonly time: number | undefined;
}

/** A note with at least one verified signature. Only `openNote` makes one. */
export interface OpenedNote {
  readonly text: string;
  readonly signed: readonly [VerifiedSignature, ...VerifiedSignature[]];
}

/**
 * Opens a signed note. Its text is not available without a verified signature. Signatures of other keys are ignored.
 *
 * @param keys at least one of them must have signed the note
 * @returns a sentence if it is not a signed note, if a signature of a known key is wrong, or if no known key has signed it
 */
export function openNote(note: string, keys: readonly VerifierKey[]): Result<OpenedNote, string> {
  const parsed = parseNote(note);
  if (parsed === undefined) return bad("it is not a signed note");
  const { text, signatures } = parsed;
  const signed = new Map<string, VerifiedSignature>();
  for (const signature of signatures) {
    const verified = verifySignature(text, signature, keys);
    if (!verified.ok) return verified;
    if (verified.value !== undefined) signed.set(verified.value.key.text, verified.value);
  }
  const [first, ...others] = signed.values();
  return first === undefined ? bad("no known key has signed it") : good({ text, signed: [first, ...others] });
}

/** The text of a note whose signatures are not verified: a claim of whoever wrote it. Undefined if it is not a note. */
export function claimedText(note: string): string | undefined {
  return parseNote(note)?.text;
}

/**
 * Verifies one signature of a text.
 *
 * @returns undefined if the signature is by a key that is not given, and a sentence if it is wrong
 */
export function verifySignature(
  text: string,
  signature: NoteSignature,
  keys: readonly VerifierKey[],
): Result<VerifiedSignature | undefined, string> {
  const { name, id, bytes } = signature;
  const key = keys.find((known) => known.name === name && known.id === id);
  if (key === undefined) return good(undefined);
  if (!isSignature(key, text, bytes)) return bad(`the signature of ${name} (${id}) is wrong`);
  return good({ key, signature, time: key.type === signatureTypes.cosignature ? timeOf(bytes) : undefined });
}

function isSignature({ type, publicKey }: VerifierKey, text: string, bytes: Buffer): boolean {
  if (type === signatureTypes.ed25519)
    return bytes.length === signatureBytes && verify(null, Buffer.from(text), keyObject(publicKey), bytes);
  if (bytes.length !== 8 + signatureBytes || bytes.readBigUInt64BE() > BigInt(Number.MAX_SAFE_INTEGER)) return false;
  const cosigned = `cosignature/v1\ntime ${timeOf(bytes)}\n${text}`;
  return verify(null, Buffer.from(cosigned), keyObject(publicKey), bytes.subarray(8));
}

function timeOf(bytes: Buffer): number {
  return bytes.length < 8 ? 0 : Number(bytes.readBigUInt64BE());
}

/** The bytes before the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410). */
const spkiPrefix = Buffer.from("302a300506032b6570032100", "hex");

function keyObject(publicKey: Buffer): KeyObject {
  return createPublicKey({ key: Buffer.concat([spkiPrefix, publicKey]), format: "der", type: "spki" });
}

/** Returns the 32 bytes of a key's public half. */
export function publicBytes(key: KeyObject): Buffer {
  return createPublicKey(key).export({ format: "der", type: "spki" }).subarray(spkiPrefix.length);
}
