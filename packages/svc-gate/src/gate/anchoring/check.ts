import type { LedgerCheck } from "../../ledger/mod.ts";
import type { Anchors } from "./anchors.ts";
import type { Vouched } from "./anchor-status.ts";

/** What came of walking a ledger, with all who vouch for its rows. */
export interface AnchoredCheck extends LedgerCheck {
  /** Who vouches, and through which row; when they said so last is null where that is not known. */
  readonly anchors: readonly (Omit<Vouched, "at"> & { readonly at: number | null })[];
}

/** Holds a ledger that was walked against those who anchor it; `anchored` is then the one that vouches for most. */
export async function holdAgainst(check: LedgerCheck, anchors: Anchors | undefined): Promise<AnchoredCheck> {
  const pin = check.anchored === undefined ? [] : [{ ...check.anchored, at: null }];
  const all = [...pin, ...(anchors?.vouched ?? [])];
  const broken = check.broken ?? (await anchors?.diverged());
  const [best] = all.toSorted((a, b) => b.seq - a.seq);
  return { ...check, broken, anchored: best && { seq: best.seq, by: best.by }, anchors: all };
}
