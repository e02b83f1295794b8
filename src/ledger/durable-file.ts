import { mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Replaces a small file that its owner alone can read: written beside, flushed, renamed, the folder flushed. A crash
 * leaves the old one or the new one.
 */
export async function replaceFile(file: string, content: string | Uint8Array): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const beside = `${file}.new`;
  const handle = await open(beside, "w", 0o600);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(beside, file);
  await flushFolder(folder);
}

/** What a file holds; undefined where there is none. */
export async function readIfThere(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** What is made, renamed or removed in a folder is so after a loss of power too. */
export async function flushFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
