import { Frontier } from "./merkle.ts";
import { frontierRoots, type HashReader } from "./tiles.ts";

/** The hashes of a tree as a store keeps them: 32 bytes each. */
export interface KeptHashes {
  hashes(level: number, from: number, count: number): Promise<Uint8Array>;
}

/** Reads the hashes of a ledger's tree from its store. */
export function readerOf(history: KeptHashes): HashReader {
  return async (level, from, count) => Buffer.from(await history.hashes(level, from, count));
}

/** Returns the tree over the first rows of a store. */
export async function treeAt(history: KeptHashes, size: number): Promise<Frontier> {
  return new Frontier(size, await frontierRoots(readerOf(history), size));
}
