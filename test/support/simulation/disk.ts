import { dirname } from "node:path";
import type { Chance } from "../model/chance.ts";

/** The unit in which a disk keeps or loses unflushed data. */
const sectorBytes = 512;

/** The errors of a call on the disk. */
export type DiskError = "EIO" | "ENOSPC" | "ENOENT" | "EEXIST";

export class DiskFailure extends Error {
  readonly code: DiskError;
  constructor(code: DiskError, call: string) {
    super(`${code}: ${call}`);
    this.code = code;
  }
}

/** What ended: the process alone, or the machine's power. */
export type Crash = "kill" | "power";

/** Ways in which a disk can be worse than the ledger must tolerate, to see whether the simulation notices. */
export interface Defect {
  /** It confirms a flush without flushing, of a file whose name ends so. */
  readonly ignoresFlushes?: string;
  /** A failed flush is tried again, and the caller trusts the second one. */
  readonly retriesFlushes?: boolean;
  /** A loss of power damages a byte that was flushed long ago, in a file whose name ends so. */
  readonly spoils?: string;
}

/**
 * A disk under the page cache of an operating system. Readers see a write at once, but only a flush puts it on the
 * disk. Before that, a loss of power leaves each sector of 512 bytes in any of its states since the last flush, or torn
 * between two of them. A file may keep its old length, or have its new one with zeros or garbage instead of missing
 * data. A name that was made, moved or removed without a flush of its folder may be new or old. A failed flush loses
 * its data, and the next one succeeds without it, as on Linux.
 */
export class Disk {
  #names = new Map<string, Inode>();
  /** The names as on the disk. */
  #flushedNames = new Map<string, Inode>();
  /** Later changes, each of which a loss of power keeps whole or not at all, as a journal does. */
  #changes: Names[] = [];
  readonly defect: Defect;
  /** The disk's capacity: beyond it, growing fails with ENOSPC. */
  capacityBytes: number = Number.MAX_SAFE_INTEGER;

  constructor(defect: Defect = {}) {
    this.defect = defect;
  }

  find(name: string): Inode | undefined {
    return this.#names.get(name);
  }

  /** Returns all files, as readers see them. */
  *contents(): Generator<readonly [name: string, content: Buffer]> {
    for (const [name, inode] of this.#names) yield [name, Buffer.from(inode.read(0, inode.size))];
  }

  create(name: string): Inode {
    const made = new Inode();
    this.#change([[name, made]]);
    return made;
  }

  remove(name: string): void {
    this.#change([[name, undefined]]);
  }

  rename(from: string, to: string): void {
    const moved = this.#names.get(from);
    if (moved === undefined) throw new DiskFailure("ENOENT", `rename ${from}`);
    this.#change([
      [to, moved],
      [from, undefined],
    ]);
  }

  /** Gives one file two names. */
  link(from: string, to: string): void {
    const linked = this.#names.get(from);
    if (linked === undefined) throw new DiskFailure("ENOENT", `link ${from}`);
    if (this.#names.has(to)) throw new DiskFailure("EEXIST", `link ${to}`);
    this.#change([[to, linked]]);
  }

  #change(names: Names): void {
    this.#changes.push(names);
    apply(this.#names, names);
  }

  /** Flushes a folder, so that its names are on the disk as readers see them. */
  flushNames(folder: string): void {
    const isHere = ([[name] = ["", undefined]]: Names): boolean => dirname(name) === folder;
    for (const change of this.#changes.filter(isHere)) apply(this.#flushedNames, change);
    this.#changes = this.#changes.filter((change) => !isHere(change));
  }

  get usedBytes(): number {
    return [...this.#names.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Applies a crash. The end of a process loses nothing in the cache. */
  crash(kind: Crash, chance: Chance): void {
    if (kind === "kill") return;
    const isInOrder = chance.often(0.5);
    const kept = chance.whole(0, this.#changes.length);
    for (const [index, change] of this.#changes.entries())
      if (isInOrder ? index < kept : chance.often(0.5)) apply(this.#flushedNames, change);
    this.#names = new Map(this.#flushedNames);
    this.#changes = [];
    for (const inode of new Set(this.#names.values())) inode.lose(chance);
    const { spoils } = this.defect;
    if (spoils === undefined) return;
    for (const [name, inode] of this.#names) if (name.endsWith(spoils)) inode.spoil(chance);
  }

  /** Copies the disk, including everything that is not certain. */
  copy(): Disk {
    const made = new Disk(this.defect);
    const inodes = new Map<Inode, Inode>();
    const copyOf = (inode: Inode): Inode => {
      const known = inodes.get(inode) ?? inode.copy();
      inodes.set(inode, known);
      return known;
    };
    const copyNames = (names: ReadonlyMap<string, Inode>): Map<string, Inode> =>
      new Map([...names].map(([name, inode]) => [name, copyOf(inode)]));
    made.#names = copyNames(this.#names);
    made.#flushedNames = copyNames(this.#flushedNames);
    made.#changes = this.#changes.map((change) => change.map(([name, inode]) => [name, inode && copyOf(inode)]));
    return made;
  }
}

type Names = readonly (readonly [name: string, inode: Inode | undefined])[];

function apply(names: Map<string, Inode>, change: Names): void {
  for (const [name, inode] of change) {
    if (inode === undefined) names.delete(name);
    else names.set(name, inode);
  }
}

/** A change to a file since its last flush. */
interface Done {
  readonly from: number;
  /** The new bytes; empty if the file was truncated, or extended without a write. */
  readonly bytes: Uint8Array;
  /** The old bytes, as far as the file reached. */
  readonly before: Uint8Array;
  /** The file's length before and after. */
  readonly size: readonly [before: number, after: number];
}

/** One file as the operating system's cache shows it, and the parts that may not be on the disk. */
export class Inode {
  #content = new Uint8Array(0);
  #size = 0;
  #done: Done[] = [];
  /** Sectors whose flush failed, with their possible contents: the cache treats them as flushed. */
  #doubtful = new Map<number, readonly Uint8Array[]>();

  get size(): number {
    return this.#size;
  }

  /** @returns a view of the bytes, shorter than requested at the end of the file */
  read(from: number, count: number): Uint8Array {
    return this.#content.subarray(Math.min(from, this.#size), Math.min(from + count, this.#size));
  }

  /** @param bytes are kept without a copy */
  write(from: number, bytes: Uint8Array): void {
    this.#do(from, bytes, Math.max(this.#size, from + bytes.length));
  }

  truncate(size: number): void {
    if (size !== this.#size) this.#do(size, nothing, size);
  }

  #do(from: number, bytes: Uint8Array, size: number): void {
    const to = size < this.#size ? this.#size : from + bytes.length;
    const before = this.read(from, to - from).slice();
    this.#done.push({ from, bytes, before, size: [this.#size, size] });
    this.#grow(Math.max(to, size));
    if (size < this.#size) this.#content.fill(0, size, this.#size);
    this.#content.set(bytes, from);
    this.#size = size;
  }

  /** Puts everything on the disk, except data that a failed flush has already lost. */
  flush(): void {
    if (this.#doubtful.size > 0)
      for (const { from, bytes, size } of this.#done)
        for (const sector of sectorsOf(from, Math.max(from + bytes.length, ...size))) this.#doubtful.delete(sector);
    this.#done = [];
  }

  /** No unflushed write reaches the disk any more, though a crash may still find any part of it there. */
  failFlush(): void {
    const states = this.#states();
    for (const [sector, found] of states.sectors)
      this.#doubtful.set(
        sector,
        possible(found, states.cuts).map(({ bytes }) => bytes),
      );
    this.#done = [];
  }

  lose(chance: Chance): void {
    if (this.#done.length === 0 && this.#doubtful.size === 0) return;
    const { sectors, lengths } = this.#states();
    const { size, cuts } = chance.pick(lengths);
    const certain = lengths[0]?.size ?? 0;
    const found = [...sectors].map(([sector, states]) => {
      return [sector, survivor(possible(states, cuts), sector * sectorBytes >= certain, chance)] as const;
    });
    for (const [sector, bytes] of found) {
      this.#grow((sector + 1) * sectorBytes);
      this.#content.set(bytes, sector * sectorBytes);
    }
    this.#grow(size);
    this.#content.fill(0, size);
    this.#size = size;
    this.#done = [];
    this.#doubtful.clear();
  }

  /** Changes one random byte. */
  spoil(chance: Chance): void {
    const at = chance.whole(0, Math.max(0, this.#size - 1));
    if (this.#size > 0) this.#content[at] = (this.#content[at] ?? 0) ^ (1 << chance.whole(0, 7));
  }

  copy(): Inode {
    const made = new Inode();
    made.#content = this.#content.slice(0, this.#size);
    made.#size = this.#size;
    made.#done = [...this.#done];
    made.#doubtful = new Map(this.#doubtful);
    return made;
  }

  /** Undoes all changes since the last flush and repeats them, to collect each sector's states. */
  #states(): States {
    const content = this.#content.slice();
    for (const { from, bytes, before } of this.#done.toReversed()) {
      content.fill(0, from, from + bytes.length);
      content.set(before, from);
    }
    const states = new States(content, this.#done[0]?.size[0] ?? this.#size, this.#doubtful);
    for (const done of this.#done) states.add(done);
    return states;
  }

  #grow(size: number): void {
    if (size <= this.#content.length) return;
    const larger = new Uint8Array(Math.max(size, this.#content.length * 2, 4096));
    larger.set(this.#content);
    this.#content = larger;
  }
}

const nothing = new Uint8Array(0);

/** A possible state of a sector. */
interface State {
  readonly bytes: Uint8Array;
  /**
   * How often the file had been truncated since the last flush: the state is possible if the disk has at least as many
   * truncations.
   */
  readonly cuts: number;
  /** A truncation made it: the earlier content is gone if the disk has that truncation. */
  readonly isCut: boolean;
}

/** The possible states of a file after a loss of power; the first of each is the state on the disk. */
class States {
  readonly sectors = new Map<number, State[]>();
  readonly lengths: { readonly size: number; readonly cuts: number }[];
  cuts = 0;
  readonly #content: Uint8Array;

  constructor(content: Uint8Array, size: number, doubtful: ReadonlyMap<number, readonly Uint8Array[]>) {
    this.#content = content;
    this.lengths = [{ size, cuts: 0 }];
    for (const [sector, found] of doubtful)
      this.sectors.set(
        sector,
        found.map((bytes) => ({ bytes, cuts: 0, isCut: false })),
      );
  }

  add({ from, bytes, size: [before, after] }: Done): void {
    const isCut = after < before;
    const sectors = sectorsOf(from, isCut ? before : from + bytes.length);
    for (const sector of sectors)
      if (!this.sectors.has(sector)) this.sectors.set(sector, [{ bytes: this.#sector(sector), cuts: 0, isCut: false }]);
    if (isCut) {
      this.cuts += 1;
      this.#content.fill(0, after);
    }
    this.#content.set(bytes, from);
    if (after !== before) this.lengths.push({ size: after, cuts: this.cuts });
    for (const sector of sectors)
      this.sectors.get(sector)?.push({ bytes: this.#sector(sector), cuts: this.cuts, isCut });
  }

  #sector(sector: number): Uint8Array {
    const made = new Uint8Array(sectorBytes);
    made.set(this.#content.subarray(sector * sectorBytes, (sector + 1) * sectorBytes));
    return made;
  }
}

function sectorsOf(from: number, to: number): readonly number[] {
  const first = Math.floor(from / sectorBytes);
  return Array.from({ length: Math.max(0, Math.ceil(to / sectorBytes) - first) }, (_, index) => first + index);
}

/** Returns the states that are possible if the disk has this many truncations of the file. */
function possible(states: readonly State[], cuts: number): readonly State[] {
  const known = states.filter((state) => state.cuts <= cuts);
  return known.slice(
    Math.max(
      0,
      known.findLastIndex(({ isCut }) => isCut),
    ),
  );
}

/**
 * Returns one of the states; sometimes torn between the oldest and another; in space that is new to the file, sometimes
 * garbage.
 */
function survivor(states: readonly State[], isNew: boolean, chance: Chance): Uint8Array {
  const { bytes: kept } = chance.pick(states);
  if (isNew && chance.often(0.02)) return kept.map(() => chance.whole(0, 255));
  if (!chance.often(0.05)) return kept;
  const torn = (states[0]?.bytes ?? kept).slice();
  torn.set(kept.subarray(0, chance.whole(0, sectorBytes)));
  return torn;
}
