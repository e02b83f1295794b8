import { hash } from "node:crypto";

/**
 * The length of the hashes of RFC 6962 (section 2.1, the same in RFC 9162): SHA-256 of a zero byte and a leaf, or of a
 * one byte and two nodes.
 */
export const hashBytes = 32;

/** The root of a tree without leaves: SHA-256 of an empty text. */
export const emptyRoot: Buffer = hash("sha256", "", "buffer");

const nodeInput = Buffer.alloc(1 + 2 * hashBytes, 1);

/** Returns the hash of an inner node. */
export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  nodeInput.set(left, 1);
  nodeInput.set(right, 1 + hashBytes);
  // A buffer of the hash function is not from the pool and takes twice the time.
  return Buffer.from(hash("sha256", nodeInput, "binary"), "binary");
}

/** Returns one hash of a buffer of hashes, each 32 bytes. */
export function hashAt(hashes: Buffer, index: number): Buffer {
  return hashes.subarray(index * hashBytes, (index + 1) * hashBytes);
}

/** Returns the root over 1, 2, 4, ... adjacent hashes. */
export function perfectRoot(hashes: Buffer): Buffer {
  if (hashes.length === hashBytes) return hashes;
  const half = hashes.length / 2;
  return nodeHash(perfectRoot(hashes.subarray(0, half)), perfectRoot(hashes.subarray(half)));
}

/** Returns the largest power of two below a size of at least 2, where RFC 6962 splits a tree. */
export function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}

/** One inner hash that tiles need: the root over `256 ** level` leaves, at `index` of its level. */
export interface TreeNode {
  /** From 1. The leaves are level 0. */
  readonly level: number;
  readonly index: number;
  readonly hash: Buffer;
}

/** The row that completes an inner hash. */
export function lastUnder({ index, level }: TreeNode): number {
  return (index + 1) * 256 ** level;
}

/** The height of a tile: a full tile has 2^8 leaves, or hashes of the level below. */
export const tileHeight = 8;

/**
 * A growing tree: the roots of its perfect subtrees, the largest first, one for each bit of its size. The next leaf and
 * the root need nothing else.
 */
export class Frontier {
  #size: number;
  readonly #roots: Buffer[];

  /** @param roots one for each bit of the size that is set */
  constructor(size = 0, roots: readonly Buffer[] = []) {
    this.#size = size;
    this.#roots = [...roots];
  }

  /** Reads the result of `text`; undefined if it cannot be a tree of that size. */
  static parse(size: number, text: string): Frontier | undefined {
    const hashes = Buffer.from(text, "base64");
    const count = hashes.length / hashBytes;
    if (hashes.toString("base64") !== text || count !== bitsOf(size)) return undefined;
    return new Frontier(
      size,
      Array.from({ length: count }, (_, index) => hashAt(hashes, index)),
    );
  }

  get size(): number {
    return this.#size;
  }

  copy(): Frontier {
    return new Frontier(this.#size, this.#roots);
  }

  /**
   * Adds a leaf.
   *
   * @param leaf its hash, 64 hex digits
   * @returns the inner hashes that tiles need and that are complete with this leaf; none for 255 leaves of 256
   */
  append(leaf: string): readonly TreeNode[] {
    let nodes: readonly TreeNode[] = noNodes;
    let root: Buffer = Buffer.from(leaf, "hex");
    this.#size += 1;
    for (let height = 1, rest = this.#size; rest % 2 === 0; height += 1, rest /= 2) {
      root = nodeHash(this.#roots.pop() as Buffer, root);
      if (height % tileHeight === 0)
        nodes = [...nodes, { level: height / tileHeight, index: rest / 2 - 1, hash: root }];
    }
    this.#roots.push(root);
    return nodes;
  }

  root(): Buffer {
    return this.#roots.reduceRight<Buffer | undefined>(joinRoots, undefined) ?? emptyRoot;
  }

  /** Returns the joined roots in base64. */
  text(): string {
    return Buffer.concat(this.#roots).toString("base64");
  }
}

const noNodes: readonly TreeNode[] = [];

function joinRoots(right: Buffer | undefined, left: Buffer): Buffer {
  return right === undefined ? left : nodeHash(left, right);
}

function bitsOf(size: number): number {
  let bits = 0;
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) bits += rest % 2;
  return bits;
}

/** A leaf, its proof of inclusion, and the expected root. */
export interface Inclusion {
  /** From 0. */
  readonly index: number;
  readonly size: number;
  readonly leaf: Uint8Array;
  /** The hashes from the leaf's sibling upwards. */
  readonly proof: readonly Uint8Array[];
  readonly root: Uint8Array;
}

/** Verifies a proof of inclusion (RFC 9162, section 2.1.3.2). */
export function isIncluded({ index, size, leaf, proof, root }: Inclusion): boolean {
  if (!isNatural(index) || !isNatural(size) || index >= size || ![leaf, root, ...proof].every(isHash)) return false;
  let [at, last] = [index, size - 1];
  let reached: Uint8Array = leaf;
  for (const sibling of proof) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      reached = nodeHash(sibling, reached);
      while (at % 2 === 0 && at !== 0) [at, last] = [at / 2, Math.floor(last / 2)];
    } else reached = nodeHash(reached, sibling);
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return last === 0 && areEqual(reached, root);
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
