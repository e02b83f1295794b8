import { leafTexts, type LeafFilter } from "../../../../core/src/record/entry/leaf.ts";
import { receiptJson } from "../../../../core/src/record/entry/receipt.ts";
import type { RowQuery, Tables } from "../store/tables.ts";
import { findRows, firstSince, leafReader } from "./table-reads.ts";
import {
  changeColumns,
  resultVerdict,
  type StoredOutcome,
  type StoredRow,
} from "../../../../core/src/record/entry/row.ts";

export interface ReceiptQuery
  extends LeafFilter, Pick<RowQuery, "before" | "limit" | "outcome" | "session" | "tool" | "verdict"> {
  /** Milliseconds since the epoch: rows of this time and later. */
  readonly since?: number | undefined;
  /** Milliseconds since the epoch: rows before this time. */
  readonly until?: number | undefined;
}

/** Receipts that become text in one slice, and their characters. */
const receiptsOfSlice = 32;
const charactersOfSlice = 200_000;

/** Yields rows, newest first, as the JSON texts of GET /receipts, in slices of about a millisecond. */
export async function* receiptsOf(
  tables: Tables,
  query: ReceiptQuery,
): AsyncGenerator<readonly { readonly seq: number; readonly json: string }[]> {
  for await (const slice of findRows(tables, await rowQuery(tables, query))) {
    const outcomes = await outcomesOf(tables, slice);
    if (slice.length === 0) yield [];
    for (const part of splitRowsBySize(slice))
      yield part.map((row) => ({ seq: row.seq, json: receiptJson(row, outcomes.get(row.seq)) }));
  }
}

async function outcomesOf(tables: Tables, rows: readonly StoredRow[]): Promise<ReadonlyMap<number, StoredOutcome>> {
  const released = rows.filter(({ leaf }) => leaf.includes('"answered":"ALLOW"')).map(({ seq }) => seq);
  const found = released.length === 0 ? [] : await tables.where("outcomes", "seq", released);
  return new Map(found.map((outcome) => [outcome.seq, outcome]));
}

function* splitRowsBySize(rows: readonly StoredRow[]): Generator<readonly StoredRow[]> {
  let part: StoredRow[] = [];
  let characters = 0;
  for (const row of rows) {
    part.push(row);
    characters += row.leaf.length + row.evidence.length;
    if (part.length < receiptsOfSlice && characters < charactersOfSlice) continue;
    yield part;
    [part, characters] = [[], 0];
  }
  if (part.length > 0) yield part;
}

/** Returns the query in the form of a store. */
async function rowQuery(tables: Tables, query: ReceiptQuery): Promise<RowQuery> {
  const { since, until, act, answered: wanted, kind, mode, key, before, ...rest } = query;
  // Only calls that were let through have outcomes.
  const answered = wanted ?? (rest.outcome === undefined ? undefined : "ALLOW");
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
