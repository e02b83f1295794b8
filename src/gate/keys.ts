import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Who may ask: names and digests, never the keys themselves. */
export interface Keys {
  /** The name of the key that an Authorization header carries; undefined for none, a wrong one, another scheme. */
  nameOf(authorization: string | undefined): string | undefined;
}

export interface LoadedKeys {
  readonly keys: Keys;
  /** A key that was made just now, to be shown once, and the file it was written to. */
  readonly made: { readonly key: string; readonly file: string } | undefined;
}

const firstKeyName = "default";

/** Takes the first key from the configuration, else from the data folder, else makes one and keeps its digest alone. */
export async function loadKeys(folder: string, configured: string | undefined): Promise<LoadedKeys> {
  if (configured !== undefined) return { keys: singleKey(digestOf(configured)), made: undefined };
  const file = join(folder, "keys.json");
  const kept = await readKept(file);
  if (kept !== undefined) return { keys: singleKey(Buffer.from(kept, "hex")), made: undefined };
  const key = `svcg_${randomBytes(32).toString("base64url")}`;
  const made = { key, file: join(folder, "first-key") };
  await writeFile(made.file, `${key}\n`, { mode: 0o600 });
  const entry = { name: firstKeyName, digest: digestOf(key).toString("hex"), created: new Date().toISOString() };
  await writeFile(file, `${JSON.stringify({ keys: [entry] }, null, 2)}\n`, { mode: 0o600 });
  return { keys: singleKey(digestOf(key)), made };
}

async function readKept(file: string): Promise<string | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const digest = /"digest": "([0-9a-f]{64})"/.exec(text)?.[1];
  if (digest === undefined)
    throw new KeyFileDamaged(
      `the file of keys ${file} is damaged: restore it, or remove it and a new first key is made`,
    );
  return digest;
}

/** The file that holds the digests of keys cannot be read. */
export class KeyFileDamaged extends Error {}

function digestOf(key: string): Buffer {
  return hash("sha256", key, "buffer");
}

/** Digests are compared in constant time, whatever was sent. */
function singleKey(digest: Buffer): Keys {
  return {
    nameOf(authorization) {
      const key = /^bearer +([^ ]+) *$/i.exec(authorization ?? "")?.[1];
      const same = timingSafeEqual(digestOf(key ?? ""), digest);
      return same && key !== undefined ? firstKeyName : undefined;
    },
  };
}
