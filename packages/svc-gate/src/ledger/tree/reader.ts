import type { HistoryReader } from "../store/store.ts";
import { Frontier } from "./merkle.ts";
import { frontierRoots, type HashReader } from "./tiles.ts";

/** Reads the hashes of a ledger's tree from its store. */
export function readerOf(history: Pick<HistoryReader, "hashes">): HashReader {
  return async (level, from, count) => Buffer.from(await history.hashes(level, from, count));
}

/** Returns the tree over the first rows of a store. */
export async function treeAt(history: Pick<HistoryReader, "hashes">, size: number): Promise<Frontier> {
  return new Frontier(size, await frontierRoots(readerOf(history), size));
}
