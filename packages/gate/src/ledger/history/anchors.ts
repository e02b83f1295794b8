import { leafHash, parseLeaf } from "../../../../core/src/record/entry/leaf.ts";
import type { Link } from "../../../../core/src/record/entry/verifier.ts";
import type { Anchor } from "../../../../core/src/record/tree/walk.ts";
import type { Mistake, StoredRow } from "../../../../core/src/record/entry/row.ts";

/** Returns the mistake if a row differs from the row that an anchor vouches for. */
export function anchorMismatch({ seq, hash: found }: Link, anchors: readonly Anchor[]): Mistake | undefined {
  for (const { seq: at, hash: expected = found, by } of anchors)
    if (at === seq && expected !== found)
      return { seq, problem: `the row differs from the row that the ${by} has seen`, expected, found };
  return undefined;
}

/** Returns the mistake if the chain ends before a row that an anchor vouches for. */
export function tooShort({ seq }: Link, anchors: readonly Anchor[]): Mistake | undefined {
  const anchor = anchors.find((candidate) => candidate.seq > seq);
  if (anchor === undefined) return undefined;
  return {
    seq: seq + 1,
    problem: `rows are missing from the end: the ${anchor.by} has seen row ${anchor.seq}`,
    expected: `row ${anchor.seq}`,
    found: `row ${seq}`,
  };
}

/**
 * If a row does not follow the row before it, one of the two was changed. It was the row before if the next row or an
 * anchor confirms this row.
 *
 * @param rows the broken row, and the row after it
 */
export function blame(
  broken: Mistake,
  { seq, hash: found }: Link,
  anchors: readonly Anchor[],
  [row, after]: readonly Pick<StoredRow, "leaf" | "seq">[],
): Mistake {
  if (seq === 0 || broken.seq !== seq + 1 || row?.seq !== broken.seq) return broken;
  const prev = parseLeaf(row.leaf)?.prev;
  const hash = leafHash(row.leaf);
  const vouched = anchors.some((anchor) => anchor.seq === row.seq && anchor.hash === hash);
  const isWhole = vouched || (after?.seq === row.seq + 1 && parseLeaf(after.leaf)?.prev === hash);
  if (prev === undefined || prev === found || !isWhole) return broken;
  return { seq, problem: "the row is not the row that the next row follows", expected: prev, found };
}
