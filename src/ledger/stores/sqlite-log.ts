import { closeSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";

const sliceBytes = 1024 * 1024;

/**
 * Writes a write-ahead log that an earlier process left over itself and flushes it, before anything of it is taken for
 * durable. After a flush that failed, the cache of the operating system still shows what was to be flushed, and the next
 * flush succeeds without it: rows found there would be built on, answered, and gone when the power fails.
 */
export function flushAgain(file: string): void {
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
