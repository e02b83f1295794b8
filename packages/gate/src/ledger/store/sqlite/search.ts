import type { DatabaseSync } from "node:sqlite";
import { columnsOf, entryReader, type RowQuery, type RowSlice } from "../tables.ts";
import { conditionsOf } from "../search.ts";
import { blockBits } from "./schema.ts";

/** Rows that a search reads at once. Larger answers live long enough to be kept as old, and resident memory grows. */
const sliceRows = 128;
/** Characters of one slice, which limits memory if rows are large. */
const sliceCharacters = 1_000_000;
/** Rows that one statement searches for matches of a filter. */
const windowRows = 65_536;
/** Rows that one statement searches if it must read each leaf: about 40 milliseconds. */
const windowRowsRead = 4096;
/** A slice without a match ends after this time, so that other reads are answered. */
const sliceMs = 20;

const columns = columnsOf("receipts");
const rowOf = entryReader("receipts", columns);

/** Reads the next slice of a search. @param last the number of the last row */
export function searchRows(database: DatabaseSync, last: number, query: RowQuery): RowSlice {
  const { before, from = 1, limit, session } = query;
  const { isIndexed, parameters, where } = conditionsOf(query, dialect);
  // ?1 is the row below which it searches, and ?2 the lowest row.
  const ofBlock = session === undefined ? "" : ` AND seq >> ${blockBits} = ?2 >> ${blockBits}`;
  const statement = database.prepare(
    `SELECT ${columns.join(", ")} FROM receipts WHERE seq < ?1 AND seq >= ?2${ofBlock}${where} ORDER BY seq DESC LIMIT ?`,
    { returnArrays: true },
  );
  const window = (query.leafHas ?? []).length > 0 && !isIndexed ? windowRowsRead : windowRows;
  const block = 2 ** blockBits; // A search for a session reads one block of the index after the other.
  const floorOf = (top: number): number => (session === undefined ? top - window : top - 1 - ((top - 1) % block));
  const until = performance.now() + sliceMs;
  let top = Math.min(before, last + 1);
  while (top > from) {
    const floor = Math.max(from, floorOf(top));
    const found = statement.iterate(top, floor, ...parameters, Math.min(limit, sliceRows));
    const rows = [...readSlice(found)].map(rowOf);
    const lowest = rows.at(-1);
    if (lowest !== undefined) return { rows, next: lowest.seq };
    top = floor;
    if (performance.now() > until) return { rows: [], next: top };
  }
  return { rows: [], next: 0 };
}

const dialect = {
  placeholder: () => "?",
  leafHas: (text: string) => `(instr(leaf, ${text}) > 0)`,
  outcomes: "SELECT 1 FROM outcomes WHERE outcomes.seq = receipts.seq",
};

/** Reads rows up to the size of a slice, because each costs memory. */
export function* readSlice(rows: Iterable<unknown>): Generator<readonly unknown[]> {
  let characters = 0;
  for (const values of rows as Iterable<readonly unknown[]>) {
    yield values;
    for (const value of values) if (typeof value === "string") characters += value.length;
    if (characters > sliceCharacters) return;
  }
}
