import type { DatabaseSync, StatementSync } from "node:sqlite";
import { leafHash } from "../../entry/leaf.ts";
import { serveOpened } from "../calls.ts";
import { blockBits, explain, openForReading, readCounters, readMeta } from "./file.ts";
import { walkStore } from "../../history/walk.ts";
import { Steps, type Pause } from "../steps.ts";
import { structureProblem } from "./structure.ts";
import { listApprovals, openHoldsIn, waitingApprovals } from "./approval-tables.ts";
import { lastOutcomes, takenAmounts } from "./outcome-tables.ts";
import { columns, lastRow, rowOf, rowsAt, seqMax, SqliteWalk, unreadable, type StoredColumns } from "./walk.ts";
import {
  joinHashes,
  openHoldsOf,
  type KeptCounter,
  type ApprovalQuery,
  type EventPosition,
  type OpenHolds,
  type RowQuery,
  type RowSlice,
  type StoredHistory,
  type TakenQuery,
  type Verification,
  type WaitingApprovals,
} from "../store.ts";
import type { Approval } from "../../../approvals/mod.ts";
import type { Anchor } from "../../tree/walk.ts";
import { LedgerRefused } from "../../errors.ts";
import { readApprovals } from "../../entry/approval-rows.ts";
import { changeColumns, resultVerdict, type Broken, type StoredRow, type StoredOutcome } from "../../entry/row.ts";

/** Rows of one slice of a long read: a few milliseconds, so that the log can be copied into the file between slices. */
const sliceRows = 512;
/** Characters of one slice, which limits memory if rows are large. */
const sliceCharacters = 1_000_000;
/** Rows that one statement searches for matches of a filter. */
const windowRows = 65_536;
/** Rows that one statement searches if it must read each leaf: about 40 milliseconds. */
const windowRowsRead = 4096;
/** A slice without a match ends after this time, so that other reads are answered. */
const sliceMs = 20;

/** A connection that only reads, in its own thread, so that it never delays a commit. */
class Reader {
  readonly #folder: string;
  readonly #database: DatabaseSync;
  readonly #upwards: StatementSync;
  readonly #walks = new Map<number, Steps<Verification>>();
  #begun = 0;

  constructor(folder: string, database: DatabaseSync) {
    this.#folder = folder;
    this.#database = database;
    this.#upwards = this.#database.prepare(
      `SELECT ${columns} FROM receipts WHERE seq BETWEEN ? AND ${seqMax} ORDER BY seq LIMIT ?`,
    );
    this.#upwards.setReturnArrays(true);
  }

  read({
    before,
    from = 1,
    limit,
    leafHas = [],
    refused = false,
    checks = false,
    outcome,
    ...equal
  }: RowQuery): RowSlice {
    const { session, tool, verdict } = equal;
    const filters = Object.entries({ session, tool, verdict }).filter(([, value]) => value !== undefined);
    const ofOutcome = outcome === undefined || outcome === "missing" ? [] : [outcome];
    const parameters = [...filters.map(([, value]) => String(value)), ...leafHas, ...ofOutcome];
    // With the literal, the planner knows that the partial index of refusals has every matching row.
    const isIndexed = refused || (verdict !== undefined && verdict !== "ALLOW");
    const where = [
      "seq < ?1",
      "seq >= ?2",
      ...(session === undefined ? [] : [`seq >> ${blockBits} = ?2 >> ${blockBits}`]),
      ...filters.map(([name]) => `${name} = ?`),
      ...leafHas.map(() => "instr(leaf, ?) > 0"),
      ...(outcome === undefined ? [] : [outcomeFilter(outcome)]),
      ...(refused ? ["verdict IN ('BLOCK', 'ESCALATE')"] : []),
      ...(checks ? [`verdict NOT IN ('${changeColumns.verdict}', '${resultVerdict}')`] : []),
      ...(isIndexed ? ["verdict <> 'ALLOW'"] : []),
    ].join(" AND ");
    const statement = this.#database.prepare(
      `SELECT ${columns} FROM receipts WHERE ${where} ORDER BY seq DESC LIMIT ?`,
    );
    statement.setReturnArrays(true);
    const window = leafHas.length > 0 && !isIndexed ? windowRowsRead : windowRows;
    const block = 2 ** blockBits; // A search for a session reads one block of the index after the other.
    const floorOf = (top: number): number => (session === undefined ? top - window : top - 1 - ((top - 1) % block));
    const until = performance.now() + sliceMs;
    let top = Math.min(before, lastRow(this.#database) + 1);
    while (top > from) {
      const floor = Math.max(from, floorOf(top));
      const rows = [...bounded(statement.iterate(top, floor, ...parameters, limit))];
      const last = rows.at(-1);
      if (last !== undefined) return { rows, next: last.seq };
      top = floor;
      if (performance.now() > until) return { rows: [], next: top };
    }
    return { rows: [], next: 0 };
  }

  scan(from: number): readonly StoredRow[] {
    return [...bounded(this.#upwards.iterate(from, sliceRows))];
  }

  describe(): StoredHistory {
    const { log = "", counterSecret = "", signer, firstKey } = readMeta(this.#database) ?? {};
    const kept = this.counters();
    return { log, counterSecret, kept, signer, firstKey, rows: lastRow(this.#database) };
  }

  /** Like `HistoryReader.hashes`. @throws {LedgerRefused} if a hash is missing */
  hashes(level: number, from: number, count: number): Uint8Array {
    const found = level === 0 ? this.leaves(from + 1, count).map(leafHash) : this.#nodes(level, from, count);
    return joinHashes(found, { level, from, count });
  }

  #nodes(level: number, from: number, count: number): readonly string[] {
    return this.#database
      .prepare("SELECT hash FROM nodes WHERE level = ? AND place BETWEEN ? AND ? ORDER BY place")
      .all(level, from, from + count - 1)
      .map(({ hash }) => Buffer.from(hash as Uint8Array).toString("hex"));
  }

  leaves(from: number, count: number): readonly string[] {
    return this.#database
      .prepare("SELECT leaf FROM receipts WHERE seq BETWEEN ? AND ? ORDER BY seq")
      .all(from, from + count - 1)
      .map(({ leaf }) => String(leaf));
  }

  contractText(digest: string): string | undefined {
    const text = this.#database.prepare("SELECT text FROM contracts WHERE digest = ?").get(digest)?.["text"];
    return text === undefined ? undefined : String(text);
  }

  counters(): readonly KeptCounter[] {
    return readCounters(this.#database).kept;
  }

  totals(places: readonly EventPosition[]): readonly (string | undefined)[] {
    const ids = new Map(this.counters().map(({ digest, id }) => [digest, id]));
    const before = this.#database.prepare(
      "SELECT total FROM effects WHERE counter = ? AND key = ? AND (at, seq) < (?, ?) ORDER BY at DESC, seq DESC LIMIT 1",
    );
    return places.map(({ counter, key, at, seq }) => {
      const id = ids.get(counter);
      return id === undefined ? undefined : String(before.get(id, Buffer.from(key, "hex"), at, seq)?.["total"] ?? "0");
    });
  }

  /** Walks from a row to the last row. The thread answers other calls between slices. */
  verify(from: number, anchors: readonly Anchor[], pause?: Pause): Promise<Verification> {
    return walkStore(new SqliteWalk(this.#database, false, pause), { from, anchors });
  }

  /** Begins such a walk. @returns its number, for `goOn` */
  beginWalk(from: number, anchors: readonly Anchor[]): number {
    this.#begun += 1;
    this.#walks.set(this.#begun, new Steps((pause) => this.verify(from, anchors, pause)));
    return this.#begun;
  }

  /** Walks for some milliseconds. @returns undefined if the walk has not ended */
  async goOn(walk: number): Promise<{ readonly result: Verification } | undefined> {
    const steps = this.#walks.get(walk);
    if (steps === undefined) throw new Error("the walk has ended");
    this.#walks.delete(walk);
    const ended = await steps.next();
    if (ended === undefined) this.#walks.set(walk, steps);
    return ended;
  }

  /** Walks only the leaves and their tree: order, links and hashes, but not the evidence and the counters. */
  verifyChain(anchors: readonly Anchor[]): Promise<Verification> {
    return walkStore(new SqliteWalk(this.#database, true), { from: 1, anchors, chainAlone: true });
  }

  /** Checks the parts of the file that rows do not protect. Other calls wait for its long statement. */
  structure(): Broken | undefined {
    const seq = lastRow(this.#database) + 1;
    try {
      const found = structureProblem(this.#database, this.#folder);
      if (found === undefined) return undefined;
      const row = /^row (\d+) missing from index/.exec(found)?.[1];
      const problem = "the file's structure is not as its engine keeps it";
      return { seq: row === undefined ? seq : Number(row), problem, expected: "ok", found };
    } catch (error) {
      return unreadable(error, seq);
    }
  }

  /** Without the calls, which are much larger. */
  approvals(query: ApprovalQuery): readonly Approval[] {
    return readApprovals(listApprovals(this.#database, query));
  }

  outcomes(rows: readonly number[]): readonly StoredOutcome[] {
    return lastOutcomes(this.#database, rows);
  }

  taken(queries: readonly TakenQuery[]): readonly (readonly string[])[] {
    const ids = new Map(this.counters().map(({ digest, id }) => [digest, id]));
    return takenAmounts(
      this.#database,
      queries.map(({ counter, ...query }) => ({ ...query, id: ids.get(counter) ?? -1 })),
    );
  }

  rowsAt(rows: readonly number[]): readonly StoredRow[] {
    return rowsAt(this.#database, rows);
  }

  openHolds(rows: readonly number[]): readonly OpenHolds[] {
    return openHoldsOf(openHoldsIn(this.#database, rows), this.counters());
  }

  waiting(at: number): WaitingApprovals {
    return waitingApprovals(this.#database, at);
  }

  close(): void {
    this.#database.close();
  }
}

/** Rows of observe mode have no outcome, so none is missing. No text within a leaf has quotes without a backslash. */
function outcomeFilter(outcome: string): string {
  const of = "SELECT 1 FROM outcomes WHERE outcomes.seq = receipts.seq";
  return outcome === "missing"
    ? `instr(leaf, '"mode":"observe"') = 0 AND NOT EXISTS (${of})`
    : `EXISTS (${of} AND status = ?)`;
}

/** Reads rows up to the size of a slice. Arrays cost a third of the driver's objects. */
function* bounded(rows: Iterable<unknown>): Generator<StoredRow> {
  let characters = 0;
  for (const columnsOfRow of rows as Iterable<StoredColumns>) {
    const row = rowOf(columnsOfRow);
    yield row;
    characters += row.leaf.length + row.evidence.length;
    if (characters > sliceCharacters) return;
  }
}

function openReader(folder: string): Reader {
  const database = openForReading(folder);
  try {
    if (readMeta(database) === undefined) throw new LedgerRefused(`there is no ledger in ${folder}: its file is empty`);
    return new Reader(folder, database);
  } catch (error) {
    database.close();
    throw error;
  }
}

serveOpened(
  (folder: string) => {
    try {
      return { opened: openReader(folder), said: undefined };
    } catch (error) {
      throw explain(error, folder);
    }
  },
  {
    read: (reader: Reader, query: RowQuery) => reader.read(query),
    scan: (reader: Reader, from: number) => reader.scan(from),
    describe: (reader: Reader) => reader.describe(),
    hashes: (reader: Reader, level: number, from: number, count: number) => reader.hashes(level, from, count),
    leaves: (reader: Reader, from: number, count: number) => reader.leaves(from, count),
    counters: (reader: Reader) => reader.counters(),
    totals: (reader: Reader, places: readonly EventPosition[]) => reader.totals(places),
    approvals: (reader: Reader, query: ApprovalQuery) => reader.approvals(query),
    outcomes: (reader: Reader, rows: readonly number[]) => reader.outcomes(rows),
    taken: (reader: Reader, queries: readonly TakenQuery[]) => reader.taken(queries),
    rowsAt: (reader: Reader, rows: readonly number[]) => reader.rowsAt(rows),
    openHolds: (reader: Reader, rows: readonly number[]) => reader.openHolds(rows),
    waiting: (reader: Reader, at: number) => reader.waiting(at),
    structure: (reader: Reader) => reader.structure(),
    contractText: (reader: Reader, digest: string) => reader.contractText(digest),
    verify: (reader: Reader, from: number, anchors: readonly Anchor[]) => reader.verify(from, anchors),
    beginWalk: (reader: Reader, from: number, anchors: readonly Anchor[]) => reader.beginWalk(from, anchors),
    goOn: (reader: Reader, walk: number) => reader.goOn(walk),
    verifyChain: (reader: Reader, anchors: readonly Anchor[]) => reader.verifyChain(anchors),
  },
);
