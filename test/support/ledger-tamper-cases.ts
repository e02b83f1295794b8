import { isDeepStrictEqual } from "node:util";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { contracts, deniedRow, failedRow, openRow, sampleRows } from "./ledger-fixture.ts";

/** One change to the file, undone after the search for it. */
export interface Change {
  readonly group: string;
  readonly title: string;
  /** The rows of which one must be named. */
  readonly rows: readonly number[];
  readonly apply: (database: DatabaseSync) => void;
}

/** A table, the columns that identify a row, and the receipts that a change of that row breaks. */
interface Table {
  readonly name: string;
  readonly key: readonly string[];
  readonly columns: readonly string[];
  readonly rows: (row: Row, database: DatabaseSync) => readonly number[];
  /** True if a missing row cannot be noticed. */
  readonly mayVanish?: true;
}

type Row = Readonly<Record<string, SQLInputValue>>;

/** If no present row refers to it: the row that would come next. */
const next = sampleRows + 1;

const tables: readonly Table[] = [
  {
    name: "receipts",
    key: ["seq"],
    columns: ["seq", "session", "tool", "verdict", "leaf", "evidence"],
    rows: ({ seq }) => [Number(seq)],
  },
  { name: "meta", key: ["name"], columns: ["name", "value"], rows: () => [1] },
  {
    name: "contracts",
    key: ["digest"],
    columns: ["digest", "text"],
    rows: ({ text }) => [text === contracts[0] ? 1 : 7],
  },
  {
    name: "counters",
    key: ["id"],
    columns: ["id", "digest", "definition", "through", "unknown_through", "reset_through", "folded", "seal"],
    rows: ({ id }, database) => {
      const first = firstMoved(database, Number(id));
      return first === undefined ? [...followers(database, { counter: id ?? 0, seq: 0 }), next] : [first];
    },
  },
  {
    name: "effects",
    key: ["counter", "key", "at", "seq"],
    columns: ["counter", "key", "at", "seq", "total", "folded"],
    rows: (row, database) => (row["folded"] === null ? [Number(row["seq"])] : [...followers(database, row), next]),
  },
  {
    name: "nodes",
    key: ["level", "place"],
    columns: ["level", "place", "hash"],
    // The last row that it covers.
    rows: ({ level, place }) => [(Number(place) + 1) * 256 ** Number(level)],
  },
  {
    name: "approvals",
    key: ["seq"],
    columns: ["seq", "attach", "key", "place", "status", "ends", "record"],
    // The row that asked, or the row that ended it.
    rows: ({ seq }) => [Number(seq), Number(seq) === deniedRow ? deniedRow + 1 : Number(seq)],
  },
  {
    name: "holds",
    key: ["counter", "key", "at", "seq"],
    columns: ["seq", "counter", "key", "at", "amount"],
    // The row that reserves it, or the row that ended another approval.
    rows: () => [openRow, deniedRow + 1],
  },
  {
    name: "outcomes",
    key: ["seq"],
    columns: ["seq", "outcome", "status"],
    // The call, its outcome, or the row that would come next.
    rows: ({ seq }) => [Number(seq), failedRow, failedRow + 1, next],
  },
  {
    name: "withdrawals",
    key: ["counter", "key", "at", "seq"],
    columns: ["counter", "key", "at", "seq", "amount", "outcome", "folded"],
    // The outcome; the call, if the entry cannot be read.
    rows: () => [failedRow, failedRow + 1],
  },
  // Without its recorded answer, the repeat of a check is judged again, as after ten minutes.
  { name: "repeats", key: ["id"], columns: ["id", "at", "record"], rows: () => [sampleRows], mayVanish: true },
  // Notes about webhooks are not part of the history. The sample has none.
  { name: "deliveries", key: ["endpoint"], columns: ["endpoint", "note"], rows: () => [], mayVanish: true },
];

export const tableNames: readonly string[] = tables.map(({ name }) => name);

/** Returns the first receipt that recorded an update of the counter. */
function firstMoved(database: DatabaseSync, counter: number): number | undefined {
  const first = database
    .prepare("SELECT min(seq) AS seq FROM effects WHERE counter = ? AND folded IS NULL")
    .get(counter)?.["seq"];
  return first === null || first === undefined ? undefined : Number(first);
}

/** Returns an event and the later ones of its counter: each total is the previous total plus an amount. */
function followers(database: DatabaseSync, { counter, seq }: Row): number[] {
  const rows = database.prepare("SELECT seq FROM effects WHERE counter = ? AND seq >= ?").all(counter ?? 0, seq ?? 0);
  return rows.map((row) => Number(row["seq"]));
}

function allRows(database: DatabaseSync, { name }: Table): readonly Row[] {
  return database.prepare(`SELECT * FROM ${name}`).all();
}

function whereKey({ key }: Table): string {
  return key.map((column) => `${column} = ?`).join(" AND ");
}

function keyOf({ key }: Table, row: Row): SQLInputValue[] {
  return key.map((column) => row[column] ?? null);
}

function titleOf(table: Table, row: Row): string {
  const parts = keyOf(table, row).map((value) => (typeof value === "object" ? "…" : String(value).slice(0, 12)));
  return `${table.name}[${parts.join(", ")}]`;
}

/** Returns the bits of a byte that are flipped, one at a time: one bit, or all with TAMPER_BITS=all. */
export function bitsOf(byte: number): readonly number[] {
  return process.env["TAMPER_BITS"] === "all" ? [0, 1, 2, 3, 4, 5, 6, 7] : [Math.abs(byte) % 8];
}

/** Changes every byte of every column of every row; gives absent values a value, and removes present ones. */
export function* byteChanges(database: DatabaseSync): Generator<Change> {
  for (const table of tables) {
    for (const row of allRows(database, table)) {
      for (const column of table.columns) {
        const rows = table.rows(row, database);
        // An event with another time may be noticed at an event that now comes after it.
        const others = table.name === "effects" && column === "at" ? followers(database, { ...row, seq: 0 }) : [];
        yield* columnChanges(table, row, column, [...rows, ...others]);
      }
    }
  }
}

function* columnChanges(table: Table, row: Row, column: string, rows: readonly number[]): Generator<Change> {
  const group = `${table.name}.${column}`;
  const set = (value: SQLInputValue, expression: string, title: string, at = rows): Change => ({
    group,
    title: `${titleOf(table, row)}.${column} ${title}`,
    rows: at,
    apply: (database) => {
      database
        .prepare(`UPDATE ${table.name} SET ${column} = ${expression} WHERE ${whereKey(table)}`)
        .run(value, ...keyOf(table, row));
    },
  });
  const value = row[column] ?? null;
  if (value === null) {
    yield set("1", "?", "made present");
  } else if (typeof value === "number") {
    for (let byte = 0; byte < 8; byte += 1) {
      for (const bit of bitsOf(value % 7)) {
        const turned = BigInt.asIntN(64, BigInt(value) ^ (1n << BigInt(byte * 8 + bit)));
        yield set(turned, "?", `byte ${byte}, bit ${bit}`, whereMoved(group, turned, rows));
      }
    }
  } else {
    const isText = typeof value === "string";
    const bytes = Buffer.from(isText ? Buffer.from(value) : (value as Uint8Array));
    const expression = isText ? "cast(? AS TEXT)" : "?";
    for (let byte = 0; byte < bytes.length; byte += 1) {
      for (const bit of bitsOf(byte)) {
        const turned = Buffer.from(bytes);
        turned[byte] = (turned[byte] ?? 0) ^ (1 << bit);
        yield set(turned, expression, `byte ${byte}, bit ${bit}`);
      }
    }
    if (bytes.length > 0) yield set(bytes.subarray(0, -1), expression, "cut by a byte");
    yield set(Buffer.concat([bytes, Buffer.from(isText ? " " : "\0")]), expression, "longer by a byte");
    if (bytes.length > 0) yield set(Buffer.alloc(0), expression, "emptied");
    if (["receipts.session", "effects.folded"].includes(group)) yield set(null, "?", "made absent");
  }
}

/** A receipt moved before the first is noticed there, or as missing at its old position, like one moved elsewhere. */
function whereMoved(group: string, value: bigint, rows: readonly number[]): readonly number[] {
  if (group === "receipts.seq" && value < 1n) return [1, ...rows];
  return group === "effects.seq" ? [...rows, Number(value)] : rows;
}

/** Drops each row, doubles it under another key, and swaps it with others of its table. */
export function* rowChanges(database: DatabaseSync): Generator<Change> {
  for (const table of tables) {
    const rows = allRows(database, table);
    for (const [index, row] of rows.entries()) {
      const affected = table.rows(row, database);
      if (table.mayVanish !== true)
        yield dropped(table, row, table.name === "effects" ? [...affected, sampleRows] : affected);
      const first = table.name === "effects" ? followers(database, { ...row, seq: 0 }).slice(0, 3) : [];
      yield* doubled(table, row, affected, first);
      for (const other of rows.slice(index + 1))
        yield* swapped(table, row, other, [...affected, ...table.rows(other, database)]);
    }
  }
}

function dropped(table: Table, row: Row, rows: readonly number[]): Change {
  return {
    group: `${table.name}: a row dropped`,
    title: titleOf(table, row),
    rows,
    apply: (database) => {
      database.prepare(`DELETE FROM ${table.name} WHERE ${whereKey(table)}`).run(...keyOf(table, row));
    },
  };
}

function* doubled(table: Table, row: Row, rows: readonly number[], first: readonly number[]): Generator<Change> {
  const last = sampleRows;
  const copies: readonly { readonly as: Row; readonly rows: readonly number[] }[] = {
    receipts: [
      { as: { seq: last + 1 }, rows: [next] },
      { as: { seq: last + 5 }, rows: [next] },
      { as: { seq: 0 }, rows: [1] },
      { as: { seq: -9 }, rows: [1] },
    ],
    approvals: [
      { as: { seq: 2 ** 60 }, rows: [next] },
      { as: { seq: 1 }, rows: [1] },
      { as: { seq: last + 1 }, rows: [next] },
    ],
    holds: [
      { as: { seq: 1 }, rows: [1] },
      { as: { seq: deniedRow }, rows: [deniedRow + 1] },
      { as: { at: 0 }, rows: [openRow] },
    ],
    outcomes: [
      { as: { seq: -(2 ** 60) }, rows: [next] },
      { as: { seq: 1 }, rows: [1] },
      { as: { seq: last + 1 }, rows: [next] },
    ],
    withdrawals: [
      { as: { seq: 1 }, rows: [failedRow + 1] },
      { as: { key: new Uint8Array(32) }, rows: [failedRow + 1] },
      { as: { counter: 9 }, rows: [failedRow + 1] },
      { as: { at: 0 }, rows: [failedRow + 1] },
    ],
    repeats: [{ as: { id: new Uint8Array(32) }, rows: [last] }],
    meta: [{ as: { name: "more" }, rows: [1] }],
    contracts: [{ as: { digest: "0".repeat(64) }, rows: [next] }],
    counters: [{ as: { id: 9, digest: "0".repeat(64) }, rows: [next] }],
    effects: [
      { as: { seq: 1 }, rows: [1, ...rows] },
      { as: { seq: last }, rows: [last, ...rows] },
      { as: { seq: last + 1 }, rows: [next, ...rows] },
      { as: { key: new Uint8Array(32) }, rows },
      { as: { counter: 9 }, rows },
      { as: { at: 0 }, rows: [...first, ...rows] }, // what came first now follows it
    ],
  }[table.name] as readonly { readonly as: Row; readonly rows: readonly number[] }[];
  for (const copy of copies) {
    const made = { ...row, ...copy.as };
    yield {
      group: `${table.name}: a row doubled`,
      title: `${titleOf(table, row)} as ${JSON.stringify(copy.as)}`,
      rows: copy.rows,
      apply: (database) => {
        const names = Object.keys(made);
        const insert = database.prepare(
          `INSERT INTO ${table.name} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
        );
        insert.setReadBigInts(true); // The driver returns the number of the row, which may be too large for another type.
        insert.run(...Object.values(made));
      },
    };
  }
}

/** Swaps all values of two rows except their keys, and each column alone. */
function* swapped(table: Table, row: Row, other: Row, rows: readonly number[]): Generator<Change> {
  const columns = table.columns.filter((column) => !table.key.includes(column));
  for (const chosen of [columns, ...(columns.length > 1 ? columns.map((column) => [column]) : [])]) {
    if (chosen.every((column) => isDeepStrictEqual(row[column], other[column]))) continue;
    yield {
      group: `${table.name}: two rows swapped`,
      title: `${titleOf(table, row)} and ${titleOf(table, other)}: ${chosen.join(", ")}`,
      rows,
      apply: (database) => {
        const update = database.prepare(
          `UPDATE ${table.name} SET ${chosen.map((column) => `${column} = ?`).join(", ")} WHERE ${whereKey(table)}`,
        );
        if (table.name === "counters")
          update.run(
            ...chosen.map((column) => (column === "digest" ? "moving" : (row[column] ?? null))),
            ...keyOf(table, row),
          );
        update.run(...chosen.map((column) => row[column] ?? null), ...keyOf(table, other));
        update.run(...chosen.map((column) => other[column] ?? null), ...keyOf(table, row));
      },
    };
  }
}

/** Removes the last rows. */
export function* cuts(): Generator<Change> {
  for (let last = 0; last < sampleRows; last += 1) {
    for (const tablesCut of [["receipts"], ["receipts", "effects"]]) {
      yield {
        group: `${tablesCut.join(" and ")}: the end cut`,
        title: `after row ${last}`,
        rows: [last + 1],
        apply: (database) => {
          for (const table of tablesCut) database.prepare(`DELETE FROM ${table} WHERE seq > ?`).run(last);
        },
      };
    }
  }
}
