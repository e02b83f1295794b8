import { closeSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";

const sliceBytes = 1024 * 1024;

/**
 * Flushes what an earlier process left in a folder, before anything of it is taken for durable: the names in it, and the
 * write-ahead log, which is written over itself first. After a flush that failed, the cache of the operating system still
 * shows what was to be flushed, and the next flush succeeds without it: rows found there would be built on, answered, and
 * gone when the power fails.
 */
export function flushAgain(folder: string, log: string): void {
  rewrite(join(folder, log));
  if (process.platform !== "win32") flush(folder, "r");
}

/** Flushes a log that was cut: SQLite does not, and what was in it would be there again when the power fails. */
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
