import type { LedgerStore } from "./stores/store.ts";
import { Frontier } from "./tree/merkle.ts";
import { frontierRoots, type HashReader } from "./tree/tiles.ts";

/** Reads the hashes of a ledger's tree from its store. */
export function readerOf(store: Pick<LedgerStore, "hashes">): HashReader {
  return async (level, from, count) => Buffer.from(await store.hashes(level, from, count));
}

/** The tree over the first rows of a store. */
export async function treeAt(store: Pick<LedgerStore, "hashes">, size: number): Promise<Frontier> {
  return new Frontier(size, await frontierRoots(readerOf(store), size));
}
