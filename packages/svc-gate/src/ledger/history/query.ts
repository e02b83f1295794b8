import { leafTexts, type LeafFilter } from "../entry/leaf.ts";
import type { RowQuery, Tables } from "../store/tables.ts";
import { firstSince, leafReader } from "./table-reads.ts";
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
export async function rowQuery(tables: Tables, query: ReceiptQuery): Promise<RowQuery> {
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
  const { rows: last } = await tables.head();
  const leafAt = leafReader(tables);
  const from = since === undefined ? 1 : await firstSince(leafAt, last, since);
  const end = until === undefined ? last + 1 : await firstSince(leafAt, last, until);
  return { ...filtered, from, before: Math.min(before, end) };
}
