import { isOpen } from "../../../../core/src/approvals/mod.ts";
import { leafHash, parseLeaf } from "../../../../core/src/record/entry/leaf.ts";
import type { StoredApproval, StoredRow } from "../../../../core/src/record/entry/row.ts";
import type { RecordedEffect } from "../../../../core/src/record/entry/verifier.ts";
import { LedgerRefused } from "../errors.ts";
import { soundCounters } from "../store/checksums.ts";
import type { EventPosition, TakenQuery } from "../store/store.ts";
import {
  keyIn,
  type Entry,
  type EntryKey,
  type EntryRange,
  type RowQuery,
  type TableName,
  type Tables,
} from "../store/tables.ts";
import type { HashReader } from "../../../../core/src/record/tree/tiles.ts";

/** Entries that are read at once. */
const pageEntries = 512;
/** Queries that are sent together. */
const queriesAtOnce = 256;

/** Yields the entries of a table in pages, in the order of its key. */
export async function* pagesOf<T extends TableName>(
  tables: Pick<Tables, "page">,
  table: T,
  { after, through, limit = pageEntries }: Partial<EntryRange> = {},
): AsyncGenerator<readonly Entry<T>[]> {
  for (let from = after; ;) {
    const page = await tables.page(table, { after: from, through, limit });
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    from = keyIn(table, last);
  }
}

/** Rows by their numbers, in order. */
export function rowsAt(tables: Pick<Tables, "where">, rows: readonly number[]): Promise<readonly StoredRow[]> {
  return tables.where("receipts", "seq", rows);
}

/** Rows newest first, in slices. A reader that stops iterating ends the search. */
export async function* findRows(tables: Pick<Tables, "find">, query: RowQuery): AsyncGenerator<readonly StoredRow[]> {
  const { from = 1 } = query;
  let { before, limit } = query;
  while (limit > 0 && before > from) {
    const { rows, next } = await tables.find({ ...query, before, limit });
    yield rows;
    limit -= rows.length;
    before = next;
  }
}

/** The leaves of at most `count` rows from a row on. */
export async function leavesOf(tables: Tables, from: number, count: number): Promise<readonly string[]> {
  const leaves: string[] = [];
  while (leaves.length < count) {
    const after = [from - 1 + leaves.length];
    const page = await tables.page("receipts", { after, through: [from - 1 + count], limit: count }, ["leaf"]);
    if (page.length === 0) break;
    leaves.push(...page.map(({ leaf }) => leaf));
  }
  return leaves;
}

/** Reads the leaf of one row. */
export function leafReader(tables: Tables): (seq: number) => Promise<string | undefined> {
  return async (seq) => (await leavesOf(tables, seq, 1))[0];
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

/** Reads hashes of a ledger's tree. @throws {LedgerRefused} if one is missing */
export function hashReader(tables: Tables): HashReader {
  const nodes = async (level: number, from: number, count: number): Promise<readonly string[]> => {
    const range = { after: [level, from - 1], through: [level, from - 1 + count], limit: count };
    return (await tables.page("nodes", range, ["hash"])).map(({ hash }) => hash);
  };
  return async (level, from, count) => {
    const isLeaf = level === 0;
    const found = isLeaf ? (await leavesOf(tables, from + 1, count)).map(leafHash) : await nodes(level, from, count);
    if (found.length === count) return Buffer.from(found.join(""), "hex");
    throw new LedgerRefused(
      `the ledger is damaged: its tree has ${found.length} of ${count} hashes at level ${level} from ${from}; ` +
        "run `svc-gate verify`, and restore it from a backup",
    );
  };
}

/** The total of all events before each position, as a decimal; undefined if the counter is not kept. */
export async function totalsBefore(
  tables: Tables,
  positions: readonly EventPosition[],
): Promise<readonly (string | undefined)[]> {
  const ids = await counterIds(tables);
  const keys = positions.map(({ counter, key, at, seq }): EntryKey => [ids.get(counter) ?? -1, key, at, seq]);
  const totals = await tables.totals(keys);
  return positions.map(({ counter }, index) => (ids.has(counter) ? (totals[index] ?? "0") : undefined));
}

/** The amounts that outcomes took back, for each query. */
export async function takenIn(tables: Tables, queries: readonly TakenQuery[]): Promise<readonly (readonly string[])[]> {
  const ids = await counterIds(tables);
  const read = async ({ counter, key, after, before }: TakenQuery): Promise<readonly string[]> => {
    const [of, last] = [[ids.get(counter) ?? -1, key], Number.MAX_SAFE_INTEGER];
    const window = { after: [...of, after, last], through: [...of, last, last] };
    const taken = (await Array.fromAsync(pagesOf(tables, "withdrawals", window))).flat();
    return taken.filter(({ outcome }) => outcome < before).map(({ amount }) => amount);
  };
  const found: (readonly string[])[] = [];
  for (let from = 0; from < queries.length; from += queriesAtOnce)
    found.push(...(await Promise.all(queries.slice(from, from + queriesAtOnce).map(read))));
  return found;
}

/** @throws {LedgerRefused} if a counter's own row was changed */
async function counterIds(tables: Tables): Promise<ReadonlyMap<string, number>> {
  const kept = soundCounters(await tables.counters(), ["of the ledger", "it"]);
  return new Map([...kept.values()].map(({ digest, id }) => [digest, id]));
}

export interface TabledApproval extends StoredApproval {
  /** What it reserves. Counter and key are digests; an unknown counter has an empty one. */
  readonly reservations: readonly (RecordedEffect & { readonly at: number })[];
}

/** Reads the approvals of some rows, with what they reserve. */
export async function approvalsAt(tables: Tables, rows: readonly number[]): Promise<readonly TabledApproval[]> {
  if (rows.length === 0) return [];
  // Reservations first: an approval that ends between the reads shows its end, and not an approval without reservations.
  const [reservations, approvals, { kept }] = await Promise.all([
    tables.where("holds", "seq", rows),
    tables.where("approvals", "seq", rows),
    tables.counters(),
  ]);
  const digests = new Map(kept.map(({ id, digest }) => [id, digest]));
  const byRow = Map.groupBy(reservations, ({ seq }) => seq);
  return approvals.map((approval) => ({
    ...approval,
    reservations: (byRow.get(approval.seq) ?? []).map(({ counter, key, at, amount }) => {
      return { counter: digests.get(counter) ?? "", key, at, amount };
    }),
  }));
}

/** Those of the rows whose approvals are open now, with what they reserve. */
export async function openApprovalsAt(tables: Tables, rows: readonly number[]): Promise<readonly TabledApproval[]> {
  return (await approvalsAt(tables, rows)).filter(isOpen);
}
