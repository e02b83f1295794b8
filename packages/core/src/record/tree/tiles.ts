import { nodeHash, perfectRoot, splitOf, tileHeight } from "./merkle.ts";

/** The number of hashes of a full tile, and of entries of a full bundle. */
export const tileWidth = 256;

/**
 * Reads adjacent hashes: of level 0 the hashes of leaves, above it the roots of full tiles below. Returns exactly the
 * requested number of hashes, or rejects.
 */
export type HashReader = (level: number, from: number, count: number) => Promise<Buffer>;

/** A tile, or a bundle of entries, as C2SP tlog-tiles numbers them. */
export interface Tile {
  readonly level: number | "entries";
  /** From 0, within its level. */
  readonly index: number;
  /** 1 to 256. */
  readonly width: number;
}

/** Returns the path of a tile under a log's prefix, such as `tile/0/x001/x234/067.p/12`. */
export function tilePath({ level, index, width }: Tile): string {
  return `tile/${level}/${indexPath({ index, width })}`;
}

/** Returns the end of a tile's path: `x001/x234/067`, followed by `.p/12` if the tile is partial. */
export function indexPath({ index, width }: Pick<Tile, "index" | "width">): string {
  const digits = String(index).padStart(Math.ceil(String(index).length / 3) * 3, "0");
  const elements = digits.match(/.{3}/g) ?? [];
  const path = elements.map((element, at) => (at < elements.length - 1 ? `x${element}` : element)).join("/");
  return width === tileWidth ? path : `${path}.p/${width}`;
}

/** Reads a path that `tilePath` writes; undefined for every other text. */
export function parseTilePath(path: string): Tile | undefined {
  const found = /^tile\/(entries|[0-9]{1,2})\/((?:x[0-9]{3}\/)*[0-9]{3})(?:\.p\/([0-9]{1,3}))?$/.exec(path);
  if (found === null) return undefined;
  const [, level = "", elements = "", width = String(tileWidth)] = found;
  const tile: Tile = {
    level: level === "entries" ? level : Number(level),
    index: Number(elements.replaceAll(/[x/]/g, "")),
    width: Number(width),
  };
  return tilePath(tile) === path && Number.isSafeInteger(tile.index) && tile.width > 0 ? tile : undefined;
}

/** Returns the number of hashes of a level in a tree of that size. */
export function levelSize(size: number, level: number): number {
  return Math.floor(size / tileWidth ** level);
}

/**
 * Yields every tile of a level (or bundle of entries) of a tree of that size, from an index on; the last one may be
 * partial.
 */
export function* tilesOf(size: number, level: number | "entries", from = 0): Generator<Tile> {
  const hashes = level === "entries" ? size : levelSize(size, level);
  for (let index = from; index * tileWidth < hashes; index += 1)
    yield { level, index, width: Math.min(tileWidth, hashes - index * tileWidth) };
}

/** Returns the levels that have tiles in a tree of that size. */
export function levelsOf(size: number): readonly number[] {
  const levels: number[] = [];
  for (let level = 0; levelSize(size, level) > 0; level += 1) levels.push(level);
  return levels;
}

/** Returns the root over the leaves from `from` up to `to`; `from` must be a position where RFC 6962 splits a tree. */
async function rootOf(read: HashReader, from: number, to: number): Promise<Buffer> {
  const size = to - from;
  const height = Math.log2(size);
  if (!Number.isInteger(height)) {
    const split = from + splitOf(size);
    return nodeHash(await rootOf(read, from, split), await rootOf(read, split, to));
  }
  const level = Math.floor(height / tileHeight);
  const count = 2 ** (height % tileHeight);
  return perfectRoot(await read(level, from / tileWidth ** level, count));
}

/** Returns the root of the tree of the first leaves. */
export async function rootAt(read: HashReader, size: number): Promise<Buffer> {
  return rootOf(read, 0, size);
}

/** Returns the roots of the perfect subtrees of a tree of that size, the largest first: the start of a `Frontier`. */
export async function frontierRoots(read: HashReader, size: number): Promise<readonly Buffer[]> {
  const roots: Buffer[] = [];
  for (let from = 0; from < size;) {
    const width = 2 ** Math.floor(Math.log2(size - from));
    roots.push(await rootOf(read, from, from + width));
    from += width;
  }
  return roots;
}

/**
 * Makes a proof of inclusion: RFC 6962, section 2.1.1.
 *
 * @param index from 0, below `size`
 * @param size the size of the tree
 */
export async function inclusionProof(read: HashReader, index: number, size: number): Promise<readonly Buffer[]> {
  const proof: Buffer[] = [];
  let [from, to] = [0, size];
  while (to - from > 1) {
    const split = from + splitOf(to - from);
    proof.push(await (index < split ? rootOf(read, split, to) : rootOf(read, from, split)));
    if (index < split) to = split;
    else from = split;
  }
  return proof.toReversed();
}

/**
 * Proves that the tree of the first `from` leaves is the start of the tree of `size` leaves: RFC 6962, section
 * 2.1.2.
 */
export async function consistencyProof(read: HashReader, from: number, size: number): Promise<readonly Buffer[]> {
  if (from === 0 || from === size) return [];
  const proof: Buffer[] = [];
  let [start, end] = [0, size];
  while (end !== from) {
    const split = start + splitOf(end - start);
    const isLeft = from <= split;
    proof.push(await (isLeft ? rootOf(read, split, end) : rootOf(read, start, split)));
    if (isLeft) end = split;
    else start = split;
  }
  if (start > 0) proof.push(await rootOf(read, start, end));
  return proof.toReversed();
}

/** Returns the bytes of a bundle: each entry after its length, two bytes with the most significant first. */
export function entryBundle(leaves: readonly string[]): Buffer {
  return Buffer.concat(
    leaves.flatMap((leaf) => {
      const bytes = Buffer.from(leaf, "utf8");
      const length = Buffer.alloc(2);
      length.writeUInt16BE(bytes.length);
      return [length, bytes];
    }),
  );
}

/** Returns the entries of a bundle; undefined if its bytes are not whole entries. */
export function parseBundle(bundle: Buffer): readonly Buffer[] | undefined {
  const entries: Buffer[] = [];
  for (let at = 0; at < bundle.length;) {
    if (at + 2 > bundle.length) return undefined;
    const length = bundle.readUInt16BE(at);
    if (at + 2 + length > bundle.length) return undefined;
    entries.push(bundle.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return entries;
}
