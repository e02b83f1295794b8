import { emptyRoot, hashBytes, nodeHash } from "../../packages/core/src/record/tree/merkle.ts";
import {
  levelSize,
  tilePath,
  tileWidth,
  type HashReader,
  type Tile,
} from "../../packages/core/src/record/tree/tiles.ts";

/** Two trees; the smaller must be the start of the larger. */
interface Consistency {
  readonly from: number;
  readonly size: number;
  readonly fromRoot: Uint8Array;
  readonly root: Uint8Array;
  readonly proof: readonly Uint8Array[];
}

/** Verifies a proof of consistency (RFC 9162, section 2.1.4.2). The empty tree is the start of every tree. */
export function isConsistent({ from, size, fromRoot, root, proof }: Consistency): boolean {
  if (!isNatural(from) || !isNatural(size) || from > size || ![fromRoot, root, ...proof].every(isHash)) return false;
  if (from === size) return proof.length === 0 && areEqual(fromRoot, root);
  if (from === 0) return proof.length === 0 && areEqual(fromRoot, emptyRoot);
  const [first, ...rest] = Number.isInteger(Math.log2(from)) ? [fromRoot, ...proof] : proof;
  if (first === undefined) return false;
  let [at, last] = [from - 1, size - 1];
  while (at % 2 === 1) [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  let [older, newer] = [first, first];
  for (const sibling of rest) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      [older, newer] = [nodeHash(sibling, older), nodeHash(sibling, newer)];
      while (at % 2 === 0 && at !== 0) [at, last] = [at / 2, Math.floor(last / 2)];
    } else newer = nodeHash(newer, sibling);
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return last === 0 && areEqual(older, fromRoot) && areEqual(newer, root);
}

function isNatural(number: number): boolean {
  return Number.isSafeInteger(number) && number >= 0;
}

function isHash(bytes: Uint8Array): boolean {
  return bytes.length === hashBytes;
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

/** Reads hashes from tiles in any storage. Successive reads of the same tile read it once. */
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
