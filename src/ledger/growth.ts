import { leafHash } from "./leaf.ts";
import { LedgerRefused, type Broken, type LedgerStore } from "./stores/store.ts";
import { Frontier, type TreeNode } from "./tree/merkle.ts";
import type { Signer } from "./tree/signing-key.ts";
import { frontierRoots, type HashReader } from "./tree/tiles.ts";
import { firstLink, verifyLink } from "./verifier.ts";

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
 * are there, then, with the right to add, over those that came meanwhile. Its head is signed as that of a batch is. From
 * there on the ledger is this engine's: rows of an earlier one would not be in the tree.
 *
 * @throws {LedgerRefused} where a row does not follow the one before: nothing is signed over it
 */
export async function growTree(store: LedgerStore, signer: Signer, engine: string): Promise<void> {
  const { log } = store.opened;
  const frontier = new Frontier();
  const nodes: TreeNode[] = [];
  let link = firstLink;
  const grow = async (): Promise<void> => {
    for await (const rows of store.scan(link.seq + 1)) {
      for (const row of rows) {
        const next = verifyLink(row, link, log);
        if ("problem" in next) throw damaged(next);
        link = next.link;
        nodes.push(...frontier.append(link.hash));
      }
    }
  };
  await grow();
  const turn = await store.begin();
  try {
    await grow();
    if (turn.head !== undefined && leafHash(turn.head.leaf) !== link.hash)
      throw damaged({ seq: turn.head.seq, problem: "it is not the row that the ledger ends with" });
    const signed = signer.signAside({ origin: log, size: frontier.size, root: frontier.root() });
    const inForce = turn.inForce && { ...turn.inForce, engine };
    await turn.commit([], [], { inForce, tree: { frontier: frontier.text(), nodes, signed } });
  } catch (error) {
    await turn.abort();
    throw error;
  }
}

export function damaged({ seq, problem }: Pick<Broken, "problem" | "seq">): LedgerRefused {
  return new LedgerRefused(
    `the ledger is damaged at row ${seq}: ${problem}; run \`svc-gate verify\`, and restore it from a backup`,
  );
}
