import { open, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolders, notesIn } from "../../ledger/mod.ts";
import type { Sink } from "./sink.ts";

/** The last checkpoint is within this many bytes of the end. */
const tailBytes = 64 * 1024;

/** Returns a sink that appends each checkpoint to a file. A tenant's file is `path.TENANT`, next to the root's. */
export function fileSink(path: string): Sink {
  const fileOf = (tenant: string | null): string => (tenant === null ? path : `${path}.${tenant}`);
  return {
    by: "file sink",
    address: path,
    write: (tenant, note) => append(fileOf(tenant), note).catch(failWith("written")),
    read: async (tenant, origin) => {
      const { text, at } = await tailOf(fileOf(tenant)).catch(failWith("read"));
      const note = notesIn(text).findLast((found) => found.startsWith(`${origin}\n`));
      return note === undefined ? undefined : { note, at };
    },
  };
}

/** Throws a clause with the system's code, because its own text is for programmers. */
function failWith(action: "read" | "written"): (error: unknown) => never {
  return (error) => {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`its file cannot be ${action} (${code ?? String(error)})`, { cause: error });
  };
}

async function append(file: string, note: string): Promise<void> {
  await makeFolders(dirname(file));
  const handle = await open(file, "a+", 0o644);
  try {
    const { size } = await handle.stat();
    // A crash may have left half a line; then the next checkpoint starts on a new line.
    const last = size === 0 ? "\n" : await readAt(handle, size - 1, 1);
    await handle.appendFile(`${last === "\n" ? "" : "\n"}${note}\n`);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

async function tailOf(file: string): Promise<{ readonly text: string; readonly at: number }> {
  let handle: FileHandle;
  try {
    handle = await open(file, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { text: "", at: 0 };
    throw error;
  }
  try {
    const { size, mtimeMs } = await handle.stat();
    const from = Math.max(0, size - tailBytes);
    return { text: await readAt(handle, from, size - from), at: mtimeMs };
  } finally {
    await handle.close();
  }
}

async function readAt(handle: FileHandle, from: number, bytes: number): Promise<string> {
  const buffer = Buffer.alloc(bytes);
  const { bytesRead } = await handle.read(buffer, 0, bytes, from);
  return buffer.toString("utf8", 0, bytesRead);
}
