import { openSignedBy } from "./checkpoint.ts";
import { Frontier, lastUnder, type TreeNode } from "./merkle.ts";
import type { Mistake } from "../entry/row.ts";

/** A row that was observed outside the ledger. */
export interface Anchor {
  readonly seq: number;
  /** SHA-256 in hex, if the row itself was observed. */
  readonly hash?: string | undefined;
  /** The root of the tree up to the row in base64, if the root was observed. */
  readonly root?: string | undefined;
  /** The observer, for the report: for example `head pin`. */
  readonly by: string;
}

/** The tree over the rows of a walk that started at row 1. */
export class TreeWalk extends Frontier {
  readonly #anchors: readonly Anchor[];

  constructor(anchors: readonly Anchor[]) {
    super();
    this.#anchors = anchors.filter(({ root }) => root !== undefined);
  }

  /** Returns the mistake if the root over the rows so far differs from the root that an anchor has seen. */
  anchorMismatch(): Mistake | undefined {
    for (const { seq, root = "", by } of this.#anchors) {
      const broken = seq === this.size ? this.#differs(root, `the ${by} has seen`) : undefined;
      if (broken !== undefined) return broken;
    }
    return undefined;
  }

  #differs(expected: string, by: string): Mistake | undefined {
    const found = this.root().toString("base64");
    const problem = `the root of the tree differs from the root that ${by}`;
    return found === expected ? undefined : { seq: this.size, problem, expected, found };
  }

  /** Compares the tree with the stored tree at the last row, and with the checkpoint that a verifier key has signed. */
  compareStored(stored: Readonly<Record<"checkpoint" | "frontier" | "signer", string>>): Mistake | undefined {
    const { frontier, checkpoint, signer } = stored;
    const text = this.text();
    const problem = "the stored tree differs from the tree of the rows";
    if (frontier !== text) return { seq: this.size, problem, expected: text, found: frontier };
    const opened = openSignedBy(signer, checkpoint);
    const invalid = "the signature of the head is not valid";
    if (!opened.ok) return { seq: this.size, problem: invalid, expected: signer, found: opened.problem };
    const { size, root } = opened.value;
    const elsewhere = "the head was signed at another row";
    if (size !== this.size)
      return { seq: this.size, problem: elsewhere, expected: String(this.size), found: String(size) };
    return this.#differs(root.toString("base64"), "was signed");
  }
}

/** Returns the mistake if a stored inner hash differs from the one computed from its rows. */
export function wrongNode(node: TreeNode, found: string | undefined): Mistake | undefined {
  const { level, index, hash } = node;
  const expected = hash.toString("hex");
  if (expected === found) return undefined;
  const problem = `the inner hash ${index} of level ${level} differs from the one that its rows make`;
  return { seq: lastUnder(node), problem, expected, found: found ?? "no hash" };
}
