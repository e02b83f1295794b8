import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { dataFolder } from "../../../ledger/mod.ts";
import { digestOf } from "./digest.ts";
import { makeKey } from "./token.ts";

/** The key that a gate has before anybody made one: named `default`, of the root, and no row. */
export interface FirstKey {
  /** SHA-256 in hex. */
  readonly digest: string;
  /** Where it comes from. */
  readonly source: "SVC_API_KEY" | "keys.json";
  /** A key that was made just now, to be shown once, and the file it was written to. */
  readonly made: { readonly key: string; readonly file: string } | undefined;
  /** A warning for the operator: the key in `first-key` is refused. */
  readonly warning?: string;
}

export const firstKeyName = "default";

/** Takes the first key from the configuration, else from the data folder, else makes one and keeps its digest alone. */
export async function loadFirstKey(folder: string, configured: string | undefined): Promise<FirstKey> {
  const file = join(folder, dataFolder.files.keys);
  if (configured !== undefined) return configuredKey(configured, await readKept(file).catch(() => undefined), folder);
  const kept = await readKept(file);
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
    `SVC_API_KEY is the first key, so the key in ${join(folder, dataFolder.files.firstKey)} is refused with 401: ` +
    "send SVC_API_KEY's value, or start without SVC_API_KEY";
  return { ...first, warning };
}

/** The digest of the first key that a data folder keeps; undefined where it keeps none. @throws {KeyFileDamaged} */
export function keptFirstKey(folder: string): Promise<string | undefined> {
  return readKept(join(folder, dataFolder.files.keys));
}

/** The key in `first-key` is not the one that `keys.json` has: one of the two was restored or changed without the other. */
async function otherKey(folder: string, kept: string): Promise<Pick<FirstKey, "warning"> | undefined> {
  const file = join(folder, dataFolder.files.firstKey);
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined || digestOf(text.trim()) === kept) return undefined;
  const warning =
    `keys.json has the digest of another key than the one in ${file}, which is refused with 401: restore the two files together, ` +
    "or make a key with `svc-gate keys create`";
  return { warning };
}

async function readKept(file: string): Promise<string | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
  const digest = /"digest": "([0-9a-f]{64})"/.exec(text)?.[1];
  if (digest === undefined)
    throw new KeyFileDamaged(
      `the file of keys ${file} is damaged: restore it, or remove it and a new first key is made`,
    );
  return digest;
}

/** The file that holds the digest of the first key cannot be read. */
export class KeyFileDamaged extends Error {}
