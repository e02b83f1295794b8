import type { Approval } from "../../../core/src/approvals/mod.ts";
import { readApprovals } from "../../../core/src/record/entry/approval-rows.ts";
import { parseLeaf } from "../../../core/src/record/entry/leaf.ts";
import { changeColumns, resultVerdict, type KeptApproval, type StoredRow } from "../../../core/src/record/entry/row.ts";
import { counterEntry } from "../../../gate/src/ledger/engine.ts";
import {
  keyIn,
  keyOf,
  keyText,
  type ApprovalQuery,
  type WithoutPromises,
  type Column,
  type Counters,
  type Description,
  type Entry,
  type EventTally,
  type EntryKey,
  type EntryRange,
  type RowQuery,
  type RowSlice,
  type TableName,
  type Tables,
  type TablesHead,
  type Cell,
  type WaitingApprovals,
} from "../../../gate/src/ledger/engine.ts";
import type { MemoryLedger } from "./tables.ts";

/** Rows of one slice of a long read, and their characters. */
const sliceRows = 512;
const sliceCharacters = 1_000_000;

/** Reads the tables in memory. Reads of events, and by other columns than the key, pass the whole table. */
export class MemoryTables implements WithoutPromises<Tables> {
  readonly #tables: MemoryLedger;

  constructor(tables: MemoryLedger) {
    this.#tables = tables;
  }

  description(): Description {
    const { log, counterSecret, signer, firstKey } = this.#tables;
    return { log, counterSecret, signer, firstKey };
  }

  head(): TablesHead {
    return { rows: this.#tables.rows.length };
  }

  counters(): Counters {
    return { kept: this.#tables.counters.counters, damaged: undefined };
  }

  page<T extends TableName, C extends Column<T>>(
    table: T,
    range: EntryRange,
    columns?: readonly C[],
  ): readonly Pick<Entry<T>, C>[] {
    const { after, through, limit } = range;
    const isWithin = (key: EntryKey): boolean =>
      (after === undefined || compare(key, after) > 0) && (through === undefined || compare(key, through) <= 0);
    // The rows are in their order already, and many.
    const [from = 0] = table === "receipts" ? (after ?? []) : [];
    const all = table === "receipts" ? sliceOf(this.#tables.rows, Math.max(Number(from), 0), 1) : this.#entries(table);
    const entries = (all as readonly Entry<T>[]).map((entry) => ({ entry, key: keyIn(table, entry) }));
    const within = entries.filter(({ key }) => isWithin(key)).toSorted((one, other) => compare(one.key, other.key));
    return within.slice(0, limit).map(({ entry }) => selectColumns(entry, columns));
  }

  at<T extends TableName, C extends Column<T>>(
    table: T,
    keys: readonly EntryKey[],
    columns?: readonly C[],
  ): readonly (Pick<Entry<T>, C> | undefined)[] {
    const find = this.#finder(table);
    return keys.map((key) => {
      const entry = find(key);
      return entry && selectColumns(entry, columns);
    });
  }

  where<T extends TableName>(table: T, column: Column<T>, values: readonly Cell[]): readonly Entry<T>[] {
    const find = this.#finder(table);
    if (keyOf(table).join() === column) return values.flatMap((value) => find([value]) ?? []);
    const found = Map.groupBy(this.#entries(table), (entry): unknown => entry[column]);
    return values.flatMap((value) => found.get(value) ?? []);
  }

  /** Finds entries by their keys. */
  #finder<T extends TableName>(table: T): (key: EntryKey) => Entry<T> | undefined {
    const { kept, rows } = this.#tables;
    const find = (key: EntryKey): unknown =>
      table === "receipts" ? rows[Number(key[0]) - 1] : kept[table as keyof typeof kept].get(keyText(key));
    if (table === "receipts" || table in kept) return (key) => find(key) as Entry<T> | undefined;
    const found = new Map(this.#entries(table).map((entry) => [keyText(keyIn(table, entry)), entry]));
    return (key) => found.get(keyText(key));
  }

  tally(_after: EntryKey | undefined, through: number): EventTally {
    const last = this.#tables.rows.length;
    const events = this.#entries("effects");
    const [live, beyond] = [through, last].map((row) => events.filter(({ seq }) => seq <= row).length);
    return { to: undefined, live: live ?? 0, folded: 0, beyond: events.length - (beyond ?? 0), last };
  }

  totals(positions: readonly EntryKey[]): readonly (string | undefined)[] {
    const { counters } = this.#tables;
    const digests = new Map(counters.counters.map(({ digest, id }) => [id, digest]));
    return counters.totals(
      positions.map(([id, key, at, seq]) => {
        return { counter: digests.get(Number(id)) ?? "", key: String(key), at: Number(at), seq: Number(seq) };
      }),
    );
  }

  #entries<T extends TableName>(table: T): readonly Entry<T>[] {
    const { counters, rows } = this.#tables;
    const all: Readonly<Partial<Record<TableName, () => Iterable<unknown>>>> = {
      receipts: () => rows,
      counters: () => counters.counters.map(counterEntry),
      ...counters.entries,
    };
    const entries = all[table]?.() ?? this.#tables.kept[table as keyof MemoryLedger["kept"]].values();
    return [...entries] as readonly Entry<T>[];
  }

  find({ before, from = 1, limit, ...query }: RowQuery): RowSlice {
    const { kept, rows } = this.#tables;
    const isFound = filterOf(query, (seq) => kept.outcomes.get(String(seq))?.status);
    const slice = sliceOf(rows, Math.min(before - 1, rows.length) - 1, -1).filter(({ seq }) => seq >= from);
    const found = slice.filter(isFound).slice(0, limit);
    const last = found.length === limit ? found.at(-1) : slice.at(-1);
    return { rows: found, next: last?.seq ?? 0 };
  }

  approvals({ before, limit, statuses, key, session, rows }: ApprovalQuery): readonly Approval[] {
    const found = keptApprovals(
      this.#tables,
      (each) =>
        each.seq < before &&
        (statuses?.includes(each.status) ?? true) &&
        (key === undefined || each.key === key) &&
        (rows?.includes(each.seq) ?? true) &&
        (session === undefined || this.#tables.rows[each.seq - 1]?.session === session),
    );
    return readApprovals(found.toSorted((one, other) => other.row.seq - one.row.seq).slice(0, limit));
  }

  countWaiting(now: number): WaitingApprovals {
    const { kept, rows } = this.#tables;
    const waiting = [...kept.approvals.values()].filter(
      ({ status, ends }) => status === "pending" && (ends ?? 0) > now,
    );
    const isLate = ({ seq, ends }: Entry<"approvals">): boolean =>
      2 * now - (ends ?? 0) > (parseLeaf(rows[seq - 1]?.leaf ?? "")?.at ?? Infinity);
    return { calls: waiting.length, late: waiting.filter(isLate).length };
  }
}

function selectColumns<Any, C extends keyof Any>(entry: Any, columns: readonly C[] | undefined): Pick<Any, C> {
  return columns === undefined
    ? entry
    : (Object.fromEntries(columns.map((name) => [name, entry[name]])) as Pick<Any, C>);
}

/** The approvals that fit, with the rows that asked. */
export function keptApprovals(
  { kept, rows }: MemoryLedger,
  isWanted: (approval: Entry<"approvals">) => boolean,
): readonly KeptApproval[] {
  return [...kept.approvals.values()].filter(isWanted).flatMap(({ seq, record }) => {
    const row = rows[seq - 1];
    return row === undefined ? [] : [{ row, record }];
  });
}

/** Compares keys by their values, one after the other. */
function compare(one: EntryKey, other: EntryKey): number {
  for (const [index, value] of one.entries()) {
    const against = other[index];
    if (against !== undefined && value !== against) return value < against ? -1 : 1;
  }
  return 0;
}

/** Rows of a bounded number and size, upwards or downwards from an index. */
function sliceOf(rows: readonly StoredRow[], from: number, step: 1 | -1): readonly StoredRow[] {
  const slice: StoredRow[] = [];
  let characters = 0;
  for (let index = from; slice.length < sliceRows && characters <= sliceCharacters; index += step) {
    const row = rows[index];
    if (row === undefined) break;
    slice.push(row);
    characters += row.leaf.length + row.evidence.length;
  }
  return slice;
}

function filterOf(
  { session, tool, verdict, refused, checks, outcome, leafHas = [] }: Omit<RowQuery, "before" | "from" | "limit">,
  outcomeOf: (seq: number) => string | undefined,
): (row: StoredRow) => boolean {
  const isOfOutcome = ({ seq, leaf }: StoredRow): boolean =>
    outcome === "missing"
      ? !leaf.includes('"mode":"observe"') && outcomeOf(seq) === undefined
      : outcomeOf(seq) === outcome;
  return (row) =>
    (session === undefined || row.session === session) &&
    (tool === undefined || row.tool === tool) &&
    (verdict === undefined || row.verdict === verdict) &&
    (refused !== true || row.verdict === "BLOCK" || row.verdict === "ESCALATE") &&
    (checks !== true || (row.verdict !== changeColumns.verdict && row.verdict !== resultVerdict)) &&
    leafHas.every((text) => row.leaf.includes(text)) &&
    (outcome === undefined || isOfOutcome(row));
}
