import { openCheckpoint } from "./checkpoint.ts";
import { Frontier, lastUnder, type TreeNode } from "./merkle.ts";
import { parseVerifierKey } from "./note.ts";
import type { Broken } from "../entry/row.ts";

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

/** The tree and its signature that a store keeps with its last row. */
export interface KeptHead {
  readonly frontier: string;
  /** The signed checkpoint. */
  readonly checkpoint: string;
  /** A verifier key. */
  readonly signer: string;
}

/** The tree over the rows of a walk that began at row 1. */
export class TreeWalk {
  readonly #frontier = new Frontier();
  readonly #anchors: readonly Anchor[];

  constructor(anchors: readonly Anchor[]) {
    this.#anchors = anchors.filter(({ root }) => root !== undefined);
  }

  get size(): number {
    return this.#frontier.size;
  }

  root(): Buffer {
    return this.#frontier.root();
  }

  /**
   * Adds a row and returns the inner hashes that are complete with it.
   *
   * @param hash the row's hash
   */
  append(hash: string): readonly TreeNode[] {
    return this.#frontier.append(hash);
  }

  /** Returns the mistake if the root over the rows so far differs from the root that an anchor has seen. */
  anchorMismatch(): Broken | undefined {
    for (const { seq, root = "", by } of this.#anchors) {
      const broken = seq === this.size ? this.#differs(root, `the ${by} has seen`) : undefined;
      if (broken !== undefined) return broken;
    }
    return undefined;
  }

  #differs(expected: string, by: string): Broken | undefined {
    const found = this.#frontier.root().toString("base64");
    const problem = `the root of the tree differs from the root that ${by}`;
    return found === expected ? undefined : { seq: this.size, problem, expected, found };
  }

  /** Compares the tree with the stored tree at the last row. */
  kept({ frontier, checkpoint, signer }: KeptHead): Broken | undefined {
    const text = this.#frontier.text();
    const problem = "the stored tree differs from the tree of the rows";
    if (frontier !== text) return { seq: this.size, problem, expected: text, found: frontier };
    const key = parseVerifierKey(signer);
    const opened = key.ok ? openCheckpoint(checkpoint, [key.value]) : key;
    if (!opened.ok)
      return {
        seq: this.size,
        problem: "the signature of the head is not valid",
        expected: signer,
        found: opened.problem,
      };
    const signed = opened.value;
    const { size } = signed;
    if (size !== this.size)
      return {
        seq: this.size,
        problem: "the head was signed at another row",
        expected: String(this.size),
        found: String(size),
      };
    return this.#differs(signed.root.toString("base64"), "was signed");
  }
}

/** Returns the mistake if a stored inner hash differs from the one computed from its rows. */
export function wrongNode(node: TreeNode, found: string | undefined): Broken | undefined {
  const { level, index, hash } = node;
  const expected = hash.toString("hex");
  if (expected === found) return undefined;
  const problem = `the inner hash ${index} of level ${level} differs from the one that its rows make`;
  return { seq: lastUnder(node), problem, expected, found: found ?? "no hash" };
}
