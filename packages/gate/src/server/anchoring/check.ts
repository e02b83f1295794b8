import type { LedgerCheck } from "../../ledger/mod.ts";
import type { Anchors } from "./anchors.ts";
import type { VouchedRow } from "./anchor-status.ts";

/** The result of verifying a ledger, with all anchors that vouch for its rows. */
export interface AnchoredCheck extends LedgerCheck {
  /** The anchors and the last rows that they vouch for; `at` is null if the time is unknown. */
  readonly anchors: readonly (Omit<VouchedRow, "at"> & { readonly at: number | null })[];
}

/** Compares a verified ledger with its anchors. `anchored` is then the anchor that vouches for most rows. */
export async function compareWithAnchors(check: LedgerCheck, anchors: Anchors | undefined): Promise<AnchoredCheck> {
  const pin = check.anchored === undefined ? [] : [{ ...check.anchored, at: null }];
  const all = [...pin, ...(anchors?.vouched ?? [])];
  const broken = check.broken ?? (await anchors?.findDivergence());
  const [best] = all.toSorted((a, b) => b.seq - a.seq);
  return { ...check, broken, anchored: best && { seq: best.seq, by: best.by }, anchors: all };
}
