import { dirname } from "node:path";
import type { Chance } from "../model/chance.ts";

/** The unit in which a disk keeps or loses what was not flushed. */
const sectorBytes = 512;

/** What a call on the disk can fail with. */
export type DiskError = "EIO" | "ENOSPC" | "ENOENT" | "EEXIST";

export class DiskFailure extends Error {
  readonly code: DiskError;
  constructor(code: DiskError, call: string) {
    super(`${code}: ${call}`);
    this.code = code;
  }
}

/** What became of the machine: the process alone ended, or its power. */
export type Crash = "kill" | "power";

/** Ways in which a disk can be worse than the ledger has to bear, to see whether the simulation notices. */
export interface Defect {
  /** It says that it has flushed, and has not. */
  readonly ignoresFlushes?: boolean;
  /** Whoever asks for a flush has one that failed tried again, and believes the second. */
  readonly retriesFlushes?: boolean;
  /** A loss of power spoils a byte of what was flushed long ago, in a file whose name ends so. */
  readonly spoils?: string;
}

/**
 * A disk under the page cache of an operating system. What is written is seen at once by whoever reads, and is on the disk
 * only after a flush. Before that, a loss of power leaves each sector of 512 bytes in any of the states that it had since the
 * last flush, or torn between two of them; a file may keep its old length, or have its new one with zeros or rubbish where
 * nothing arrived; a name that was made, moved or removed and not flushed with its folder may be so or as before. A flush that
 * fails loses what it should have flushed, and the next one succeeds without it, as Linux does.
 */
export class Disk {
  #names = new Map<string, Inode>();
  /** As on the disk. */
  #flushedNames = new Map<string, Inode>();
  /** Changes since, each of which a loss of power keeps whole or not at all, as a journal does. */
  #changes: Names[] = [];
  readonly defect: Defect;
  /** What it holds at most: beyond that, growing fails with ENOSPC. */
  capacityBytes: number = Number.MAX_SAFE_INTEGER;

  constructor(defect: Defect = {}) {
    this.defect = defect;
  }

  find(name: string): Inode | undefined {
    return this.#names.get(name);
  }

  /** All files, as they are seen. */
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

  /** One file under two names. */
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

  /** Flushes a folder: the names in it are as they are seen. */
  flushNames(folder: string): void {
    const isHere = ([[name] = ["", undefined]]: Names): boolean => dirname(name) === folder;
    for (const change of this.#changes.filter(isHere)) apply(this.#flushedNames, change);
    this.#changes = this.#changes.filter((change) => !isHere(change));
  }

  get usedBytes(): number {
    return [...this.#names.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Leaves what a crash leaves. A process that ends loses nothing of what the cache holds. */
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

  /** The same disk once more, with all that is not certain of it. */
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

/** What was done to a file since its last flush. */
interface Done {
  readonly from: number;
  /** What is there now; empty where the file was cut, or made longer without a write. */
  readonly bytes: Uint8Array;
  /** What was there before, as far as the file reached. */
  readonly before: Uint8Array;
  /** The file's length before and after. */
  readonly size: readonly [before: number, after: number];
}

/** One file, as the cache of the operating system shows it, and what the disk may not have of it. */
export class Inode {
  #content = new Uint8Array(0);
  #size = 0;
  #done: Done[] = [];
  /** Sectors whose flush failed, and what they may be found to be: the cache takes them for flushed. */
  #doubtful = new Map<number, readonly Uint8Array[]>();

  get size(): number {
    return this.#size;
  }

  /** @returns a view of what is there, shorter than asked for at the end of the file */
  read(from: number, count: number): Uint8Array {
    return this.#content.subarray(Math.min(from, this.#size), Math.min(from + count, this.#size));
  }

  /** @param bytes are kept */
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

  /** What is seen is what is on the disk, but for what a failed flush has lost already. */
  flush(): void {
    if (this.#doubtful.size > 0)
      for (const { from, bytes, size } of this.#done)
        for (const sector of sectorsOf(from, Math.max(from + bytes.length, ...size))) this.#doubtful.delete(sector);
    this.#done = [];
  }

  /** Nothing more comes to the disk of what was written since the last flush, though a crash may find any of it there. */
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

  /** Some byte becomes another. */
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

  /** All that has been done since the last flush is undone, and done again to see what each sector comes to be. */
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

/** What a sector may be found to be. */
interface State {
  readonly bytes: Uint8Array;
  /** How often the file had been cut since the last flush: it is there if the disk knows of as many cuts at least. */
  readonly cuts: number;
  /** It came about by a cut: what was there before is gone where the disk knows of that. */
  readonly isCut: boolean;
}

/** What a loss of power may leave of a file; the first of each is what is on the disk. */
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

/** The states that can be found where the disk knows of so many cuts of the file. */
function possible(states: readonly State[], cuts: number): readonly State[] {
  const known = states.filter((state) => state.cuts <= cuts);
  return known.slice(
    Math.max(
      0,
      known.findLastIndex(({ isCut }) => isCut),
    ),
  );
}

/** One of the states; sometimes torn between the oldest and another; in space that is new to the file sometimes rubbish. */
function survivor(states: readonly State[], isNew: boolean, chance: Chance): Uint8Array {
  const { bytes: kept } = chance.pick(states);
  if (isNew && chance.often(0.02)) return kept.map(() => chance.whole(0, 255));
  if (!chance.often(0.05)) return kept;
  const torn = (states[0]?.bytes ?? kept).slice();
  torn.set(kept.subarray(0, chance.whole(0, sectorBytes)));
  return torn;
}
