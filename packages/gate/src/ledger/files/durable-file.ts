import { mkdir, open, readFile, rename, stat, writeFile } from "node:fs/promises";
import type { Stats } from "node:fs";
import { dirname } from "node:path";

/**
 * Replaces a small file that only its owner can read: writes a file next to it, flushes, renames it, and flushes the
 * folder. After a crash there is either the old file or the new one.
 */
export async function replaceFile(file: string, content: string | Uint8Array): Promise<void> {
  const folder = dirname(file);
  await makeFolders(folder, 0o700);
  const beside = `${file}.new`;
  await writeFile(beside, content, { mode: 0o600, flush: true });
  await rename(beside, file);
  await flushFolder(folder);
}

/** Reads a file; undefined if it does not exist. */
export async function readIfThere(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Makes a folder and its missing parents. Node's own function loops forever if a folder such as /proc cannot have
 * subfolders.
 *
 * @returns the first folder that was made; undefined if all existed
 */
export async function makeFolders(folder: string, mode = 0o777): Promise<string | undefined> {
  const all = [folder];
  for (let above = dirname(folder); !isRoot(above) && (await statIfThere(above)) === undefined; above = dirname(above))
    all.unshift(above);
  let first: string | undefined;
  for (const each of all) if (await makeFolder(each, mode)) first ??= each;
  return first;
}

async function makeFolder(folder: string, mode: number): Promise<boolean> {
  try {
    await mkdir(folder, { mode });
    return true;
  } catch (error) {
    if ((await statIfThere(folder))?.isDirectory() === true) return false;
    throw error;
  }
}

/** Returns true for the root of the file system. */
function isRoot(path: string): boolean {
  return dirname(path) === path;
}

async function statIfThere(path: string): Promise<Stats | undefined> {
  return stat(path).catch(() => undefined);
}

/** Makes sure that changes of names in a folder survive a loss of power. */
export async function flushFolder(folder: string): Promise<void> {
  if (process.platform !== "win32") await flushFile(folder);
}

/** Makes sure that a file's bytes are on disk. */
export async function flushFile(file: string): Promise<void> {
  await using handle = await open(file, "r");
  await handle.sync();
}
