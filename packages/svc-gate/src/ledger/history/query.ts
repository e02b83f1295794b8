import { leafTexts, parseLeaf, type LeafFilter } from "../entry/leaf.ts";
import { type LedgerStore, type RowQuery } from "../store/store.ts";
import { changeColumns, resultVerdict } from "../entry/row.ts";

/** A query for receipts. */
export interface ReceiptQuery
  extends LeafFilter, Pick<RowQuery, "before" | "limit" | "outcome" | "session" | "tool" | "verdict"> {
  /** Milliseconds since the epoch: rows of this time and later. */
  readonly since?: number | undefined;
  /** Milliseconds since the epoch: rows before this time. */
  readonly until?: number | undefined;
}

/** Returns the query in the form of a store. */
export async function rowQuery(store: LedgerStore, query: ReceiptQuery): Promise<RowQuery> {
  const { since, until, act, answered: asked, kind, mode, key, before, ...rest } = query;
  // Only calls that were let through have outcomes.
  const answered = asked ?? (rest.outcome === undefined ? undefined : "ALLOW");
  // A mode only softens a verdict. So if the answer is BLOCK or ESCALATE, the verdict is one of these too, and they
  // have an index.
  const refused = answered !== undefined && answered !== "ALLOW" && rest.verdict === undefined;
  // The same index has the rows of administrative events and of results.
  const isChange = act !== undefined || kind === "change";
  const indexed = isChange ? changeColumns.verdict : kind === "result" ? resultVerdict : undefined;
  const checks = kind === "check";
  const leafHas = leafTexts({ act, answered, kind: checks ? undefined : kind, mode, key });
  const filtered = { ...rest, verdict: rest.verdict ?? indexed, refused, checks, leafHas };
  if (since === undefined && until === undefined) return { ...filtered, before };
  const last = await lastSeq(store);
  const leafAt = async (seq: number): Promise<string | undefined> => (await store.history.leaves(seq, 1))[0];
  const from = since === undefined ? 1 : await firstSince(leafAt, last, since);
  const end = until === undefined ? last + 1 : await firstSince(leafAt, last, until);
  return { ...filtered, from, before: Math.min(before, end) };
}

export async function lastSeq(store: LedgerStore): Promise<number> {
  for await (const [row] of store.read({ before: Number.MAX_SAFE_INTEGER, limit: 1 })) return row?.seq ?? 0;
  return 0;
}

/**
 * Finds the first row that is not before `at`; if there is none, the number after the last row. No row is earlier than
 * the row before it, so a binary search reads twenty of a million rows.
 */
export async function firstSince(
  leafAt: (seq: number) => Promise<string | undefined>,
  last: number,
  at: number,
): Promise<number> {
  let [low, high] = [1, last + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const moment = parseLeaf((await leafAt(middle)) ?? "")?.at ?? 0;
    if (moment < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
