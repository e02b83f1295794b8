import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Approval } from "../../../../../core/src/approvals/mod.ts";
import { readApprovals } from "../../../../../core/src/record/entry/approval-rows.ts";
import { LedgerRefused, Unreadable } from "../../errors.ts";
import {
  columnsOf,
  entryReader,
  keyOf,
  keyWriter,
  keyIn,
  storedIn,
  tallyEvents,
  untilDamaged,
  type WithoutPromises,
  type ApprovalQuery,
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
  type Cell,
  type TablesHead,
  type WaitingApprovals,
} from "../tables.ts";
import { listApprovals, waitingSql } from "./approval-reads.ts";
import { readCounters, readMeta } from "./file.ts";
import { readSlice, searchRows } from "./search.ts";

type SqliteRow = readonly unknown[];

/** So many rows are read at once, which is faster; of more, only as many as their size permits. */
const fewRows = 128;

/** The tables of a file. Each statement sees one state of the file. */
export class SqliteTables implements WithoutPromises<Tables> {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  #counters: { readonly version: unknown; readonly counters: Counters } | undefined;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** A statement that returns arrays, which cost a third of the driver's objects. */
  #prepare(sql: string): StatementSync {
    return this.#statements.getOrInsertComputed(sql, () => this.#database.prepare(sql, { returnArrays: true }));
  }

  description(): Description {
    const meta = readMeta(this.#database);
    if (meta === undefined)
      throw new LedgerRefused(
        "the ledger's file is empty: start its gate, which makes the tables, or restore a backup",
      );
    const { log, counterSecret, signer, firstKey } = meta;
    return { log, counterSecret, signer, firstKey };
  }

  head(): TablesHead {
    return readable(() => {
      // As text, because the driver may not be able to read a changed number.
      const [last] = this.#prepare("SELECT cast(max(seq) AS TEXT) FROM receipts").get() as unknown as SqliteRow;
      return { rows: Number(last ?? 0) };
    });
  }

  /** Reads the counters again only after a commit of another connection. */
  counters(): Counters {
    return readable(() => {
      const [version] = this.#prepare("PRAGMA data_version").get() as unknown as SqliteRow;
      const known = this.#counters?.version === version ? this.#counters : undefined;
      this.#counters = known ?? { version, counters: readCounters(this.#database) };
      return this.#counters.counters;
    });
  }

  page<T extends TableName, C extends Column<T> = Column<T>>(
    table: T,
    range: EntryRange,
    columns: readonly C[] = columnsOf(table) as readonly C[],
  ): readonly Pick<Entry<T>, C>[] {
    try {
      return this.#page(table, range, columns);
    } catch (error) {
      this.#statements.clear(); // A read that has failed leaves its error in its statement.
      if (range.limit === 1) throw asUnreadable(error);
      // Entries are read one by one, to find the first damaged one.
      return readable(() => this.#page(table, { ...range, limit: 1 }, columns));
    }
  }

  #page<T extends TableName, C extends Column<T>>(
    table: T,
    range: EntryRange,
    columns: readonly C[],
  ): readonly Pick<Entry<T>, C>[] {
    const bounds: Partial<EntryRange> = table === "receipts" ? rowBounds : {};
    const { after = bounds.after, through = bounds.through, limit } = range;
    const key = keyOf(table);
    const within = [after && bound(key, ">", after), through && bound(key, "<=", through)].filter(Boolean);
    const where = within.length === 0 ? "" : ` WHERE ${within.join(" AND ")}`;
    const sql = `SELECT ${columns.join(", ")} FROM ${table}${where} ORDER BY ${key.join(", ")} LIMIT ?`;
    const values = [after, through].flatMap((of) => (of === undefined ? [] : keyWriter(table)(of)));
    const statement = this.#prepare(sql);
    const mayBeLarge = limit > fewRows && columns.some((name) => name === "evidence");
    const found = mayBeLarge ? readSlice(statement.iterate(...values, limit)) : statement.all(...values, limit);
    return untilDamaged(found as Iterable<SqliteRow>, entryReader(table, columns));
  }

  at<T extends TableName, C extends Column<T> = Column<T>>(
    table: T,
    keys: readonly EntryKey[],
    columns: readonly C[] = columnsOf(table) as readonly C[],
  ): readonly (Pick<Entry<T>, C> | undefined)[] {
    const where = keyOf(table).map((name) => `${name} = ?`);
    const statement = this.#prepare(`SELECT ${columns.join(", ")} FROM ${table} WHERE ${where.join(" AND ")}`);
    const entryOf = entryReader(table, columns);
    const stored = keyWriter(table);
    return eachReadable(keys, (key) => {
      const found = statement.get(...stored(key)) as unknown as SqliteRow | undefined;
      return found && entryOf(found);
    });
  }

  where<T extends TableName>(table: T, column: Column<T>, values: readonly Cell[]): readonly Entry<T>[] {
    const columns = columnsOf(table);
    const statement = this.#prepare(`SELECT ${columns.join(", ")} FROM ${table} WHERE ${column} = ?`);
    const entryOf = entryReader(table, columns);
    return eachReadable(values, (value) =>
      (statement.all(storedIn(table, column, value)) as unknown as readonly SqliteRow[]).map(entryOf),
    ).flat();
  }

  tally(after: EntryKey | undefined, through: number): EventTally {
    const key = keyOf("effects");
    return readable(() => {
      const from = after === undefined ? [] : keyWriter("effects")(after);
      const low = after === undefined ? "true" : bound(key, ">", after);
      const order = key.join(", ");
      const end = this.#prepare(
        `SELECT ${order} FROM effects WHERE ${low} ORDER BY ${order} LIMIT 1 OFFSET ${tallyEvents - 1}`,
      ).get(...from) as unknown as SqliteRow | undefined;
      const to =
        end && keyIn("effects", entryReader("effects", key as readonly Column<"effects">[])(end) as Entry<"effects">);
      const high = to === undefined ? "true" : bound(key, "<=", to);
      const counted = this.#prepare(
        `SELECT count(*) FILTER (WHERE folded IS NULL AND seq <= ?), count(folded),
           count(*) FILTER (WHERE seq > (SELECT coalesce(max(seq), 0) FROM receipts)),
           (SELECT coalesce(max(seq), 0) FROM receipts) FROM effects WHERE ${low} AND ${high}`,
      ).get(through, ...from, ...(to === undefined ? [] : keyWriter("effects")(to)));
      const [live = 0, folded = 0, beyond = 0, last = 0] = (counted as unknown as SqliteRow).map(Number);
      return { to, live, folded, beyond, last };
    });
  }

  totals(positions: readonly EntryKey[]): readonly (string | undefined)[] {
    const before = this.#prepare(
      "SELECT total FROM effects WHERE counter = ? AND key = ? AND (at, seq) < (?, ?) ORDER BY at DESC, seq DESC LIMIT 1",
    );
    const stored = keyWriter("effects");
    return eachReadable(positions, (position) => {
      const [total] = (before.get(...stored(position)) ?? []) as unknown as readonly string[];
      return total;
    });
  }

  find(query: RowQuery): RowSlice {
    return searchRows(this.#database, this.head().rows, query);
  }

  /** Without the calls, which are much larger. */
  approvals(query: ApprovalQuery): readonly Approval[] {
    return readApprovals(listApprovals(this.#database, query));
  }

  countWaiting(at: number): WaitingApprovals {
    const [calls = 0, late = 0] = this.#prepare(waitingSql).get(at) as unknown as readonly number[];
    return { calls, late };
  }
}

/** The driver throws for other numbers. The walk finds a row with one, because it is missing. */
const rowBounds: Pick<EntryRange, "after" | "through"> = {
  after: [Number.MIN_SAFE_INTEGER - 1],
  through: [Number.MAX_SAFE_INTEGER],
};

function bound(key: readonly string[], operator: "<=" | ">", { length }: EntryKey): string {
  return `(${key.slice(0, length).join(", ")}) ${operator} (${Array.from({ length }, () => "?").join(", ")})`;
}

/** @throws {Unreadable} if the file is damaged where it is read */
function readable<Found>(read: () => Found): Found {
  return eachReadable([undefined], read)[0] as Found;
}

/** Reads once for each of some keys. @throws {Unreadable} with the index of the key at which the file is damaged */
function eachReadable<Each, Found>(keys: readonly Each[], read: (key: Each) => Found): readonly Found[] {
  const found: Found[] = [];
  try {
    for (const key of keys) found.push(read(key));
    return found;
  } catch (error) {
    throw asUnreadable(error, found.length);
  }
}

/** A failing disk is a fault and does not mean a damaged file. */
export function asUnreadable(error: unknown, index?: number): unknown {
  const { errcode, message } = error as Error & { readonly errcode?: number };
  return [7, 10, 13].includes((errcode ?? 0) & 0xff) ? error : new Unreadable(message, index);
}
