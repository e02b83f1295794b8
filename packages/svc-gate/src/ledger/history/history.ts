import type { StoredRow } from "../entry/row.ts";
import { keyDigester } from "../key-digests.ts";
import type { KeptCounter, Tables } from "../store/tables.ts";
import type { HashReader } from "../tree/tiles.ts";
import { hashReader, rowsAt } from "./table-reads.ts";

/** Rows of one page of a long read: a few milliseconds, so that others are answered between pages. */
const pageRows = 512;

/** The rows of a ledger, wherever they are stored, and the contracts that they name. */
export interface Rows<Row = StoredRow> {
  /** Rows oldest first, in slices. It may give rows that came later, too. */
  scan(from: number): AsyncIterable<readonly Row[]>;
  /** Rows by their numbers, in order. */
  rowsAt(rows: readonly number[]): Promise<readonly Row[]>;
  /** The body of GET /rules, by its SHA-256 in hex. */
  contractText(digest: string): Promise<string | undefined>;
}

/** A ledger that is read from outside, even while a gate serves it. */
export interface LedgerHistory extends Rows {
  readonly name: string;
  /** The number of its last row when it was opened; 0 if there is none. */
  readonly rows: number;
  readonly tables: Tables;
  /** Returns the digest of a counter's key, as it is in effects. */
  keyDigest(key: string): string;
  /** The counters at the time of opening. They contain no events of rows after `rows`. */
  readonly kept: readonly KeptCounter[];
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
export function rowsOf(tables: Tables): Rows {
  return {
    scan: (from) => scan(tables, from),
    rowsAt: (rows) => rowsAt(tables, rows),
    contractText: async (digest) => (await tables.at("contracts", [[digest]]))[0]?.text,
  };
}

/**
 * Reads what a ledger is now, with the ways to read it.
 *
 * The counters are read before the number of the last row, so they may only miss rows that came in between.
 */
export async function historyOf(tables: Tables): Promise<Omit<LedgerHistory, "checkpoints" | "close">> {
  const [{ log, counterSecret, signer, firstKey }, { kept }, { rows }] = await Promise.all([
    tables.description(),
    tables.counters(),
    tables.head(),
  ]);
  return {
    ...rowsOf(tables),
    name: log,
    rows,
    tables,
    keyDigest: keyDigester(counterSecret),
    kept,
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
