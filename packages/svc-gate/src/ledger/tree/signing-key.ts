import { createPrivateKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";
import { link, readFile, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { flushFolder, replaceFile } from "../durable-file.ts";
import { LedgerRefused } from "../store/store.ts";
import { checkpointText, type Checkpoint } from "./checkpoint.ts";
import { publicBytes, signatureLine, verifierKey, type VerifierKey } from "./note.ts";

/** The keys of a file: the one that signs, and the one before it while that signs too. */
export interface SigningKeys {
  readonly current: KeyObject;
  readonly before: KeyObject | undefined;
}

/** Signs checkpoints of one ledger. */
export class Signer {
  readonly #keys: readonly { readonly key: KeyObject; readonly verifier: VerifierKey }[];

  /** @param origin the ledger's name */
  constructor(origin: string, { current, before }: SigningKeys) {
    const keys = before === undefined ? [current] : [current, before];
    this.#keys = keys.map((key) => ({ key, verifier: verifierKey(origin, publicBytes(key)) }));
  }

  /** As others know the keys, the current one first. */
  get verifiers(): readonly VerifierKey[] {
    return this.#keys.map(({ verifier }) => verifier);
  }

  /** The verifier key of the one that signs. */
  get current(): string {
    return this.verifiers[0]?.text ?? "";
  }

  /** Of the one before it, while that signs too. */
  get before(): string | undefined {
    return this.verifiers[1]?.text;
  }

  /** The signed note, a line for each key. */
  sign(checkpoint: Checkpoint): string {
    const text = checkpointText(checkpoint);
    const bytes = Buffer.from(text);
    return this.#note(
      text,
      this.#keys.map(({ key }) => sign(null, bytes, key)),
    );
  }

  /** The same, worked out in another thread: it takes longer than all else that a batch does with the tree. */
  async signAside(checkpoint: Checkpoint): Promise<string> {
    const text = checkpointText(checkpoint);
    const bytes = Buffer.from(text);
    return this.#note(text, await Promise.all(this.#keys.map(({ key }) => signatureOf(bytes, key))));
  }

  /** @param signatures one for each key */
  #note(text: string, signatures: readonly Buffer[]): string {
    const lines = this.#keys.map(({ verifier }, at) => signatureLine(verifier, signatures[at] as Buffer));
    return `${text}\n${lines.join("")}`;
  }
}

function signatureOf(bytes: Buffer, key: KeyObject): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    sign(null, bytes, key, (error, signature) => (error === null ? resolve(signature) : reject(error)));
  });
}

/**
 * Is it what a file of keys would hold, and not its path? Then it is for no path and no sentence; nor is it where a blank
 * or a quote has come in before it.
 */
export function isKeyText(file: string): boolean {
  return file.includes("-----BEGIN ");
}

/** Where keys are, for a sentence: never the keys themselves. */
export function placeOfKeys(file: string): string {
  return isKeyText(file) ? "SVC_SIGNING_KEY" : file;
}

/**
 * Reads a file of one or two private keys (Ed25519, PKCS#8 in PEM), the current one first; undefined when there is none.
 *
 * @param file its path; or what it would hold, where a platform hands out secrets as variables
 * @throws {LedgerRefused} for a file that others can read, or that holds anything else
 */
export async function readSigningKeys(file: string): Promise<SigningKeys | undefined> {
  if (isKeyText(file)) return parseKeys(`${file.trim()}\n`, `in ${placeOfKeys(file)}`);
  let text: string;
  try {
    const { mode } = await stat(file);
    if (process.platform !== "win32" && (mode & 0o077) !== 0)
      throw new LedgerRefused(
        `the signing key ${file} can be read by others than its owner (mode ${(mode & 0o777).toString(8)}): ` +
          `run \`chmod 600 ${file}\`, and rotate the key if others may have seen it`,
      );
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof LedgerRefused) throw error;
    if (code === "ENOENT") return undefined;
    throw new LedgerRefused(
      `the signing key ${file} cannot be read (${code}): SVC_SIGNING_KEY names a file that this user can read`,
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
      `the signing key ${where} is not one or two private keys of Ed25519 in PEM: restore it, or make one with \`svc-gate keygen\``,
    );
  return { current, before };
}

/** @throws {LedgerRefused} where there is none, too */
export async function requireSigningKeys(file: string): Promise<SigningKeys> {
  const keys = await readSigningKeys(file);
  if (keys === undefined) throw new LedgerRefused(`the signing key ${file} is not there: restore it`);
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

/** A new private key of Ed25519. */
export function makeSigningKey(): KeyObject {
  return generateKeyPairSync("ed25519").privateKey;
}

/**
 * Makes a file with a new key, unless there is one.
 *
 * @returns what the file then holds
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
  await flushFolder(dirname(file)); // A ledger that records the key must not outlive it.
  return requireSigningKeys(file);
}

/** Writes a file of keys that its owner alone can read. */
export async function writeSigningKeys(file: string, { current, before }: SigningKeys): Promise<void> {
  const keys = before === undefined ? [current] : [current, before];
  const text = keys.map((key) => key.export({ format: "pem", type: "pkcs8" })).join("");
  await replaceFile(file, text);
}
