/**
 * Replaces `node:fs/promises` for the ledger with the simulated disk, which answers after a random delay. Other
 * functions are the platform's and find nothing, because the simulated folder is on no real disk.
 */
import type { Inode } from "./disk.ts";
import { existing, flush, statfsSync } from "./host-fs.ts";
import { machine, type Kind } from "./machine.ts";
import { folder } from "./plan.ts";

export * from "node:fs/promises";

export async function mkdir(path: string): Promise<void> {
  await onDisk("name", `mkdir ${path}`, () => undefined);
}

export function readFile(path: string, encoding: "utf8"): Promise<string>;
export function readFile(path: string): Promise<Buffer>;
export function readFile(path: string, encoding?: "utf8"): Promise<string | Buffer> {
  return onDisk("read", `read ${path}`, () => {
    const inode = existing(path);
    const bytes = Buffer.from(inode.read(0, inode.size).slice());
    return encoding === undefined ? bytes : bytes.toString(encoding);
  });
}

/** Files are readable by their owner only; folders always exist, without a disk access. */
export function stat(path: string): Promise<{ readonly mode: number; readonly size: number; isDirectory(): boolean }> {
  if (path === "/" || `${folder}/`.startsWith(`${path}/`))
    return Promise.resolve({ mode: 0o040_700, size: 0, isDirectory: () => true });
  return onDisk("name", `stat ${path}`, () => ({
    mode: 0o100_600,
    size: existing(path).size,
    isDirectory: () => false,
  }));
}

/** Empty, because the caller only looks for files that others can read. */
export function readdir(_path: string): Promise<readonly string[]> {
  return Promise.resolve([]);
}

export async function writeFile(
  path: string,
  content: string | Uint8Array,
  { flush: isFlushed = false }: { readonly flush?: boolean } = {},
): Promise<void> {
  await using handle = await open(path, "w");
  await handle.writeFile(content);
  if (isFlushed) await handle.sync();
}

export function rename(from: string, to: string): Promise<void> {
  return onDisk("name", `rename ${from}`, () => machine().process.disk.rename(from, to));
}

export function link(from: string, to: string): Promise<void> {
  return onDisk("name", `link ${from}`, () => machine().process.disk.link(from, to));
}

export function unlink(path: string): Promise<void> {
  return onDisk("name", `unlink ${path}`, () => {
    existing(path);
    machine().process.disk.remove(path);
  });
}

export function statfs(path: string): Promise<{ readonly bavail: number; readonly bsize: number }> {
  return machine().eventually(() => statfsSync(path));
}

export interface FileHandle {
  writeFile(content: string | Uint8Array): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const close = (): Promise<void> => machine().eventually(() => undefined);
const closing = { close, [Symbol.asyncDispose]: close };

/** A path that is opened for reading and is not a file is a folder. */
export function open(path: string, flags: "r" | "w"): Promise<FileHandle> {
  return onDisk("name", `open ${path}`, () => {
    const { disk } = machine().process;
    if (flags === "r" && disk.find(path) === undefined) return openFolder(path);
    const inode = disk.find(path) ?? disk.create(path);
    if (flags === "w") inode.truncate(0);
    return file(path, inode);
  });
}

function file(path: string, inode: Inode): FileHandle {
  return {
    writeFile: (content) => onDisk("write", `write ${path}`, () => inode.write(0, Buffer.from(content as string))),
    sync: () => machine().eventually(() => flush(machine().process, path, inode)),
    ...closing,
  };
}

function openFolder(path: string): FileHandle {
  return {
    writeFile: () => Promise.reject(new Error(`${path} is a folder`)),
    sync: () => onDisk("fsync", `fsync ${path}`, () => machine().process.disk.flushNames(path)),
    ...closing,
  };
}

function onDisk<Value>(kind: Kind, call: string, work: () => Value): Promise<Value> {
  return machine().eventually(() => {
    machine().process.enter(kind, call);
    return work();
  });
}
