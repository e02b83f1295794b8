import { open, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { flushFolder, makeFolders, readIfThere, replaceFile } from "../durable-file.ts";

/** Files that are flushed together: one at a time they would each wait for the disk. */
const together = 64;

/**
 * Files below a folder, some of which may be in use: one that is there as it should be is let be, one that is other than
 * it should be is replaced in one step. All are on disk once `flush` has resolved.
 */
export class FlushedFiles {
  readonly #folder: string;
  readonly #folders = new Set<string>();
  #written: FileHandle[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  async write(path: string, content: Buffer | string): Promise<void> {
    const file = join(this.#folder, path);
    const bytes = Buffer.from(content);
    await this.#makeFolder(dirname(file));
    const before = await readIfThere(file);
    if (before !== undefined && !before.equals(bytes)) return replaceFile(file, bytes);
    const handle = await open(file, before === undefined ? "w" : "r+", 0o600);
    this.#written.push(handle);
    if (before === undefined) await handle.writeFile(bytes);
    if (this.#written.length === together) await this.#flushWritten();
  }

  async flush(): Promise<void> {
    await this.#flushWritten();
    for (const folder of this.#folders) await flushFolder(folder);
    this.#folders.clear();
  }

  /** Lets go of what was not flushed. */
  async close(): Promise<void> {
    await Promise.all(this.#written.splice(0).map((handle) => handle.close()));
  }

  async #flushWritten(): Promise<void> {
    await Promise.all(this.#written.map((handle) => handle.sync()));
    await this.close();
  }

  async #makeFolder(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return;
    const made = await makeFolders(folder, 0o700);
    // A new folder's name is in the one above it.
    for (let above = folder; above.length >= this.#folder.length; above = dirname(above)) {
      this.#folders.add(above);
      if (made === undefined) break;
    }
  }
}
