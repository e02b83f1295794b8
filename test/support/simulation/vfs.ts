import { dirname } from "node:path";
import { DiskFailure, Inode } from "./disk.ts";
import { engine } from "./engine.ts";
import { flush } from "./host-fs.ts";
import { machine, type Kind, type Process } from "./machine.ts";

/**
 * A SQLite VFS over the simulated disk. It makes the calls of the Unix VFS: the first flush of a new write-ahead log or
 * journal also flushes its folder; the first connection clears the shared memory; a full disk is SQLITE_FULL.
 */

/** Result codes of SQLite. */
const ok = 0;
const busy = 5;
const full = 13;
const cannotOpen = 14;
const notFound = 12;
const shortRead = 522;
const missing = 5898;
const failed = {
  read: ["read", 266],
  write: ["write", 778],
  fsync: ["fsync", 1034],
  "fsync of the folder": ["fsync", 1290],
  truncate: ["write", 1546],
  fstat: ["read", 1802],
  unlink: ["name", 2570],
  access: ["name", 3338],
  lock: ["lock", 3850],
  mmap: ["lock", 5386],
} as const satisfies Record<string, readonly [Kind, code: number]>;

/** The flags with which a file is opened. */
const open = { create: 0x4, deleteOnClose: 0x8, journal: 0x800 | 0x4000 | 0x80000 } as const;

/** Overwriting a part of a sector keeps the rest, as SQLite assumes on Unix. */
const powersafeOverwrite = 0x1000;
const sectorBytes = 4096;

interface OpenFile {
  readonly process: Process;
  readonly name: string;
  readonly inode: Inode;
  readonly deleteOnClose: boolean;
  /** Whether it is new, so that its first flush also flushes its folder. */
  isNew: boolean;
  lock: number;
  /** Memory shared with the other connections to the file, once it is requested. */
  shared: Shared | undefined;
}

interface Shared {
  readonly regions: number[];
  readonly users: Set<OpenFile>;
  /** The holders of each lock byte: shared, or exclusive. */
  readonly readers: readonly Set<OpenFile>[];
  readonly alone: (OpenFile | undefined)[];
}

const { native } = engine;
const opened = new Map<number, OpenFile>();
const openedOn = new WeakMap<Inode, Set<OpenFile>>();
const sharedOn = new WeakMap<Inode, Shared>();
let nextId = 1;

function fileAt(pointer: number): OpenFile {
  return opened.get(engine.view().getUint32(pointer + 4, true)) as OpenFile;
}

/** Makes a process's call on the disk. */
function call(file: OpenFile, what: keyof typeof failed, work: () => number): number {
  const [kind, code] = failed[what];
  try {
    file.process.enter(kind, `${what} ${file.name}`);
    return work();
  } catch (error) {
    return codeOf(error, code);
  }
}

function codeOf(error: unknown, code: number): number {
  if (!(error instanceof DiskFailure)) throw error;
  return error.code === "ENOSPC" && code === failed.write[1] ? full : code;
}

function openFile(_vfs: number, name: number, file: number, flags: number, flagsOut: number): number {
  const { process } = machine();
  const path = name === 0 ? "" : engine.text(name);
  try {
    process.enter("name", `open ${path}`);
  } catch (error) {
    engine.view().setUint32(file, 0, true);
    return codeOf(error, cannotOpen);
  }
  const found = path === "" ? undefined : process.disk.find(path);
  const isNew = found === undefined && path !== "";
  if (isNew && (flags & open.create) === 0) {
    engine.view().setUint32(file, 0, true);
    return cannotOpen;
  }
  const inode = found ?? (path === "" ? new Inode() : process.disk.create(path));
  const made: OpenFile = {
    process,
    name: path,
    inode,
    deleteOnClose: path !== "" && (flags & open.deleteOnClose) !== 0,
    isNew: isNew && (flags & open.journal) !== 0,
    lock: 0,
    shared: undefined,
  };
  opened.set(nextId, made);
  openedOn.set(inode, (openedOn.get(inode) ?? new Set()).add(made));
  engine.view().setUint32(file, methods, true);
  engine.view().setUint32(file + 4, nextId, true);
  if (flagsOut !== 0) engine.view().setInt32(flagsOut, flags, true);
  nextId += 1;
  return ok;
}

function close(pointer: number): number {
  const file = fileAt(pointer);
  unmap(pointer, 0);
  if (file.deleteOnClose && file.process.isAlive) file.process.disk.remove(file.name);
  openedOn.get(file.inode)?.delete(file);
  opened.delete(engine.view().getUint32(pointer + 4, true));
  engine.view().setUint32(pointer, 0, true);
  return ok;
}

function read(pointer: number, buffer: number, count: number, from: bigint): number {
  const file = fileAt(pointer);
  return call(file, "read", () => {
    const bytes = file.inode.read(Number(from), count);
    const into = engine.memory();
    into.set(bytes, buffer);
    if (bytes.length === count) return ok;
    into.fill(0, buffer + bytes.length, buffer + count);
    return shortRead;
  });
}

function write(pointer: number, buffer: number, count: number, from: bigint): number {
  const file = fileAt(pointer);
  const { process, inode } = file;
  const bytes = engine.memory().slice(buffer, buffer + count);
  const wasAlive = process.isAlive;
  try {
    process.enter("write", `write ${file.name}`);
    const { disk } = process;
    if (Number(from) + count > inode.size && disk.usedBytes + count > disk.capacityBytes)
      throw new DiskFailure("ENOSPC", "write");
    inode.write(Number(from), bytes);
    return ok;
  } catch (error) {
    // A failed or interrupted write may have written a part.
    const done = machine().chance.whole(0, Math.floor(count / 512)) * 512;
    if (wasAlive && done > 0) inode.write(Number(from), bytes.subarray(0, done));
    return codeOf(error, failed.write[1]);
  }
}

function truncate(pointer: number, size: bigint): number {
  const file = fileAt(pointer);
  return call(file, "truncate", () => {
    file.inode.truncate(Number(size));
    return ok;
  });
}

function sync(pointer: number): number {
  const file = fileAt(pointer);
  const { process, inode } = file;
  try {
    flush(process, file.name, inode);
  } catch (error) {
    return codeOf(error, failed.fsync[1]);
  }
  if (!file.isNew) return ok;
  const named = call(file, "fsync of the folder", () => {
    process.disk.flushNames(dirname(file.name));
    return ok;
  });
  if (named === ok) file.isNew = false;
  return named;
}

function fileSize(pointer: number, out: number): number {
  const file = fileAt(pointer);
  return call(file, "fstat", () => {
    engine.view().setBigInt64(out, BigInt(file.inode.size), true);
    return ok;
  });
}

/** Levels: 1 shared, 2 reserved, 3 pending, 4 exclusive. */
function lock(pointer: number, level: number): number {
  const file = fileAt(pointer);
  if (file.lock >= level) return ok;
  return call(file, "lock", () => {
    const others = [...(openedOn.get(file.inode) ?? [])].filter((each) => each !== file).map((each) => each.lock);
    const isBlocked =
      level === 1
        ? others.some((each) => each >= 3)
        : level === 4
          ? others.some(Boolean)
          : others.some((each) => each >= 2);
    if (isBlocked) return busy;
    file.lock = level;
    return ok;
  });
}

function unlock(pointer: number, level: number): number {
  const file = fileAt(pointer);
  file.lock = Math.min(file.lock, level);
  return ok;
}

function checkReserved(pointer: number, out: number): number {
  const file = fileAt(pointer);
  const isReserved = [...(openedOn.get(file.inode) ?? [])].some((each) => each.lock >= 2);
  engine.view().setInt32(out, isReserved ? 1 : 0, true);
  return ok;
}

function map(pointer: number, region: number, bytes: number, extend: number, out: number): number {
  const file = fileAt(pointer);
  return call(file, "mmap", () => {
    const shared = sharedOf(file);
    if (shared.regions[region] === undefined && extend !== 0) {
      shared.regions[region] = native.sqlite3_malloc(bytes);
      engine.memory().fill(0, shared.regions[region], (shared.regions[region] ?? 0) + bytes);
    }
    engine.view().setUint32(out, shared.regions[region] ?? 0, true);
    return ok;
  });
}

const sharedLocks = 8;

function sharedOf(file: OpenFile): Shared {
  const shared = sharedOn.get(file.inode) ?? {
    regions: [],
    users: new Set(),
    readers: Array.from({ length: sharedLocks }, () => new Set<OpenFile>()),
    alone: [],
  };
  sharedOn.set(file.inode, shared);
  shared.users.add(file);
  file.shared = shared;
  return shared;
}

/** Flags: 1 unlock, 2 lock; 4 shared, 8 exclusive. */
function lockShared(pointer: number, from: number, count: number, flags: number): number {
  const file = fileAt(pointer);
  const shared = file.shared ?? sharedOf(file);
  const bytes = Array.from({ length: count }, (_, index) => from + index);
  if ((flags & 1) !== 0) {
    for (const byte of bytes) {
      shared.readers[byte]?.delete(file);
      if (shared.alone[byte] === file) shared.alone[byte] = undefined;
    }
    return ok;
  }
  const isAlone = (flags & 8) !== 0;
  return call(file, "lock", () => {
    for (const byte of bytes) {
      const owner = shared.alone[byte];
      if (owner !== undefined && owner !== file) return busy;
      if (isAlone && [...(shared.readers[byte] ?? [])].some((reader) => reader !== file)) return busy;
    }
    for (const byte of bytes) {
      if (isAlone) shared.alone[byte] = file;
      else shared.readers[byte]?.add(file);
    }
    return ok;
  });
}

function unmap(pointer: number, _deleteFlag: number): number {
  const file = fileAt(pointer);
  const { shared } = file;
  file.shared = undefined;
  if (shared === undefined) return ok;
  shared.users.delete(file);
  for (const readers of shared.readers) readers.delete(file);
  for (const [index, owner] of shared.alone.entries()) if (owner === file) shared.alone[index] = undefined;
  if (shared.users.size > 0) return ok;
  for (const region of shared.regions) native.sqlite3_free(region);
  sharedOn.delete(file.inode);
  return ok;
}

function remove(_vfs: number, name: number, flushFolder: number): number {
  const { process } = machine();
  const path = engine.text(name);
  try {
    process.enter("name", `unlink ${path}`);
    if (process.disk.find(path) === undefined) return missing;
    process.disk.remove(path);
    if (flushFolder === 0) return ok;
    process.enter("fsync", "fsync of the folder");
    process.disk.flushNames(dirname(path));
    return ok;
  } catch (error) {
    return codeOf(error, failed.unlink[1]);
  }
}

function access(_vfs: number, name: number, flags: number, out: number): number {
  const { process } = machine();
  const path = engine.text(name);
  try {
    process.enter("name", `access ${path}`);
  } catch (error) {
    return codeOf(error, failed.access[1]);
  }
  const found = process.disk.find(path);
  // To SQLite an empty file does not exist, unless it asks whether the file can be written.
  engine.view().setInt32(out, found !== undefined && (flags !== 0 || found.size > 0) ? 1 : 0, true);
  return ok;
}

function fullPath(_vfs: number, name: number, bytes: number, out: number): number {
  const path = Buffer.from(`${engine.text(name)}\0`);
  if (path.length > bytes) return cannotOpen;
  engine.memory().set(path, out);
  return ok;
}

function randomness(_vfs: number, count: number, out: number): number {
  const { chance } = machine();
  const bytes = engine.memory();
  for (let at = 0; at < count; at += 1) bytes[out + at] = chance.whole(0, 255);
  return count;
}

/** Writes the time as a Julian day number, in milliseconds. */
function currentTime(_vfs: number, out: number): number {
  engine.view().setBigInt64(out, 210_866_760_000_000n + BigInt(Math.floor(machine().now)), true);
  return ok;
}

const zero = (): number => 0;

/** Makes a table of functions in memory, after a version number. */
function table(before: readonly number[], functions: readonly number[]): number {
  const pointer = native.sqlite3_malloc((before.length + functions.length) * 4);
  const view = engine.view();
  for (const [at, value] of [...before, ...functions].entries()) view.setUint32(pointer + at * 4, value, true);
  return pointer;
}

const { install } = engine;

/** `sqlite3_io_methods`, version 2: with shared memory, without mapped files. */
const methods = table(
  [2],
  [
    install("ii", close),
    install("iiiij", read),
    install("iiiij", write),
    install("iij", truncate),
    install("iii", sync),
    install("iii", fileSize),
    install("iii", lock),
    install("iii", unlock),
    install("iii", checkReserved),
    install("iiii", () => notFound),
    install("ii", () => sectorBytes),
    install("ii", () => powersafeOverwrite),
    install("iiiiii", map),
    install("iiiii", lockShared),
    install("vi", () => undefined),
    install("iii", unmap),
  ],
);

const pathBytesMax = 512;

/** `sqlite3_vfs`, version 2, registered as the default. */
export function registerDisk(): void {
  const fileBytes = 8;
  const vfs = table(
    [2, fileBytes, pathBytesMax, 0, engine.keepText("simulated"), 0],
    [
      install("iiiiii", openFile),
      install("iiii", remove),
      install("iiiii", access),
      install("iiiii", fullPath),
      0, // four for loading extensions
      0,
      0,
      0,
      install("iiii", randomness),
      install("iii", zero),
      install("iii", zero),
      install("iiii", zero),
      install("iii", currentTime),
    ],
  );
  native.sqlite3_vfs_register(vfs, 1);
}

/** Restarts SQLite's random numbers, from the machine's. */
export function reseed(): void {
  native.sqlite3_randomness(0, 0);
}
