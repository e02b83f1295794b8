import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { keyDigester } from "../../key-digests.ts";
import type { Leaf } from "../../entry/leaf.ts";
import type { StoredRepeat } from "../../entry/repeat.ts";
import type { Broken, StoredRow, StoredOutcome } from "../../entry/row.ts";
import { wrongCheck } from "../../entry/verifier.ts";
import {
  keyOf,
  sliceEvents,
  sliceRows,
  textOf,
  type Counters,
  type EventKey,
  type EventQuery,
  type EventTally,
  type FoldedRow,
  type RecordedCount,
  type StoredTotals,
} from "../../history/counter-walk.ts";
import type { TabledApproval } from "../../history/approval-walk.ts";
import type { TabledTaken } from "../../history/outcome-walk.ts";
import { BrokenHere, type StoreReader, type Walked, type WalkedRow, type WalkedSlice } from "../../history/walk.ts";
import type { TreeNode } from "../../tree/merkle.ts";
import { wrongNode, type Levels } from "../../tree/walk.ts";
import type { Pause } from "../steps.ts";
import type { Verification } from "../store.ts";
import { LedgerRefused } from "../../errors.ts";
import { readCounters, readMeta } from "./file.ts";

/** Rows that a walk reads at once; fewer if rows are large. */
const walkRows = 128;
/** Leaves that a walk reads at once if it reads only leaves. */
const walkLeaves = 512;
/** Characters of one slice, which limits memory if rows are large. */
const sliceCharacters = 1_000_000;

/** The highest row number. The driver throws during a read of a larger one, and the read would stay open. */
export const seqMax: number = Number.MAX_SAFE_INTEGER;

export const columns = "seq, leaf, evidence, session, tool, verdict";

export type StoredColumns = readonly [
  seq: number,
  leaf: string,
  evidence: string,
  session: string | null,
  tool: string,
  verdict: string,
];

export function rowOf([seq, leaf, evidence, session, tool, verdict]: StoredColumns): StoredRow {
  return { seq, leaf, evidence, session, tool, verdict };
}

/** True if the columns have the types of the table; a changed file may have others. */
function isRow([seq, leaf, evidence, session, tool, verdict]: StoredColumns, leavesAlone: boolean): boolean {
  if (typeof seq !== "number" || typeof leaf !== "string") return false;
  if (leavesAlone) return true;
  const isCall = typeof tool === "string" && (session === null || typeof session === "string");
  return isCall && typeof evidence === "string" && typeof verdict === "string";
}

/** Reads rows by their numbers. */
export function rowsAt(database: DatabaseSync, rows: readonly number[]): readonly StoredRow[] {
  const row = database.prepare(`SELECT ${columns} FROM receipts WHERE seq = ?`);
  row.setReturnArrays(true);
  return rows.flatMap((seq) => {
    const found = row.get(seq) as unknown as StoredColumns | undefined;
    return found === undefined ? [] : [rowOf(found)];
  });
}

export function lastRow(database: DatabaseSync): number {
  return Number(database.prepare("SELECT cast(max(seq) AS TEXT) AS last FROM receipts").get()?.["last"] ?? 0);
}

/** Reports the row from which the file cannot be read. A failing disk is a fault and does not mean a broken ledger. */
export function unreadable(error: unknown, seq: number): Broken {
  const { errcode, message } = error as Error & { readonly errcode?: number };
  if ([7, 10, 13].includes((errcode ?? 0) & 0xff)) throw error;
  return { seq, problem: "the ledger's file cannot be read from here on", expected: "a row", found: message };
}

/** Reads a file for a walk. Each statement sees one state of the file. */
export class SqliteWalk implements StoreReader {
  readonly #database: DatabaseSync;
  readonly #leavesAlone: boolean;
  readonly #pause: Pause;
  readonly #statements = new Map<string, StatementSync>();
  #count: number;
  #digest: ((text: string) => string) | undefined;
  #counters: { readonly version: unknown; readonly counters: Counters } | undefined;
  /** The last row at the beginning of the walk. */
  #rows = 0;
  /** The row that the walk reads, or whose data the walk reads. */
  #at = 1;

  /** @param pause called before each slice; by default the thread answers other calls then */
  constructor(database: DatabaseSync, leavesAlone: boolean, pause: Pause = () => setImmediate()) {
    this.#database = database;
    this.#leavesAlone = leavesAlone;
    this.#pause = pause;
    this.#count = leavesAlone ? walkLeaves : walkRows;
  }

  /** @throws {BrokenHere} if the file cannot be read */
  #reading<Value>(work: () => Value): Value {
    try {
      return work();
    } catch (error) {
      throw new BrokenHere(unreadable(error, this.#at));
    }
  }

  #ask(sql: string, ...values: readonly SQLInputValue[]): readonly (readonly unknown[])[] {
    return this.#reading(() => {
      let statement = this.#statements.get(sql);
      if (statement === undefined) {
        statement = this.#database.prepare(sql);
        statement.setReturnArrays(true);
        this.#statements.set(sql, statement);
      }
      return statement.all(...values) as unknown as readonly (readonly unknown[])[];
    });
  }

  async describe(): Promise<Pick<Verification, "log" | "rows"> | Broken> {
    try {
      const log = readMeta(this.#database)?.log ?? "";
      // If the last row cannot be read, the walk reports it later.
      this.#rows = await this.last().catch((error: unknown) => (error instanceof BrokenHere ? 0 : fail(error)));
      return { log, rows: this.#rows };
    } catch (error) {
      if (!(error instanceof LedgerRefused)) throw error;
      const expected = "the description that it was made with";
      return { seq: 1, problem: error.message, expected, found: "another" };
    }
  }

  async last(): Promise<number> {
    return this.#reading(() => lastRow(this.#database));
  }

  async next(from: number): Promise<WalkedSlice> {
    // If it paused for rows that come meanwhile, it might never reach the last one.
    await (from <= this.#rows ? this.#pause() : setImmediate());
    this.#at = from;
    const found = this.#stored(from === 1 ? Number.MIN_SAFE_INTEGER : from, this.#count);
    const stray = found.findIndex((each) => !isRow(each, this.#leavesAlone));
    const whole = stray === -1 ? found : found.slice(0, stray);
    const rows: readonly WalkedRow[] = whole.map((each) =>
      this.#leavesAlone ? { seq: each[0], leaf: each[1] } : rowOf(each),
    );
    const broken = stray === -1 ? undefined : unreadable(new Error("a column is not of its type"), from + stray);
    if (this.#leavesAlone) return { rows, broken };
    const characters = rows.reduce((sum, { evidence = "" }) => sum + evidence.length, 1);
    this.#count = Math.max(1, Math.min(walkRows, Math.floor((rows.length * sliceCharacters) / characters)));
    return { rows, broken, counters: await this.counters() };
  }

  /** Reads single rows if several cannot be read together, so that the report names the damaged row. */
  #stored(from: number, count: number): readonly StoredColumns[] {
    const named = this.#leavesAlone ? "seq, leaf" : columns;
    const sql = `SELECT ${named} FROM receipts WHERE seq BETWEEN ? AND ${seqMax} ORDER BY seq LIMIT ?`;
    try {
      return this.#ask(sql, from, count) as unknown as readonly StoredColumns[];
    } catch (error) {
      if (count === 1) throw error;
      return this.#stored(from, 1);
    }
  }

  async checks(leaves: readonly Leaf[]): Promise<Broken | undefined> {
    for (const leaf of leaves) {
      this.#at = leaf.seq;
      const leafAt = (seq: number): string | undefined =>
        textOf(this.#ask("SELECT leaf FROM receipts WHERE seq = ?", seq)[0]?.[0]);
      const broken = wrongCheck(leaf, leafAt);
      if (broken !== undefined) return broken;
    }
    return undefined;
  }

  async nodes(nodes: readonly TreeNode[]): Promise<Broken | undefined> {
    for (const node of nodes) {
      this.#at = (node.index + 1) * 256 ** node.level;
      const [row] = this.#ask("SELECT hash FROM nodes WHERE level = ? AND place = ?", node.level, node.index);
      const broken = wrongNode(node, row?.[0] instanceof Uint8Array ? row[0] : undefined);
      if (broken !== undefined) return broken;
    }
    return undefined;
  }

  async contract(digest: string, seq: number): Promise<string | undefined> {
    this.#at = seq;
    return textOf(this.#ask("SELECT text FROM contracts WHERE digest = ?", digest)[0]?.[0]);
  }

  async end({ link: { seq } }: Walked): Promise<Broken | undefined> {
    this.#at = seq + 1;
    const last = await this.last();
    if (last <= seqMax) return undefined;
    const problem = "a row is missing or out of place";
    return { seq: seq + 1, problem, expected: `row ${seq + 1}`, found: `row ${last}` };
  }

  /** Reads the counters again only after a commit of another connection. */
  async counters(): Promise<Counters> {
    const version = this.#ask("PRAGMA data_version")[0]?.[0];
    const known = this.#counters?.version === version ? this.#counters : undefined;
    this.#counters = known ?? { version, counters: this.#reading(() => readCounters(this.#database)) };
    return this.#counters.counters;
  }

  async events(queries: readonly EventQuery[]): Promise<readonly StoredTotals[]> {
    return queries.map(({ key, withBefore }) => {
      this.#at = key[3];
      const sql = "SELECT total FROM effects WHERE counter = ? AND key = ? AND at = ? AND seq = ? AND folded IS NULL";
      const before = withBefore ? this.#totalBefore(key) : undefined;
      return { total: textOf(this.#ask(sql, ...key)[0]?.[0]), before };
    });
  }

  #totalBefore(key: EventKey): string | undefined {
    const sql = `SELECT total FROM effects WHERE counter = ? AND key = ? AND (at, seq) < (?, ?)
      ORDER BY at DESC, seq DESC LIMIT 1`;
    return textOf(this.#ask(sql, ...key)[0]?.[0]);
  }

  async tally(after: EventKey | undefined, through: number): Promise<EventTally> {
    await this.#pause();
    const [end] = this.#ask(
      `SELECT counter, key, at, seq FROM effects ${between(after, undefined)}
       ORDER BY counter, key, at, seq LIMIT 1 OFFSET ${sliceEvents - 1}`,
      ...(after ?? []),
    );
    const to = end && this.#reading(() => keyOf(end));
    const [row = []] = this.#ask(
      `SELECT count(*) FILTER (WHERE folded IS NULL AND seq <= ?), count(folded),
         count(*) FILTER (WHERE seq > (SELECT coalesce(max(seq), 0) FROM receipts)),
         (SELECT coalesce(max(seq), 0) FROM receipts)
       FROM effects ${between(after, to)}`,
      through,
      ...(after ?? []),
      ...(to ?? []),
    );
    const [live = 0, folded = 0, beyond = 0, last = 0] = row.map(Number);
    return { to, live, folded, beyond, last };
  }

  async folds(after: EventKey | undefined, to: EventKey | undefined): Promise<readonly FoldedRow[]> {
    const sql = `SELECT counter, key, at, seq, total, folded FROM effects ${between(after, to)} AND folded IS NOT NULL`;
    const rows = this.#ask(sql, ...(after ?? []), ...(to ?? []));
    return rows.map((row) => {
      const key = this.#reading(() => keyOf(row));
      return { key, total: String(row[4]), checksum: String(row[5]), before: this.#totalBefore(key) };
    });
  }

  async recorded(after: number): Promise<readonly RecordedCount[]> {
    const sql = `SELECT cast(seq AS TEXT), count(*), (SELECT evidence FROM receipts WHERE receipts.seq = effects.seq)
      FROM effects WHERE folded IS NULL AND seq > ? GROUP BY seq ORDER BY seq LIMIT ${sliceRows}`;
    return this.#ask(sql, after).map(([seq, count, evidence]) => [Number(seq), Number(count), textOf(evidence)]);
  }

  async contracts(after: string | undefined): Promise<readonly (readonly [digest: string, text: string])[]> {
    const sql = "SELECT digest, text FROM contracts WHERE ?1 IS NULL OR digest > ?1 ORDER BY digest LIMIT 16";
    return this.#ask(sql, after ?? null).map(([digest, text]) => [String(digest), String(text)]);
  }

  digest(text: string): string {
    this.#digest ??= keyDigester(readMeta(this.#database)?.counterSecret ?? "");
    return this.#digest(text);
  }

  async approvalsAt(rows: readonly number[]): Promise<readonly TabledApproval[]> {
    const { kept } = await this.counters();
    const digests = new Map(kept.map(({ id, digest }) => [id, digest]));
    return rows.flatMap((row) => {
      this.#at = row;
      const holds = this.#ask("SELECT counter, key, at, amount FROM holds WHERE seq = ?", row);
      const found = this.#ask("SELECT attach, key, place, status, ends, record FROM approvals WHERE seq = ?", row);
      return found.map(([attach, key, place, status, ends, record]) => ({
        row,
        attach: hexOf(attach),
        key: textOf(key) ?? "?",
        place: hexOf(place),
        status: textOf(status) ?? "?",
        ends: ends === null ? null : Number(ends),
        record: textOf(record) ?? "?",
        holds: holds.map(([counter, of, at, amount]) => ({
          counter: digests.get(Number(counter)) ?? "?",
          key: hexOf(of),
          at: Number(at),
          amount: textOf(amount) ?? "?",
        })),
      }));
    });
  }

  async approvalRows(after: number): Promise<readonly (Pick<StoredRow, "seq"> & Partial<StoredRow>)[]> {
    await this.#pause();
    this.#at = after;
    const sql = `SELECT approvals.seq, leaf, evidence, session, tool, verdict FROM approvals LEFT JOIN receipts USING (seq)
      WHERE approvals.seq > ? ORDER BY approvals.seq LIMIT ${sliceRows}`;
    const found = this.#ask(sql, after) as unknown as readonly StoredColumns[];
    return found.map((each) => (isRow(each, false) ? rowOf(each) : { seq: each[0] }));
  }

  async strayHold(): Promise<number | undefined> {
    const sql = `SELECT min(seq) FROM holds WHERE seq NOT IN
      (SELECT seq FROM approvals WHERE status IN ('pending', 'approved'))`;
    const seq = this.#ask(sql)[0]?.[0];
    return seq === null ? undefined : Number(seq);
  }

  async outcomesAt(rows: readonly number[]): Promise<readonly StoredOutcome[]> {
    return rows.flatMap((row) =>
      this.#ask("SELECT seq, outcome, status FROM outcomes WHERE seq = ?", row).map(outcomeOf),
    );
  }

  async outcomesAfter(row: number): Promise<readonly StoredOutcome[]> {
    await this.#pause();
    const sql = `SELECT seq, outcome, status FROM outcomes WHERE seq > ? ORDER BY seq LIMIT ${sliceRows}`;
    return this.#ask(sql, row).map(outcomeOf);
  }

  async takenAt(keys: readonly EventKey[]): Promise<readonly TabledTaken[]> {
    const sql = `SELECT ${takenColumns} FROM withdrawals WHERE counter = ? AND key = ? AND at = ? AND seq = ?`;
    return keys.flatMap((key) => this.#ask(sql, ...key).map((row) => this.#reading(() => takenOf(row))));
  }

  async takenAfter(key: EventKey | undefined): Promise<readonly TabledTaken[]> {
    await this.#pause();
    const sql = `SELECT ${takenColumns} FROM withdrawals ${between(key, undefined)}
      ORDER BY counter, key, at, seq LIMIT ${sliceRows}`;
    return this.#ask(sql, ...(key ?? [])).map((row) => this.#reading(() => takenOf(row)));
  }

  async repeats(after: string | undefined): Promise<readonly StoredRepeat[]> {
    const sql = `SELECT id, at, record FROM repeats WHERE ?1 IS NULL OR id > ?1 ORDER BY id LIMIT ${sliceRows}`;
    const found = this.#ask(sql, after === undefined ? null : Buffer.from(after, "hex"));
    return found.map(([id, at, record]) => ({ id: hexOf(id), at: Number(at), record: textOf(record) ?? "?" }));
  }

  async rowsAt(rows: readonly number[]): Promise<readonly StoredRow[]> {
    return rows.flatMap((row) => {
      this.#at = row;
      const found = this.#ask(`SELECT ${columns} FROM receipts WHERE seq = ?`, row);
      return (found as unknown as readonly StoredColumns[]).map(rowOf);
    });
  }

  async levels(): Promise<Levels> {
    const rows = this.#ask(
      "SELECT level, count(*), 0 FROM nodes GROUP BY level UNION ALL SELECT NULL, 0, max(seq) FROM receipts",
    );
    const counts = rows.slice(0, -1).map(([level, count]) => [Number(level), Number(count)] as const);
    return { counts: new Map(counts), last: Number(rows.at(-1)?.[2] ?? 0) };
  }
}

const takenColumns = "counter, key, at, seq, amount, outcome, folded";

function takenOf(row: readonly unknown[]): TabledTaken {
  const [amount, outcome, folded] = row.slice(4);
  return {
    key: keyOf(row),
    amount: textOf(amount) ?? "?",
    outcome: Number(outcome),
    checksum: folded === null ? null : (textOf(folded) ?? "?"),
  };
}

function outcomeOf([seq, row, status]: readonly unknown[]): StoredOutcome {
  return { seq: Number(seq), row: Number(row), status: textOf(status) ?? "?" };
}

function hexOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : "?";
}

function fail(error: unknown): never {
  throw error;
}

function between(after: EventKey | undefined, to: EventKey | undefined): string {
  const from = after === undefined ? "" : " AND (counter, key, at, seq) > (?, ?, ?, ?)";
  const upTo = to === undefined ? "" : " AND (counter, key, at, seq) <= (?, ?, ?, ?)";
  return `WHERE true${from}${upTo}`;
}
