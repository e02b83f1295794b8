import { hashBytes, nodeHash, perfectRoot, splitOf, tileHeight } from "./merkle.ts";

/** Hashes of a full tile, and entries of a full bundle. */
export const tileWidth = 256;

/**
 * Reads hashes that stand side by side: of level 0 those of the leaves, above it the roots of full tiles below. It gives
 * exactly as many as were asked for, or rejects.
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

/** Where a tile lies under a log's prefix, such as `tile/0/x001/x234/067.p/12`. */
export function tilePath({ level, index, width }: Tile): string {
  return `tile/${level}/${indexPath({ index, width })}`;
}

/** The end of a tile's path: `x001/x234/067`, and `.p/12` behind it where the tile is partial. */
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

/** How many hashes a level of a tree of that size has. */
export function levelSize(size: number, level: number): number {
  return Math.floor(size / tileWidth ** level);
}

/** Every tile of a level (or bundle of entries) of a tree of that size, from an index on; the last one may be partial. */
export function* tilesOf(size: number, level: number | "entries", from = 0): Generator<Tile> {
  const hashes = level === "entries" ? size : levelSize(size, level);
  for (let index = from; index * tileWidth < hashes; index += 1)
    yield { level, index, width: Math.min(tileWidth, hashes - index * tileWidth) };
}

/** The levels that a tree of that size has tiles of. */
export function levelsOf(size: number): readonly number[] {
  const levels: number[] = [];
  for (let level = 0; levelSize(size, level) > 0; level += 1) levels.push(level);
  return levels;
}

/** The root over the leaves from `from` up to `to`, where `from` is where RFC 6962 can split a tree. */
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

/** The root of the tree of the first leaves. */
export async function rootAt(read: HashReader, size: number): Promise<Buffer> {
  return rootOf(read, 0, size);
}

/** The roots of the perfect trees that make up a tree of that size, the largest first: what a `Frontier` begins with. */
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
 * The way from a leaf to the root: RFC 6962, section 2.1.1.
 *
 * @param index from 0, below `size`
 * @param size of the tree whose root it leads to
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

/** Shows that the tree of the first `from` leaves is the beginning of the one of `size`: RFC 6962, section 2.1.2. */
export async function consistencyProof(read: HashReader, from: number, size: number): Promise<readonly Buffer[]> {
  if (from === 0 || from === size) return [];
  const proof: Buffer[] = [];
  let [begin, end] = [0, size];
  while (end !== from) {
    const split = begin + splitOf(end - begin);
    const isLeft = from <= split;
    proof.push(await (isLeft ? rootOf(read, split, end) : rootOf(read, begin, split)));
    if (isLeft) end = split;
    else begin = split;
  }
  if (begin > 0) proof.push(await rootOf(read, begin, end));
  return proof.toReversed();
}

/** Reads hashes from tiles, wherever these lie. A tile is read once for hashes that are asked for one after another. */
export function readerOfTiles(
  size: number,
  tile: (wanted: Tile & { readonly level: number }) => Promise<Buffer>,
): HashReader {
  let last: { readonly path: string; readonly hashes: Promise<Buffer> } | undefined;
  return async (level, from, count) => {
    const index = Math.floor(from / tileWidth);
    const width = Math.min(tileWidth, levelSize(size, level) - index * tileWidth);
    const path = tilePath({ level, index, width });
    if (last?.path !== path) last = { path, hashes: tile({ level, index, width }) };
    const hashes = await last.hashes;
    const at = from - index * tileWidth;
    const found = hashes.subarray(at * hashBytes, (at + count) * hashBytes);
    if (hashes.length !== width * hashBytes || found.length !== count * hashBytes)
      throw new Error(`the tile ${path} has ${hashes.length} bytes, not ${width * hashBytes}`);
    return found;
  };
}

/** A bundle's bytes: each entry behind its length, two bytes with the larger first. */
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

/** The entries of a bundle; undefined where its bytes are not whole entries. */
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
