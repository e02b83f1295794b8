import type { Erasure } from "../../entry/erasure.ts";
import type { StoredRepeat } from "../../entry/repeat.ts";
import type { TreeNode } from "../../tree/merkle.ts";
import type { CommitOptions, StoredEffect } from "../store.ts";
import type { StoredCounter } from "../tables.ts";
import type { StoredApproval, StoredOutcome } from "../../entry/row.ts";

/** A counter and the folded events that are written in the transaction of a batch. */
export type KeptTogether = readonly [counter: StoredCounter, folded: readonly StoredEffect[]];

/** The changes that a batch makes besides its rows and their events. */
export interface WriteOptions {
  readonly counters: readonly KeptTogether[];
  readonly nodes: readonly TreeNode[];
  /** The key that signs heads from now on, if it changes. */
  readonly signer: string | undefined;
  /** The mode of the ledger from now on, if it changes. */
  readonly mode: string | undefined;
  readonly erasures: readonly Erasure[];
  readonly approvals: readonly StoredApproval[];
  /** Rows whose held amounts count no more. */
  readonly released: readonly number[];
  readonly repeats: readonly StoredRepeat[];
  readonly outcomes: readonly StoredOutcome[];
}

/** The changes of a batch for the thread that writes, which gets nothing that was not given. */
export function writeOptionsOf(
  counters: readonly KeptTogether[],
  { inForce, tree, signer, erasures = [], approvals = [], ...options }: CommitOptions = {},
): WriteOptions {
  const { released = [], repeats = [], outcomes = [] } = options;
  const derived = { approvals, released, repeats, outcomes };
  return { counters, nodes: tree?.nodes ?? [], signer, mode: inForce?.mode, erasures, ...derived };
}
