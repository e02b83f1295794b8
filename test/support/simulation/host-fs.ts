/** Replaces `node:fs` for the ledger with the simulated disk. */
import { DiskFailure, type Inode } from "./disk.ts";
import { machine, type Process } from "./machine.ts";

export * from "node:fs";

const blockBytes = 4096;

export function statSync(path: string): { readonly size: number } | undefined {
  const { process } = machine();
  process.enter("name", `stat ${path}`);
  return process.disk.find(path);
}

/** The disk contains nothing except the space that the plan leaves free. */
export function statfsSync(path: string): { readonly bavail: number; readonly bsize: number } {
  const { process } = machine();
  process.enter("name", `statfs ${path}`);
  const { capacityBytes, usedBytes } = process.disk;
  return { bavail: Math.floor(Math.max(0, capacityBytes - usedBytes) / blockBytes), bsize: blockBytes };
}

/** @throws {DiskFailure} as for a missing file */
export function existing(path: string): Inode {
  const found = machine().process.disk.find(path);
  if (found === undefined) throw new DiskFailure("ENOENT", path);
  return found;
}

/** Flushes a file, or loses the unflushed data. */
export function flush(process: Process, path: string, inode: Inode): void {
  const { ignoresFlushes, retriesFlushes } = process.disk.defect;
  const wasAlive = process.isAlive;
  try {
    process.enter("fsync", `fsync ${path}`);
  } catch (error) {
    if (wasAlive && process.isAlive) inode.failFlush();
    if (retriesFlushes === true && process.isAlive) return;
    throw error;
  }
  if (ignoresFlushes === undefined || !path.endsWith(ignoresFlushes)) inode.flush();
}

/** A folder has no inode. */
const opened = new Map<number, { readonly path: string; readonly inode: Inode | undefined }>();
let next = 1;

/** If a path opened for reading is not a file, it is treated as a folder. */
export function openSync(path: string, flags: "r" | "r+" | "wx"): number {
  const { process } = machine();
  process.enter("name", `open ${path}`);
  if (flags === "wx" && process.disk.find(path) !== undefined) throw new DiskFailure("EEXIST", path);
  const found = flags === "wx" ? process.disk.create(path) : process.disk.find(path);
  opened.set(next, { path, inode: flags === "r+" ? existing(path) : found });
  next += 1;
  return next - 1;
}

function file(descriptor: number): { readonly path: string; readonly inode: Inode } {
  const { path, inode } = opened.get(descriptor) ?? {};
  if (path === undefined || inode === undefined) throw new Error(`${descriptor} is not an open file`);
  return { path, inode };
}

export function readSync(descriptor: number, into: Uint8Array, at: number, count: number, from: number): number {
  const { path, inode } = file(descriptor);
  machine().process.enter("read", `read ${path}`);
  const bytes = inode.read(from, count);
  into.set(bytes, at);
  return bytes.length;
}

export function writeSync(descriptor: number, bytes: Uint8Array, at: number, count: number, from: number): number {
  const { path, inode } = file(descriptor);
  machine().process.enter("write", `write ${path}`);
  inode.write(from, bytes.subarray(at, at + count));
  return count;
}

export function fsyncSync(descriptor: number): void {
  const { process } = machine();
  const { path = "", inode } = opened.get(descriptor) ?? {};
  if (inode !== undefined) return flush(process, path, inode);
  process.enter("fsync", `fsync ${path}`);
  process.disk.flushNames(path);
}

export function closeSync(descriptor: number): void {
  opened.delete(descriptor);
}
