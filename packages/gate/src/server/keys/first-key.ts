import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { dataFolder } from "../../ledger/mod.ts";
import { digestOf } from "./digest.ts";
import { makeKey } from "./token.ts";
import { KeyFileDamaged } from "../errors.ts";

/**
 * The key that a gate has before anyone creates a key. Its name is `default`, it belongs to the root, and no row
 * records it.
 */
export interface FirstKey {
  /** SHA-256 in hex. */
  readonly digest: string;
  readonly source: "SVC_API_KEY" | "keys.json";
  /** A key that was made at this start, which is shown only once, and the file with the key. */
  readonly made: { readonly key: string; readonly file: string } | undefined;
  /** A warning for the operator: the key in `first-key` is refused. */
  readonly warning?: string;
}

export const firstKeyName = "default";

/**
 * Reads the first key from the configuration, else from the data folder. Otherwise makes a key and stores its digest.
 */
export async function loadFirstKey(folder: string, configured: string | undefined): Promise<FirstKey> {
  const file = join(folder, dataFolder.files.keys);
  if (configured !== undefined) return configuredKey(configured, await digestUnlessDamaged(file), folder);
  const kept = await readDigest(file);
  if (kept !== undefined)
    return { digest: kept, source: "keys.json", made: undefined, ...(await otherKey(folder, kept)) };
  const key = makeKey();
  const made = { key, file: join(folder, dataFolder.files.firstKey) };
  await writeFile(made.file, `${key}\n`, { mode: 0o600 });
  const entry = { name: firstKeyName, digest: digestOf(key), created: new Date().toISOString() };
  await writeFile(file, `${JSON.stringify({ keys: [entry] }, null, 2)}\n`, { mode: 0o600 });
  return { digest: digestOf(key), source: "keys.json", made };
}

function configuredKey(configured: string, kept: string | undefined, folder: string): FirstKey {
  const first = { digest: digestOf(configured), source: "SVC_API_KEY", made: undefined } as const;
  if (kept === undefined || kept === first.digest) return first;
  const warning =
    `SVC_API_KEY replaces the first key, so the key in ${join(folder, dataFolder.files.firstKey)} is refused with 401: ` +
    "send the value of SVC_API_KEY, or start without SVC_API_KEY";
  return { ...first, warning };
}

/**
 * Reads the digest of the first key from a data folder.
 *
 * @returns undefined if the folder has none
 * @throws {KeyFileDamaged} if the file cannot be read
 */
export function readFirstKeyDigest(folder: string): Promise<string | undefined> {
  return readDigest(join(folder, dataFolder.files.keys));
}

/**
 * Warns if the key in `first-key` is not the one in `keys.json`. Then one of the files was restored or changed alone.
 */
async function otherKey(folder: string, kept: string): Promise<Pick<FirstKey, "warning"> | undefined> {
  const file = join(folder, dataFolder.files.firstKey);
  const text = await readUnlessMissing(file);
  if (text === undefined || digestOf(text.trim()) === kept) return undefined;
  const warning =
    `the key in ${file} is refused with 401, because keys.json has the digest of another key: restore the two files ` +
    "together, or make a key with `svc-gate keys create`";
  return { warning };
}

/** A configured key replaces a damaged file. A disk that fails is not ignored: the other files are on it too. */
async function digestUnlessDamaged(file: string): Promise<string | undefined> {
  try {
    return await readDigest(file);
  } catch (error) {
    if (error instanceof KeyFileDamaged) return undefined;
    throw error;
  }
}

async function readDigest(file: string): Promise<string | undefined> {
  const text = await readUnlessMissing(file);
  if (text === undefined) return undefined;
  const digest = /"digest": "([0-9a-f]{64})"/.exec(text)?.[1];
  if (digest === undefined)
    throw new KeyFileDamaged(
      `the key file ${file} is damaged: restore it, or remove it so that the gate makes a new first key`,
    );
  return digest;
}

async function readUnlessMissing(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}
