import { isMode, type Mode } from "../../../../core/src/wire/mod.ts";
import { partText } from "../../../../core/src/record/entry/evidence.ts";
import { parseLeaf } from "../../../../core/src/record/entry/leaf.ts";
import { changeColumns, type StoredRow } from "../../../../core/src/record/entry/row.ts";
import { keyDigester } from "../key-digests.ts";
import type { EventPosition } from "../store/store.ts";
import type { KeptCounter, RowQuery, Tables } from "../store/tables.ts";
import type { HashReader } from "../../../../core/src/record/tree/tiles.ts";
import { receiptsOf, type ReceiptQuery } from "./query.ts";
import { findRows, firstSince, hashReader, leafReader, rowsAt, totalsBefore } from "./table-reads.ts";

/** Rows of one page of a long read: a few milliseconds, so that others are answered between pages. */
const pageRows = 512;

/** An administrative event, as its row records it. */
export interface RecordedChange {
  readonly seq: number;
  readonly at: number;
  /** The name of the key that was used. */
  readonly by: string;
  /** Such as `keys.create`. */
  readonly act: string;
  /** The details of the event, as JSON. */
  readonly body: string;
  /** The contract in force after it; SHA-256 in hex. */
  readonly contract: string;
  readonly mode: Mode;
  readonly engine: string;
}

/** The rows of a ledger, wherever they are stored, and the contracts that they name. */
export interface Rows<Row = StoredRow> {
  /** Rows oldest first, in slices. It may give rows that came later, too. */
  scan(from: number): AsyncIterable<readonly Row[]>;
  /** Rows by their numbers, in order. */
  rowsAt(rows: readonly number[]): Promise<readonly Row[]>;
  /** The body of GET /rules, by its SHA-256 in hex. */
  contractText(digest: string): Promise<string | undefined>;
  /** Rows newest first, in slices. */
  find(query: RowQuery): AsyncIterable<readonly Row[]>;
  /** Rows newest first, as the JSON texts of GET /receipts, in slices of about a millisecond. */
  receipts(query: ReceiptQuery): ReturnType<typeof receiptsOf>;
  /** The administrative events of the rows after one, oldest first. */
  changes(after: number): Promise<readonly RecordedChange[]>;
  /** The number of the first row that is not before a time; if there is none, the number after the last row. */
  firstSince(at: number): Promise<number>;
  /** The total of all events before each position; undefined if the counter is not kept. */
  totals(positions: readonly EventPosition[]): Promise<readonly (string | undefined)[]>;
}

/** A ledger that is read from outside, even while a gate serves it. */
export interface LedgerHistory extends Rows, AsyncDisposable {
  readonly name: string;
  /** The number of its last row when it was opened; 0 if there is none. */
  readonly rows: number;
  readonly tables: Tables;
  /** Returns the digest of a counter's key, as it is in effects. */
  keyDigest(key: string): string;
  /** The counters at the time of opening. They contain no events of rows after `rows`. */
  readonly counters: readonly KeptCounter[];
  /** The verifier key on record for its heads; undefined before the first. */
  readonly signer: string | undefined;
  /** The note about the first key; undefined if there is none, and in a database. */
  readonly firstKey?: string | undefined;
  /** The stored signed checkpoints, at most a second old: the latest, then the latest that witnesses have cosigned. */
  readonly checkpoints: readonly string[];
  readonly hashes: HashReader;
  close(): Promise<void>;
}

/** Reads the rows of a ledger from its tables. */
export function makeLedgerRows(tables: Tables): Rows {
  return {
    scan: (from) => scan(tables, from),
    rowsAt: (rows) => rowsAt(tables, rows),
    contractText: async (digest) => (await tables.at("contracts", [[digest]]))[0]?.text,
    find: (query) => findRows(tables, query),
    receipts: (query) => receiptsOf(tables, query),
    changes: (after) => changesIn(tables, after),
    firstSince: async (at) => firstSince(leafReader(tables), (await tables.head()).rows, at),
    totals: (positions) => totalsBefore(tables, positions),
  };
}

async function changesIn(tables: Tables, after: number): Promise<readonly RecordedChange[]> {
  const found: RecordedChange[] = [];
  const later = { from: after + 1, before: Number.MAX_SAFE_INTEGER, limit: Number.MAX_SAFE_INTEGER };
  for await (const slice of findRows(tables, { ...later, verdict: changeColumns.verdict }))
    found.push(...slice.flatMap(changeOf));
  return found.toReversed();
}

function changeOf({ leaf, evidence }: StoredRow): readonly RecordedChange[] {
  const { seq, at, key, act, contract, mode, engine } = parseLeaf(leaf) ?? {};
  const body = partText(evidence, "input");
  if (seq === undefined || at === undefined || act === undefined || act === null || body === undefined) return [];
  if (typeof mode !== "string" || !isMode(mode) || engine === undefined) return [];
  return [{ seq, at, by: key ?? "", act, body, contract: (contract ?? "").replace(/^sha256:/, ""), mode, engine }];
}

/**
 * Reads what a ledger is now, with the ways to read it.
 *
 * The counters are read before the number of the last row, so they may only miss rows that came in between.
 */
export async function historyOf(
  tables: Tables,
): Promise<Omit<LedgerHistory, "checkpoints" | "close" | typeof Symbol.asyncDispose>> {
  const [{ log, counterSecret, signer, firstKey }, { kept }, { rows }] = await Promise.all([
    tables.description(),
    tables.counters(),
    tables.head(),
  ]);
  return {
    ...makeLedgerRows(tables),
    name: log,
    rows,
    tables,
    keyDigest: keyDigester(counterSecret),
    counters: kept,
    signer,
    firstKey,
    hashes: hashReader(tables),
  };
}

/** Reads the next page while the caller uses the previous one. */
async function* scan(tables: Tables, from: number): AsyncGenerator<readonly StoredRow[]> {
  const read = (next: number): Promise<readonly StoredRow[]> =>
    tables.page("receipts", { after: [next - 1], limit: pageRows });
  let coming = read(from);
  for (;;) {
    const slice = await coming;
    const last = slice.at(-1);
    if (last === undefined) return;
    coming = read(last.seq + 1);
    coming.catch(() => undefined);
    yield slice;
  }
}
