import { open, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { flushFolder, makeFolders, readIfThere, replaceFile } from "../../../gate/src/ledger/engine.ts";

/** The number of files that are flushed together. One after another, each would wait for the disk. */
const together = 64;

/**
 * Writes files below a folder, some of which may be in use. A file with the right content stays; a file with other
 * content is replaced in one step. All are on disk when `flush` resolves.
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

  /** Closes files that were not flushed. */
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
    // The name of a new folder is stored in its parent.
    for (let above = folder; above.length >= this.#folder.length; above = dirname(above)) {
      this.#folders.add(above);
      if (made === undefined) break;
    }
  }
}
