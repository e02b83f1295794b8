import type { Leaf } from "../../../../core/src/record/entry/leaf.ts";
import type { Mistake, StoredRow } from "../../../../core/src/record/entry/row.ts";
import type { Link } from "../../../../core/src/record/entry/verifier.ts";
import type { Verification } from "../store/store.ts";
import type { Counters } from "../store/tables.ts";
import type { TreeNode } from "../../../../core/src/record/tree/merkle.ts";
import type { TreeWalk } from "../../../../core/src/record/tree/walk.ts";

/** A row for a walk. It has no evidence if only the chain is walked, and no columns in an export. */
export type WalkedRow = Pick<StoredRow, "leaf" | "seq"> & Partial<Omit<StoredRow, "leaf" | "seq">>;

/** Some rows of a ledger, in order. An empty slice means the end. */
export interface WalkedSlice {
  readonly rows: readonly WalkedRow[];
  /** The counters, read after the rows. */
  readonly counters?: Counters;
  /** The mistake that stops the reader, or that it found after the last row. */
  readonly broken?: Mistake | undefined;
}

/** The result of a walk up to its last row. */
export interface WalkResult {
  /** Its first row. */
  readonly from: number;
  readonly link: Link;
  /** The tree; only of a walk from row 1. */
  readonly tree: TreeWalk | undefined;
  /** The last row of an administrative event in the walk. */
  readonly changed: number | undefined;
}

/**
 * Reads the rows of a ledger for a walk, in any kind of storage, and what they refer to. Any method may throw `BrokenHere`
 * if something cannot be read.
 */
export interface WalkSource {
  /** Returns the ledger's name, and the number of its rows at the start of the walk. */
  describe(): Promise<Pick<Verification, "log" | "rows"> | Mistake>;
  next(from: number): Promise<WalkedSlice>;
  /** Returns the first result among some leaves that does not name its check. */
  checks(leaves: readonly Leaf[]): Promise<Mistake | undefined>;
  /** Returns a contract's text by its digest in hex. */
  contract(digest: string, seq: number): Promise<Uint8Array | string | undefined>;
  /**
   * Returns the first inner hash that differs from the stored one.
   *
   * @param links the rows that completed the hashes
   */
  nodes(nodes: readonly TreeNode[], links: readonly Link[]): Promise<Mistake | undefined>;
  /** Compares the stored head with the end of the rows. */
  end(walked: WalkResult): Promise<Mistake | undefined>;
}
