import { lstatSync, readFileSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { flushFolder } from "../../ledger/mod.ts";
import type { Receipt } from "../../../../core/src/record/entry/mod.ts";
import { bad, good, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import { whyNot } from "../errors.ts";
import { digestOf } from "./digest.ts";
import { firstRecord, operatorKey } from "./known-keys.ts";
import { recordBody } from "./record.ts";
import type { KeyRing } from "./ring.ts";
import { looksLikeKey, makeKey } from "./token.ts";

/** Not `default`, because SVC_API_KEY has that name. The gate refuses SVC_API_KEY as soon as a row has this name. */
const name = "first";

/**
 * Makes the first key of a database as a row of its root ledger, and writes the key to a file that only its owner can
 * read.
 *
 * The file is written under the lock of the ledger's head, before the row. So two runs at the same time make one key. A
 * crash between file and row loses nothing: the next run makes a row for the key in the file.
 *
 * @returns the row; undefined if the database already has a key, and then no file is written
 */
export async function makeFirstKey(ring: KeyRing, file: string): Promise<Result<Receipt | undefined, Refusal>> {
  let hasKey = false;
  const done = await ring.append(async () => {
    const { recorded } = ring.known;
    hasKey = recorded.some(({ revoked }) => !revoked);
    if (recorded.length > 0) return bad(refuse("conflict", allRevoked));
    const key = await keyInFile(file);
    if (!key.ok) return bad(refuse("conflict", key.problem));
    // A row can contain this digest, because nobody chose the key.
    const record = { ...firstRecord, name, digest: digestOf(key.value) };
    const reason = `Svc: ${operatorKey.id} made the first key, for ${record.scopes.join(", ")}`;
    return good({ by: operatorKey.id, act: "keys.create", body: recordBody(record), reason });
  });
  return hasKey ? good(undefined) : done;
}

const allRevoked = "every key of the database is revoked: make another with `svc-gate keys create NAME`";

/** A new key in a new file, or the key that an interrupted run left there. */
async function keyInFile(file: string): Promise<Result<string, string>> {
  const key = makeKey();
  try {
    return (await writeNew(file, `${key}\n`)) ? good(key) : keyLeftIn(file);
  } catch (error) {
    return bad(`${file} cannot be written: ${whyNot(error)}`);
  }
}

/** @returns false if the name is already taken */
async function writeNew(file: string, text: string): Promise<boolean> {
  const handle = await open(file, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  if (handle === undefined) return false;
  try {
    await handle.writeFile(text);
    await handle.sync();
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
  await flushFolder(dirname(file));
  return true;
}

/** Returns why an existing file cannot contain the first key; undefined if it can, or if the file does not exist. */
export function firstKeyFileFault(file: string): string | undefined {
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return undefined;
  const key = keyLeftIn(file);
  return key.ok ? undefined : key.problem;
}

function keyLeftIn(file: string): Result<string, string> {
  const found = lstatSync(file);
  const mode = process.platform === "win32" ? 0o600 : found.mode & 0o777;
  const isOwn = process.getuid === undefined || found.uid === process.getuid();
  if (!found.isFile() || !isOwn || (mode & 0o077) !== 0)
    return bad(`${file} exists and is not a file that only this user can read: remove it, or name another`);
  const key = readFileSync(file, "utf8").trim();
  return looksLikeKey(key) ? good(key) : bad(`${file} exists and has no API key: remove it, or name another`);
}
