import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type { Leaf } from "../../entry/leaf.ts";
import type { Broken, StoredRow } from "../../entry/row.ts";
import { wrongCheck } from "../../entry/verifier.ts";
import {
  sliceEvents,
  type Counters,
  type EventKey,
  type EventQuery,
  type EventTally,
  type FoldedRow,
  type StoredTotals,
} from "../../history/counter-walk.ts";
import { BrokenHere, type StoreReader, type Walked, type WalkedRow, type WalkedSlice } from "../../history/walk.ts";
import type { TreeNode } from "../../tree/merkle.ts";
import { wrongNode, type Levels } from "../../tree/walk.ts";
import { LedgerRefused, type Verification } from "../store.ts";
import { readCounters, readMeta } from "./file.ts";

/** Rows that a walk takes at once: fewer where they are large. */
const walkRows = 128;
/** The same of leaves alone. */
const walkLeaves = 512;
/** Characters of one slice: bounds memory where rows are large. */
const sliceCharacters = 1_000_000;

/** A number beyond it is no row's, and one that the driver throws on in the midst of a read, which would stay open. */
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

/** The types of columns are the tables' own, unless the file was changed. */
function isRow([seq, leaf, evidence, session, tool, verdict]: StoredColumns, leavesAlone: boolean): boolean {
  if (typeof seq !== "number" || typeof leaf !== "string") return false;
  if (leavesAlone) return true;
  const isCall = typeof tool === "string" && (session === null || typeof session === "string");
  return isCall && typeof evidence === "string" && typeof verdict === "string";
}

export function lastRow(database: DatabaseSync): number {
  return Number(database.prepare("SELECT cast(max(seq) AS TEXT) AS last FROM receipts").get()?.["last"] ?? 0);
}

/** What cannot be read at all is broken there; a disk that fails is a fault of the disk and says nothing of the ledger. */
export function unreadable(error: unknown, seq: number): Broken {
  const { errcode, message } = error as Error & { readonly errcode?: number };
  if ([7, 10, 13].includes((errcode ?? 0) & 0xff)) throw error;
  return { seq, problem: "the ledger's file cannot be read from here on", expected: "a row", found: message };
}

interface Statements {
  readonly rows: StatementSync;
  readonly node: StatementSync;
  readonly leaf: StatementSync;
  readonly previousTotal: StatementSync;
  readonly total: StatementSync;
  readonly version: StatementSync;
}

function prepare(database: DatabaseSync, leavesAlone: boolean): Statements {
  const rows = database.prepare(
    `SELECT ${leavesAlone ? "seq, leaf" : columns} FROM receipts WHERE seq BETWEEN ? AND ${seqMax} ORDER BY seq LIMIT ?`,
  );
  rows.setReturnArrays(true);
  return {
    rows,
    node: database.prepare("SELECT hash FROM nodes WHERE level = ? AND place = ?"),
    leaf: database.prepare("SELECT leaf FROM receipts WHERE seq = ?"),
    previousTotal: database.prepare(
      "SELECT total FROM effects WHERE counter = ? AND key = ? AND (at, seq) < (?, ?) ORDER BY at DESC, seq DESC LIMIT 1",
    ),
    total: database.prepare(
      "SELECT total FROM effects WHERE counter = ? AND key = ? AND at = ? AND seq = ? AND folded IS NULL",
    ),
    version: database.prepare("PRAGMA data_version"),
  };
}

/** Reads a file for a walk. One statement sees one state. */
export class SqliteWalk implements StoreReader {
  readonly #database: DatabaseSync;
  readonly #leavesAlone: boolean;
  #prepared: Statements | undefined;
  #count: number;
  #counters: { readonly version: unknown; readonly counters: Counters } | undefined;
  /** The row that is read, or that leads to what is read. */
  #at = 1;

  constructor(database: DatabaseSync, leavesAlone: boolean) {
    this.#database = database;
    this.#leavesAlone = leavesAlone;
    this.#count = leavesAlone ? walkLeaves : walkRows;
  }

  get #statements(): Statements {
    return (this.#prepared ??= prepare(this.#database, this.#leavesAlone));
  }

  describe(): Promise<Pick<Verification, "log" | "rows"> | Broken> {
    return this.#read(() => {
      try {
        return { log: readMeta(this.#database)?.log ?? "", rows: this.#lastReadable() };
      } catch (error) {
        if (!(error instanceof LedgerRefused)) throw error;
        const expected = "the description that it was made with";
        return { seq: 1, problem: error.message, expected, found: "another" };
      }
    });
  }

  /** Where the last row cannot be read, the walk comes to it. */
  #lastReadable(): number {
    try {
      return lastRow(this.#database);
    } catch (error) {
      unreadable(error, this.#at);
      return 0;
    }
  }

  last(): Promise<number> {
    return this.#read(() => lastRow(this.#database));
  }

  async next(from: number): Promise<WalkedSlice> {
    await setImmediate(); // Other calls are answered between slices.
    this.#at = from;
    return this.#read(() => {
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
      return { rows, broken, counters: this.#countersNow() };
    });
  }

  /** Of rows that cannot be read together each is read alone, so that the damaged one is named. */
  #stored(from: number, count: number): readonly StoredColumns[] {
    try {
      return this.#statements.rows.all(from, count) as unknown as readonly StoredColumns[];
    } catch (error) {
      if (count === 1) throw error;
      return this.#stored(from, 1);
    }
  }

  checks(leaves: readonly Leaf[]): Promise<Broken | undefined> {
    return this.#each(leaves, (leaf) =>
      wrongCheck(leaf, (seq) => {
        const text = this.#statements.leaf.get(seq)?.["leaf"];
        return text === undefined ? undefined : String(text);
      }),
    );
  }

  nodes(nodes: readonly TreeNode[]): Promise<Broken | undefined> {
    const last = nodes.map((node) => ({ node, seq: (node.index + 1) * 256 ** node.level }));
    return this.#each(last, ({ node }) => {
      const kept = this.#statements.node.get(node.level, node.index)?.["hash"];
      return wrongNode(node, kept instanceof Uint8Array ? kept : undefined);
    });
  }

  contract(digest: string, seq: number): Promise<string | undefined> {
    this.#at = seq;
    return this.#read(() => {
      const text = this.#database.prepare("SELECT text FROM contracts WHERE digest = ?").get(digest)?.["text"];
      return text === undefined ? undefined : String(text);
    });
  }

  end({ link: { seq } }: Walked): Promise<Broken | undefined> {
    this.#at = seq + 1;
    return this.#read(() => {
      const last = lastRow(this.#database);
      if (last <= seqMax) return undefined;
      const problem = "a row is missing or out of place";
      return { seq: seq + 1, problem, expected: `row ${seq + 1}`, found: `row ${last}` };
    });
  }

  counters(): Promise<Counters> {
    return this.#read(() => this.#countersNow());
  }

  /** They are read again after a commit of another connection. */
  #countersNow(): Counters {
    const version = this.#statements.version.get()?.["data_version"];
    const known = this.#counters?.version === version ? this.#counters : undefined;
    this.#counters = known ?? { version, counters: readCounters(this.#database) };
    return this.#counters.counters;
  }

  events(queries: readonly EventQuery[]): Promise<readonly StoredTotals[]> {
    return this.#read(() =>
      queries.map(({ key, withBefore }) => {
        const [counter, under, at, seq] = key;
        this.#at = seq;
        const before = withBefore ? this.#statements.previousTotal.get(counter, under, at, seq)?.["total"] : undefined;
        const total = this.#statements.total.get(counter, under, at, seq)?.["total"];
        return { total: textOf(total), before: textOf(before) };
      }),
    );
  }

  async tally(after: EventKey | undefined, through: number): Promise<EventTally> {
    await setImmediate();
    return this.#read(() => {
      const end = this.#database
        .prepare(
          `SELECT counter, key, at, seq FROM effects ${between(after, undefined)}
           ORDER BY counter, key, at, seq LIMIT 1 OFFSET ${sliceEvents - 1}`,
        )
        .get(...(after ?? []));
      const to = end && keyOf(end);
      const row = this.#database
        .prepare(
          `SELECT count(*) FILTER (WHERE folded IS NULL AND seq <= ?) AS live, count(folded) AS folded,
             count(*) FILTER (WHERE seq > (SELECT coalesce(max(seq), 0) FROM receipts)) AS beyond,
             (SELECT coalesce(max(seq), 0) FROM receipts) AS last
           FROM effects ${between(after, to)}`,
        )
        .get(through, ...(after ?? []), ...(to ?? []));
      const [live = 0, folded = 0, beyond = 0, last = 0] = Object.values(row ?? {}).map(Number);
      return { to, live, folded, beyond, last };
    });
  }

  folds(after: EventKey | undefined, to: EventKey | undefined): Promise<readonly FoldedRow[]> {
    return this.#read(() =>
      this.#database
        .prepare(
          `SELECT counter, key, at, seq, total, folded FROM effects ${between(after, to)} AND folded IS NOT NULL`,
        )
        .all(...(after ?? []), ...(to ?? []))
        .map((row) => {
          const key = keyOf(row);
          const before = textOf(this.#statements.previousTotal.get(...key)?.["total"]);
          return { key, total: String(row["total"]), seal: String(row["folded"]), before };
        }),
    );
  }

  recorded(after: number): Promise<readonly (readonly [seq: number, count: number])[]> {
    return this.#read(() =>
      this.#database
        .prepare(
          `SELECT cast(seq AS TEXT) AS seq, count(*) AS count FROM effects WHERE folded IS NULL AND effects.seq > ?
           GROUP BY effects.seq ORDER BY effects.seq LIMIT ${sliceEvents}`,
        )
        .all(after)
        .map(({ seq, count }) => [Number(seq), Number(count)] as const),
    );
  }

  evidence(seq: number): Promise<string | undefined> {
    return this.#read(() =>
      textOf(this.#database.prepare("SELECT evidence FROM receipts WHERE seq = ?").get(seq)?.["evidence"]),
    );
  }

  contracts(after: string | undefined): Promise<readonly (readonly [digest: string, text: string])[]> {
    return this.#read(() =>
      this.#database
        .prepare("SELECT digest, text FROM contracts WHERE ?1 IS NULL OR digest > ?1 ORDER BY digest LIMIT 16")
        .all(after ?? null)
        .map(({ digest, text }) => [String(digest), String(text)] as const),
    );
  }

  levels(): Promise<Levels> {
    return this.#read(() => {
      const rows = this.#database
        .prepare(
          `SELECT level, count(*) AS count, (SELECT max(seq) FROM receipts) AS last FROM nodes GROUP BY level
           UNION ALL SELECT NULL, 0, max(seq) FROM receipts`,
        )
        .all();
      const counts = rows.slice(0, -1).map(({ level, count }) => [Number(level), Number(count)] as const);
      return { counts: new Map(counts), last: Number(rows.at(-1)?.["last"] ?? 0) };
    });
  }

  #each<Item extends { readonly seq: number }>(
    items: readonly Item[],
    look: (item: Item) => Broken | undefined,
  ): Promise<Broken | undefined> {
    return this.#read(() => {
      for (const item of items) {
        this.#at = item.seq;
        const broken = look(item);
        if (broken !== undefined) return broken;
      }
      return undefined;
    });
  }

  async #read<Value>(work: () => Value): Promise<Value> {
    try {
      return await work();
    } catch (error) {
      throw new BrokenHere(unreadable(error, this.#at));
    }
  }
}

function textOf(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : `${value as number | string}`;
}

function keyOf(row: Readonly<Record<string, unknown>>): EventKey {
  const { counter, key, at, seq } = row;
  if (!(key instanceof Uint8Array)) throw new Error("a column is not of its type");
  return [Number(counter), key, Number(at), Number(seq)];
}

function between(after: EventKey | undefined, to: EventKey | undefined): string {
  const from = after === undefined ? "" : " AND (counter, key, at, seq) > (?, ?, ?, ?)";
  const upTo = to === undefined ? "" : " AND (counter, key, at, seq) <= (?, ?, ?, ?)";
  return `WHERE true${from}${upTo}`;
}
