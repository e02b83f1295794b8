import { createPrivateKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";
import { link, readFile, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { flushFolder, replaceFile } from "../files/durable-file.ts";
import { LedgerRefused } from "../errors.ts";
import { checkpointText, type Checkpoint } from "../../../../core/src/record/tree/checkpoint.ts";
import { publicBytes, signatureLine, verifierKey, type VerifierKey } from "../../../../core/src/record/tree/note.ts";

/** The keys of a file: the signing key, and the old key while it also signs. */
export interface SigningKeys {
  readonly current: KeyObject;
  readonly before: KeyObject | undefined;
}

/** Signs checkpoints of one ledger. */
export class Signer {
  readonly #keys: readonly { readonly key: KeyObject; readonly verifier: VerifierKey }[];
  /** The verifier keys, the current one first. */
  readonly verifiers: readonly VerifierKey[];
  /** The verifier key of the current key. */
  readonly current: string;
  /** The verifier key of the old key, while it also signs. */
  readonly before: string | undefined;

  /** @param origin the ledger's name */
  constructor(origin: string, { current, before }: SigningKeys) {
    const keys = before === undefined ? [current] : [current, before];
    this.#keys = keys.map((key) => ({ key, verifier: verifierKey(origin, publicBytes(key)) }));
    this.verifiers = this.#keys.map(({ verifier }) => verifier);
    this.current = this.verifiers[0]?.text ?? "";
    this.before = this.verifiers[1]?.text;
  }

  /** Returns the signed note, with a line for each key. One signature takes some 50 microseconds. */
  sign(checkpoint: Checkpoint): string {
    const text = checkpointText(checkpoint);
    const bytes = Buffer.from(text);
    const lines = this.#keys.map(({ key, verifier }) => signatureLine(verifier, sign(null, bytes, key)));
    return `${text}\n${lines.join("")}`;
  }
}

/**
 * Returns true if the setting is the text of a key and not a path. A leading blank or quote does not matter. Such a
 * text must not be used as a path or in a message.
 */
export function isKeyText(file: string): boolean {
  return file.includes("-----BEGIN ");
}

/** Returns where the keys are, for a message: their file, or the setting that contains them. */
export function describeKeySource(file: string): string {
  return isKeyText(file) ? "SVC_SIGNING_KEY" : file;
}

/**
 * Reads a file of one or two private keys (Ed25519, PKCS#8 in PEM), the current one first; undefined if there is none.
 *
 * @param file its path, or its text, for platforms that provide secrets as variables
 * @throws {LedgerRefused} if others can read the file, or it has anything else
 */
export async function readSigningKeys(file: string): Promise<SigningKeys | undefined> {
  if (isKeyText(file)) return parseKeys(`${file.trim()}\n`, `in ${describeKeySource(file)}`);
  let text: string;
  try {
    const { mode } = await stat(file);
    if (process.platform !== "win32" && (mode & 0o077) !== 0)
      throw new LedgerRefused(
        `users other than the owner can read the signing key ${file} (mode ${(mode & 0o777).toString(8)}): ` +
          `run \`chmod 600 ${file}\`, and rotate the key if others may have seen it`,
      );
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof LedgerRefused) throw error;
    if (code === "ENOENT") return undefined;
    throw new LedgerRefused(
      `the signing key ${file} cannot be read (${code}): set SVC_SIGNING_KEY to a file that this user can read`,
    );
  }
  return parseKeys(text, file);
}

function parseKeys(text: string, where: string): SigningKeys {
  const blocks = text.match(/-----BEGIN [^-]+-----[^-]+-----END [^-]+-----\n?/g) ?? [];
  const keys = blocks.map(readBlock);
  const [current, before] = keys;
  const isTwice = current !== undefined && before !== undefined && publicBytes(current).equals(publicBytes(before));
  if (current === undefined || keys.includes(undefined) || keys.length > 2 || blocks.join("") !== text || isTwice)
    throw new LedgerRefused(
      `the signing key ${where} is not one or two private keys of Ed25519 in PEM: restore it, or make a key with \`svc-gate keygen\``,
    );
  return { current, before };
}

/**
 * Reads a file of keys.
 *
 * @throws {LedgerRefused} also if there is none
 */
export async function requireSigningKeys(file: string): Promise<SigningKeys> {
  const keys = await readSigningKeys(file);
  if (keys === undefined) throw new LedgerRefused(`the signing key ${file} is missing: restore it`);
  return keys;
}

function readBlock(block: string): KeyObject | undefined {
  try {
    const key = createPrivateKey(block);
    return key.asymmetricKeyType === "ed25519" ? key : undefined;
  } catch {
    return undefined;
  }
}

/** Makes a new private key of Ed25519. */
export function makeSigningKey(): KeyObject {
  return generateKeyPairSync("ed25519").privateKey;
}

/**
 * Makes a file with a new key, unless the file exists.
 *
 * @returns the keys in the file
 */
export async function writeFirstKey(file: string): Promise<SigningKeys> {
  const beside = `${file}.${randomBytes(8).toString("hex")}`;
  await writeSigningKeys(beside, { current: makeSigningKey(), before: undefined });
  try {
    await link(beside, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    await unlink(beside);
  }
  await flushFolder(dirname(file)); // A ledger that records the key must not outlive the key.
  return requireSigningKeys(file);
}

/** Writes a file of keys that only its owner can read. */
export async function writeSigningKeys(file: string, { current, before }: SigningKeys): Promise<void> {
  const keys = before === undefined ? [current] : [current, before];
  const text = keys.map((key) => key.export({ format: "pem", type: "pkcs8" })).join("");
  await replaceFile(file, text);
}
