import { closeSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";

const sliceBytes = 1024 * 1024;

/**
 * Makes durable what an earlier process left in a folder: the names of its files and the write-ahead log. The log is first
 * rewritten with its own bytes. After a failed flush, the cache of the operating system still shows the data, and the next
 * flush succeeds without writing it. A gate would then build on rows that disappear when the power fails.
 */
export function flushAgain(folder: string, log: string): void {
  rewrite(join(folder, log));
  if (process.platform !== "win32") flush(folder, "r");
}

/** Flushes a truncated log. SQLite does not, so its old content could return after a power failure. */
export function flushCut(folder: string, log: string): void {
  flush(join(folder, log), "r+");
}

function flush(path: string, flags: "r" | "r+"): void {
  const opened = openSync(path, flags);
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

function rewrite(file: string): void {
  let log: number;
  try {
    log = openSync(file, "r+");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  try {
    const slice = Buffer.alloc(sliceBytes);
    for (let from = 0, count = 1; count > 0; from += count) {
      count = readSync(log, slice, 0, sliceBytes, from);
      for (let done = 0; done < count;) done += writeSync(log, slice, done, count - done, from + done);
    }
    fsyncSync(log);
  } finally {
    closeSync(log);
  }
}
