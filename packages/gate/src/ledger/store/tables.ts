import type { Approval } from "../../../../core/src/approvals/mod.ts";
import type { StoredRow } from "../../../../core/src/record/entry/row.ts";
import { Unreadable } from "../errors.ts";

/** The type of a column. A `digest` is stored as bytes, and read as hex digits. A `?` permits null. */
type ColumnType = "digest" | "number" | "number?" | "text" | "text?";

interface TableSpec {
  readonly columns: Readonly<Record<string, ColumnType>>;
  /** The columns of the primary key, in order. */
  readonly key: readonly string[];
}

/**
 * The tables that every engine keeps for a ledger: names, columns, types and keys. An engine may add columns before them, such
 * as the ledger's id, and has tables of its own for notes.
 */
export const tableSpecs = {
  receipts: {
    columns: { seq: "number", session: "text?", tool: "text", verdict: "text", leaf: "text", evidence: "text" },
    key: ["seq"],
  },
  /** The bodies of GET /rules. */
  contracts: { columns: { digest: "text", text: "text" }, key: ["digest"] },
  /** The counters that the ledger keeps, each with a checksum of its numbers. `id` is its number in the rows of events. */
  counters: {
    columns: {
      id: "number",
      digest: "text",
      definition: "text",
      through: "number?",
      unknown_through: "number",
      reset_through: "number",
      folded: "number",
      seal: "text",
    },
    key: ["id"],
  },
  /** Each event with the total of its key up to it, and a checksum if a fold found it. */
  effects: {
    columns: { counter: "number", key: "digest", at: "number", seq: "number", total: "text", folded: "text?" },
    key: ["counter", "key", "at", "seq"],
  },
  approvals: {
    columns: {
      seq: "number",
      attach: "digest",
      key: "text",
      place: "digest",
      status: "text",
      ends: "number?",
      record: "text",
    },
    key: ["seq"],
  },
  /** The amounts that open approvals reserve. */
  holds: {
    columns: { counter: "number", key: "digest", at: "number", seq: "number", amount: "text" },
    key: ["counter", "key", "at", "seq"],
  },
  /** The last outcome of each call: the row of its check, and the row of the outcome. */
  outcomes: { columns: { seq: "number", outcome: "number", status: "text" }, key: ["seq"] },
  /** The events that outcomes took back, and a checksum if a fold found that. */
  withdrawals: {
    columns: {
      counter: "number",
      key: "digest",
      at: "number",
      seq: "number",
      amount: "text",
      outcome: "number",
      folded: "text?",
    },
    key: ["counter", "key", "at", "seq"],
  },
  /** The recorded answers of checks. */
  repeats: { columns: { id: "digest", at: "number", record: "text" }, key: ["id"] },
  /** The inner hashes that tiles need: the roots over 256, 65,536, ... leaves. */
  nodes: { columns: { level: "number", place: "number", hash: "digest" }, key: ["level", "place"] },
} as const;

export type TableName = keyof typeof tableSpecs;

const specs: Readonly<Record<TableName, TableSpec>> = tableSpecs;

type ColumnsOf<T extends TableName> = (typeof tableSpecs)[T]["columns"];

type ValueOfColumn<K> = K extends "number"
  ? number
  : K extends "number?"
    ? number | null
    : K extends "text?"
      ? string | null
      : string;

export type Entry<T extends TableName> = { readonly [C in Column<T>]: ValueOfColumn<ColumnsOf<T>[C]> };

export type Column<T extends TableName> = keyof ColumnsOf<T> & string;

export type Cell = number | string;

/** The values of a table's key, in order; or of its first columns, if the key bounds a page. */
export type EntryKey = readonly Cell[];

/** The entries of a table in the order of its key. */
export interface EntryRange {
  /** Only entries after this key. */
  readonly after?: EntryKey | undefined;
  /** Only entries up to this key. */
  readonly through?: EntryKey | undefined;
  readonly limit: number;
}

/** A counter definition whose events the ledger keeps. */
export interface StoredCounter {
  readonly digest: string;
  readonly definition: string;
  /** The last row that was folded into the counter; null while every new row updates it. */
  readonly through: number | null;
  /** Milliseconds: a window that starts before this moment is not known; -1 if all history is known. */
  readonly unknownThrough: number;
  /** Milliseconds: a person has reset the counter, so events up to this moment do not count. It never decreases. */
  readonly resetThrough?: number | undefined;
}

export interface KeptCounter extends StoredCounter {
  /** The number of the counter in the rows of its events. */
  readonly id: number;
  /** The number of events that folds of existing rows found. */
  readonly folded: number;
  /** -1 if it was never reset. */
  readonly resetThrough: number;
}

/** The last row of a ledger. */
export interface StoredHead {
  readonly seq: number;
  readonly leaf: string;
}

/** What a ledger says of itself besides its rows. */
export interface Description {
  /** The ledger's name, which never changes. */
  readonly log: string;
  /** The secret under which counter keys are digested, 64 hex digits. */
  readonly counterSecret: string;
  /** The verifier key of the key that signs heads; undefined before the first. */
  readonly signer: string | undefined;
  /** The note about the first key; undefined if there is none, or if gates share the ledger. */
  readonly firstKey?: string | undefined;
}

/** What a shared ledger records with its last row. Gates follow each other by it. */
export interface HeadRecord {
  readonly head: StoredHead | undefined;
  /** The last row of a person's act; 0 before the first. */
  readonly changed: number;
  /** The tree at the head, from `Frontier.text`; undefined if it is of another row. */
  readonly frontier: string | undefined;
  /** The last signed head; undefined before the first. */
  readonly checkpoint: string | undefined;
  readonly signer: string | undefined;
}

export interface TablesHead {
  /** The number of the last row; 0 if there is none. */
  readonly rows: number;
  /** Undefined if one gate owns the ledger. */
  readonly record?: HeadRecord | undefined;
}

/** The counters of a ledger, and the first one whose own row was changed, if any. */
export interface Counters {
  readonly kept: readonly KeptCounter[];
  readonly damaged: KeptCounter | undefined;
}

/** The number of events between two keys. */
export interface EventTally {
  /** The key of the last of them; undefined if none follows. */
  readonly to: EntryKey | undefined;
  /** Events that receipts recorded. */
  readonly live: number;
  readonly folded: number;
  /** Events of rows that do not exist. */
  readonly beyond: number;
  /** The last row of the ledger. */
  readonly last: number;
}

/** The number of events that are counted at once, which takes a few milliseconds. */
export const tallyEvents = 16_384;

/** How many approvals wait for a person. */
export interface WaitingApprovals {
  readonly calls: number;
  /** Those that have waited for more than half of their time. */
  readonly late: number;
}

/** Which approvals to list, newest first. */
export interface ApprovalQuery {
  /** Only approvals of rows below this one. */
  readonly before: number;
  readonly limit: number;
  readonly statuses?: readonly string[] | undefined;
  readonly key?: string | undefined;
  readonly session?: string | undefined;
  /** Only these rows. */
  readonly rows?: readonly number[] | undefined;
}

export interface RowQuery {
  /** Only rows below this one; newest first. */
  readonly before: number;
  /** Only rows from this one on; by default from the first. */
  readonly from?: number | undefined;
  readonly limit: number;
  readonly session?: string | undefined;
  readonly tool?: string | undefined;
  readonly verdict?: string | undefined;
  /** Only checks whose verdict is BLOCK or ESCALATE, which have an index. */
  readonly refused?: boolean | undefined;
  /** Only checks: neither people's acts nor results of tools. */
  readonly checks?: boolean | undefined;
  /** Only checks whose last outcome has this status; `missing` means those that were let through and have none. */
  readonly outcome?: string | undefined;
  /** Texts that the leaf must all contain. */
  readonly leafHas?: readonly string[] | undefined;
}

/** Some rows, newest first. It may be empty although more follow, so that a long search can be stopped. */
export interface RowSlice {
  readonly rows: readonly StoredRow[];
  /** The row below which the next slice continues; 0 if there are no more rows. */
  readonly next: number;
}

/**
 * Reads the tables of a ledger, whether or not a gate serves it. It never locks, writes or creates anything, and never delays a
 * commit.
 *
 * Each call sees one state of the ledger. Calls that are made without a wait between them are answered in their order: none
 * sees an older state than the call before it. That does not apply to `find`, `approvals` and `countWaiting`.
 *
 * Any method may throw `Unreadable` for damaged data.
 */
export interface Tables {
  /** @throws {LedgerRefused} if the description was changed */
  description(): Promise<Description>;
  head(): Promise<TablesHead>;
  counters(): Promise<Counters>;
  /**
   * Entries in the order of the table's key, at most `limit`. A page may be shorter if its entries are large.
   * Only an empty page means the end.
   *
   * @param columns by default all
   */
  page<T extends TableName, C extends Column<T> = Column<T>>(
    table: T,
    range: EntryRange,
    columns?: readonly C[],
  ): Promise<readonly Pick<Entry<T>, C>[]>;
  /**
   * The entry of each key; undefined for a key without an entry.
   *
   * @param columns by default all
   */
  at<T extends TableName, C extends Column<T> = Column<T>>(
    table: T,
    keys: readonly EntryKey[],
    columns?: readonly C[],
  ): Promise<readonly (Pick<Entry<T>, C> | undefined)[]>;
  /** The entries of which a column has one of these values, in the order of the values. */
  where<T extends TableName>(table: T, column: Column<T>, values: readonly Cell[]): Promise<readonly Entry<T>[]>;
  /** Counts the next events after a key. @param through the last row whose events count as live */
  tally(after: EntryKey | undefined, through: number): Promise<EventTally>;
  /**
   * The running total before each position, which has the form of an event's key. Without an earlier event it is undefined
   * or 0.
   */
  totals(positions: readonly EntryKey[]): Promise<readonly (string | undefined)[]>;
  /** Rows, newest first: the next slice of a search. */
  find(query: RowQuery): Promise<RowSlice>;
  /** Approvals, newest first. */
  approvals(query: ApprovalQuery): Promise<readonly Approval[]>;
  /** Counts the approvals that wait for a person at a time, in milliseconds. */
  countWaiting(at: number): Promise<WaitingApprovals>;
}

export const tableMethods: readonly (keyof Tables)[] = [
  "description",
  "head",
  "counters",
  "page",
  "at",
  "where",
  "tally",
  "totals",
  "find",
  "approvals",
  "countWaiting",
];

/** Makes tables from calls of methods by their names. @param ask makes a call at once, so that calls keep their order */
export function makeTables(ask: (method: keyof Tables, ...args: readonly unknown[]) => Promise<unknown>): Tables {
  const calls = tableMethods.map((method) => [method, (...args: readonly unknown[]) => ask(method, ...args)] as const);
  return Object.fromEntries(calls) as unknown as Tables;
}

/** The same methods without promises. */
export type WithoutPromises<Methods> = {
  readonly [Name in keyof Methods]: (...args: never[]) => unknown;
};

/** The same tables for callers that wait. */
export function withPromises(tables: WithoutPromises<Tables>): Tables {
  return makeTables(async (method, ...args) => tables[method](...(args as never[])));
}

export function columnsOf<T extends TableName>(table: T): readonly Column<T>[] {
  return Object.keys(specs[table].columns) as Column<T>[];
}

export function keyOf(table: TableName): readonly string[] {
  return specs[table].key;
}

export function keyIn<T extends TableName>(table: T, entry: Entry<T>): EntryKey {
  return keyOf(table).map((name) => (entry as Readonly<Record<string, Cell>>)[name] ?? 0);
}

/** One text for the values of a key. */
export function keyText(key: EntryKey): string {
  return key.join(" ");
}

/**
 * Makes entries of a table from the columns that a database's driver returns.
 *
 * @param columns the names of the columns, in their order
 * @throws {Unreadable} for a value that is not of its column's type
 */
export function entryReader<T extends TableName, C extends Column<T>>(
  table: T,
  columns: readonly C[],
): (values: readonly unknown[]) => Pick<Entry<T>, C> {
  const kinds = specs[table].columns;
  const readers = columns.map((name) => ({ name, read: readerOf(`${table}.${name}`, kinds[name] ?? "text") }));
  return (values) => {
    const entry: Record<string, unknown> = {};
    let index = 0; // Twice as fast as an iterator over entries, and a walk reads each event so.
    for (const { name, read } of readers) entry[name] = read(values[index++]);
    return entry as Pick<Entry<T>, C>;
  };
}

/** The entries before the first damaged one. @throws {Unreadable} if that is the first */
export function untilDamaged<Made>(
  found: Iterable<readonly unknown[]>,
  entryOf: (values: readonly unknown[]) => Made,
): readonly Made[] {
  const entries: Made[] = [];
  try {
    for (const values of found) entries.push(entryOf(values));
  } catch (error) {
    if (entries.length === 0) throw error;
  }
  return entries;
}

function readerOf(name: string, kind: ColumnType): (value: unknown) => Cell | null {
  const throwUnreadable = (): never => {
    throw new Unreadable(`${name} is not of its type`);
  };
  const text = (value: unknown): string => (typeof value === "string" ? value : throwUnreadable());
  // PostgreSQL's driver returns 64-bit numbers as texts.
  const number = (value: unknown): number => {
    const found = typeof value === "string" && /^-?\d+$/.test(value) ? Number(value) : value;
    return Number.isSafeInteger(found) ? (found as number) : throwUnreadable();
  };
  const digest = (value: unknown): string =>
    value instanceof Uint8Array
      ? Buffer.from(value.buffer, value.byteOffset, value.length).toString("hex")
      : throwUnreadable();
  const read = { digest, number, "number?": number, text, "text?": text }[kind];
  return kind.endsWith("?") ? (value) => (value === null ? null : read(value)) : read;
}

/** The values of an entry as a database stores them, in the order of the table's columns. */
export function storedValues<T extends TableName>(table: T, entry: Entry<T>): readonly (Uint8Array | Cell | null)[] {
  const kinds = specs[table].columns;
  const values: Readonly<Record<string, Cell | null>> = entry;
  return Object.entries(kinds).map(([name, kind]) => storedValue(kind, values[name] ?? null));
}

/** Makes the values of a table's keys as a database stores them. */
export function keyWriter(table: TableName): (key: EntryKey) => (Uint8Array | Cell)[] {
  const { columns, key: names } = specs[table];
  const areDigests = names.map((name) => columns[name] === "digest");
  return (key) => key.map((value, index) => (areDigests[index] === true ? Buffer.from(String(value), "hex") : value));
}

/** A value of a column as a database stores it. */
export function storedIn<T extends TableName>(table: T, column: Column<T>, value: Cell): Uint8Array | Cell {
  return storedValue(specs[table].columns[column] ?? "text", value) as Uint8Array | Cell;
}

function storedValue(kind: ColumnType, value: Cell | null): Uint8Array | Cell | null {
  return kind === "digest" && typeof value === "string" ? Buffer.from(value, "hex") : value;
}
