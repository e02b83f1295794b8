import {
  columnsOf,
  entryReader,
  keyIn,
  keyOf,
  keyWriter,
  storedIn,
  tallyEvents,
  untilDamaged,
  type Column,
  type Entry,
  type EventTally,
  type EntryKey,
  type TableName,
  type Tables,
  type Cell,
} from "../tables.ts";
import { ask, entriesAt, entriesWhere, pageOf, type BoundStatement } from "./sql.ts";

/** Sends a statement and returns its rows. */
export type StatementSender = (statement: BoundStatement) => Promise<readonly (readonly unknown[])[]>;

const firstKey: EntryKey = [-(2 ** 31), "", Number.MIN_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
const lastKey: EntryKey = [2 ** 31 - 1, "f".repeat(128), Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];

/** Reads the entries of tables. */
export function entriesOf(
  send: StatementSender,
  ledger: string,
): Pick<Tables, "at" | "page" | "tally" | "totals" | "where"> {
  return {
    page: async (table, { after, through, limit }, columns = columnsOf(table) as never) => {
      const [low, high] = [after, through].map((key) => key && keyWriter(table)(key));
      const rows = await send(pageOf(ledger, { table, columns, after: low, through: high, limit }));
      return untilDamaged(rows, entryReader(table, columns));
    },
    at: async (table, keys, columns = columnsOf(table) as never) => {
      if (keys.length === 0) return [];
      const found = await send(entriesAt(ledger, table, columnsOfKeys(table, keys), columns));
      const entryOf = entryReader(table, columns);
      const entries = new Map(found.map(([nth, ...values]) => [Number(nth), entryOf(values)]));
      return keys.map((_key, index) => entries.get(index + 1));
    },
    where: (table, column, values) => entriesIn(send, ledger, { table, column, values }),
    tally: (after = firstKey, through) => tally(send, ledger, { after, through }),
    totals: async (positions) => {
      const found = await send(ask("totalsBefore", ledger, ...columnsOfKeys("effects", positions)));
      return (found as readonly (readonly (string | null)[])[]).map(([total]) => total ?? undefined);
    },
  };
}

interface ColumnQuery<T extends TableName> {
  readonly table: T;
  readonly column: Column<T>;
  readonly values: readonly Cell[];
}

/** The entries of which a column has one of these values, in the order of the values. */
export async function entriesIn<T extends TableName>(
  send: StatementSender,
  ledger: string,
  { table, column, values }: ColumnQuery<T>,
): Promise<readonly Entry<T>[]> {
  if (values.length === 0) return [];
  const stored = values.map((value) => storedIn(table, column, value));
  const rows = await send(entriesWhere(ledger, table, column, stored));
  const entries = Map.groupBy(rows.map(entryReader(table, columnsOf(table))), (entry): unknown => entry[column]);
  return values.flatMap((value) => entries.get(value) ?? []);
}

async function tally(
  send: StatementSender,
  ledger: string,
  { after, through }: { readonly after: EntryKey; readonly through: number },
): Promise<EventTally> {
  const from = keyWriter("effects")(after);
  const [end] = await send(ask("tallyEnd", ledger, ...from, tallyEvents - 1));
  const to = end && keyIn("effects", entryReader("effects", keyOf("effects") as never)(end) as Entry<"effects">);
  const [counted] = await send(ask("tally", ledger, ...from, ...keyWriter("effects")(to ?? lastKey), through));
  const [live = 0, folded = 0, beyond = 0, last = 0] = (counted ?? []).map(Number);
  return { to, live, folded, beyond, last };
}

/** The values of keys, column by column. */
function columnsOfKeys(table: TableName, keys: readonly EntryKey[]): readonly (readonly unknown[])[] {
  const stored = keys.map(keyWriter(table));
  return keyOf(table).map((_, column) => stored.map((values) => values[column]));
}
