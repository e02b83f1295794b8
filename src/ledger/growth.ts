import { leafHash } from "./leaf.ts";
import type { LedgerStore } from "./stores/store.ts";
import { Frontier, type TreeNode } from "./tree/merkle.ts";
import { frontierRoots, type HashReader } from "./tree/tiles.ts";

/** Reads the hashes of a ledger's tree from its store. */
export function readerOf(store: Pick<LedgerStore, "hashes">): HashReader {
  return async (level, from, count) => Buffer.from(await store.hashes(level, from, count));
}

/** The tree over the first rows of a store that has it. */
export async function treeAt(store: Pick<LedgerStore, "hashes">, size: number): Promise<Frontier> {
  return new Frontier(size, await frontierRoots(readerOf(store), size));
}

/**
 * Grows the tree of a ledger that was written before there was one, beside gates that go on: first over the rows that
 * are there, then, with the right to add, over those that came meanwhile.
 */
export async function growTree(store: LedgerStore): Promise<void> {
  const frontier = new Frontier();
  const nodes: TreeNode[] = [];
  const grow = async (): Promise<void> => {
    for await (const rows of store.scan(frontier.size + 1))
      nodes.push(...rows.flatMap(({ leaf }) => frontier.append(leafHash(leaf))));
  };
  await grow();
  const turn = await store.begin();
  try {
    await grow();
    await turn.commit([], [], { tree: { frontier: frontier.text(), nodes, sign: () => null } });
  } catch (error) {
    await turn.abort();
    throw error;
  }
}
