import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { leafHash } from "../../entry/leaf.ts";
import { firstLink, linkOf, verifyLink, wrongCheck, type Link } from "../../entry/verifier.ts";
import { blame, parted, tooShort } from "../anchors.ts";
import { serveOpened } from "../calls.ts";
import type { KeptCounter } from "../store.ts";
import { explain, openForReading, readCounters, readMeta } from "./file.ts";
import { structureProblem } from "./structure.ts";
import { NodeWalk, Walk } from "./walk.ts";
import { joinHashes, LedgerRefused } from "../store.ts";
import type { Anchor, EventPlace, RowQuery, RowSlice, StoredHistory, Verification } from "../store.ts";
import { changeColumns, resultVerdict, type Broken, type StoredRow } from "../../entry/row.ts";

/** Rows of one slice of a long read: a few milliseconds, so that the write-ahead log can be folded back in between. */
const sliceRows = 512;
/** Rows that a walk takes at once: fewer where they are large. */
const walkRows = 128;
/** Characters of one slice: bounds memory where rows are large. */
const sliceCharacters = 1_000_000;
/** Rows that one statement looks through for those that a filter lets pass. */
const windowRows = 65_536;
/** The same if no index helps and each leaf is read: about 40 milliseconds. */
const windowRowsRead = 4096;
/** A slice that has found nothing yet ends after this, so that other reads have their turn. */
const sliceMs = 20;

/** A number beyond it is no row's, and one that the driver throws on in the midst of a read, which would stay open. */
const seqMax = Number.MAX_SAFE_INTEGER;

const columns = "seq, leaf, evidence, session, tool, verdict";

/** A connection that only reads, in a thread of its own: it never holds up a commit. */
class Reader {
  readonly #folder: string;
  readonly #database: DatabaseSync;
  readonly #upwards: StatementSync;

  constructor(folder: string, database: DatabaseSync) {
    this.#folder = folder;
    this.#database = database;
    this.#upwards = this.#database.prepare(
      `SELECT ${columns} FROM receipts WHERE seq BETWEEN ? AND ${seqMax} ORDER BY seq LIMIT ?`,
    );
    this.#upwards.setReturnArrays(true);
  }

  read({ before, from = 1, limit, leafHas = [], refused = false, checks = false, ...equal }: RowQuery): RowSlice {
    const { session, tool, verdict } = equal;
    const filters = Object.entries({ session, tool, verdict }).filter(([, value]) => value !== undefined);
    const parameters = [...filters.map(([, value]) => String(value)), ...leafHas];
    // The literal lets the planner see that the partial index of refusals has every row that is asked for.
    const isIndexed = refused || (verdict !== undefined && verdict !== "ALLOW");
    const where = [
      "seq < ?",
      "seq >= ?",
      ...filters.map(([name]) => `${name} = ?`),
      ...leafHas.map(() => "instr(leaf, ?) > 0"),
      ...(refused ? ["verdict IN ('BLOCK', 'ESCALATE')"] : []),
      ...(checks ? [`verdict NOT IN ('${changeColumns.verdict}', '${resultVerdict}')`] : []),
      ...(isIndexed ? ["verdict <> 'ALLOW'"] : []),
    ].join(" AND ");
    const statement = this.#database.prepare(
      `SELECT ${columns} FROM receipts WHERE ${where} ORDER BY seq DESC LIMIT ?`,
    );
    statement.setReturnArrays(true);
    const window = leafHas.length > 0 && !isIndexed ? windowRowsRead : windowRows;
    const until = performance.now() + sliceMs;
    let top = Math.min(before, this.#last() + 1);
    while (top > from) {
      const floor = Math.max(from, top - window);
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
    return { log, counterSecret, kept, signer, firstKey, rows: this.#last() };
  }

  /** Of level 0 the hashes of leaves, above it the roots of full tiles below. @throws unless all are there */
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

  totals(places: readonly EventPlace[]): readonly (string | undefined)[] {
    const ids = new Map(this.counters().map(({ digest, id }) => [digest, id]));
    const before = this.#database.prepare(
      "SELECT total FROM effects WHERE counter = ? AND key = ? AND (at, seq) < (?, ?) ORDER BY at DESC, seq DESC LIMIT 1",
    );
    return places.map(({ counter, key, at, seq }) => {
      const id = ids.get(counter);
      return id === undefined ? undefined : String(before.get(id, Buffer.from(key, "hex"), at, seq)?.["total"] ?? "0");
    });
  }

  /** Walks from row `from` to the last row that is there at the end. Between slices other calls are answered. */
  async verify(from: number, anchors: readonly Anchor[]): Promise<Verification> {
    const meta = this.#meta();
    if ("problem" in meta) return { log: "", rows: 0, head: firstLink, broken: meta };
    const { log } = meta;
    let link = firstLink;
    try {
      const rows = this.#last();
      link = from > 1 ? this.#linkBefore(from) : firstLink;
      const walk = new Walk(this.#database, { log, from, anchors });
      let count = walkRows;
      for (let more = true; more;) {
        const slice = this.#rows(link.seq === 0 ? Number.MIN_SAFE_INTEGER : link.seq + 1, count);
        let characters = 1;
        for (const columnsOfRow of slice) {
          const row = rowOf(columnsOfRow);
          const next = walk.step(row, link);
          const broken =
            "problem" in next
              ? blame(next, link, anchors, this.scan(next.seq))
              : (parted(next, anchors) ?? walk.parted());
          if ("problem" in next || broken !== undefined) return { log, rows, head: link, broken };
          link = next;
          characters += row.evidence.length;
        }
        more = slice.length > 0;
        count = Math.max(1, Math.min(walkRows, Math.floor((slice.length * sliceCharacters) / characters)));
        await setImmediate();
      }
      const broken =
        strayRow(this.#last(), link) ??
        tooShort(link, anchors) ??
        walk.lacking ??
        (from > 1 ? undefined : await walk.rest(link.seq));
      return { log, rows: Math.max(rows, link.seq), head: link, broken };
    } catch (error) {
      return { log, rows: link.seq, head: link, broken: unreadable(error, link.seq + 1) };
    }
  }

  /** Of rows that cannot be read together each is read alone, so that the damaged one is named. */
  #rows(from: number, count: number): readonly StoredColumns[] {
    try {
      return this.#upwards.all(from, count) as unknown as readonly StoredColumns[];
    } catch (error) {
      if (count === 1) throw error;
      return this.#rows(from, 1);
    }
  }

  /** The same over the leaves and their tree alone: order, links and hashes, nothing of what they commit to. */
  async verifyChain(anchors: readonly Anchor[]): Promise<Verification> {
    const meta = this.#meta();
    if ("problem" in meta) return { log: "", rows: 0, head: firstLink, broken: meta };
    const { log } = meta;
    const leaves = this.#database.prepare(
      `SELECT seq, leaf FROM receipts WHERE seq BETWEEN ? AND ${seqMax} ORDER BY seq LIMIT ?`,
    );
    leaves.setReturnArrays(true);
    const tree = new NodeWalk(this.#database, anchors);
    let link = firstLink;
    for (let more = true; more;) {
      const { seq } = link;
      const slice = leaves.all(seq === 0 ? Number.MIN_SAFE_INTEGER : seq + 1, sliceRows) as unknown as [
        number,
        string,
      ][];
      for (const [number, leaf] of slice) {
        const next = verifyLink({ seq: number, leaf }, link, log);
        const broken =
          "problem" in next
            ? next
            : (parted(next.link, anchors) ??
              wrongCheck(next.leaf, (at) => this.leaves(at, 1)[0]) ??
              tree.step(next.link) ??
              tree.parted());
        if ("problem" in next || broken !== undefined) return { log, rows: this.#last(), head: link, broken };
        link = next.link;
      }
      more = link.seq > seq;
      await setImmediate();
    }
    const broken = strayRow(this.#last(), link) ?? tooShort(link, anchors) ?? tree.rest(link.seq);
    return { log, rows: link.seq, head: link, broken };
  }

  /** What is wrong with the file beside what its rows say. One long statement, behind which other calls wait. */
  structure(): Broken | undefined {
    const seq = this.#last() + 1;
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

  #meta(): { readonly log: string } | Broken {
    try {
      return { log: readMeta(this.#database)?.log ?? "" };
    } catch (error) {
      if (!(error instanceof LedgerRefused)) throw error;
      return { seq: 1, problem: error.message, expected: "the description that it was made with", found: "another" };
    }
  }

  #last(): number {
    return Number(this.#database.prepare("SELECT cast(max(seq) AS TEXT) AS last FROM receipts").get()?.["last"] ?? 0);
  }

  #linkBefore(from: number): Link {
    const [row] = this.scan(from - 1);
    return row === undefined ? firstLink : linkOf(row);
  }

  close(): void {
    this.#database.close();
  }
}

/** What cannot be read at all is broken there; a disk that fails is a fault of the disk and says nothing of the ledger. */
function unreadable(error: unknown, seq: number): Broken {
  const { errcode, message } = error as Error & { readonly errcode?: number };
  if ([7, 10, 13].includes((errcode ?? 0) & 0xff)) throw error;
  return { seq, problem: "the ledger's file cannot be read from here on", expected: "a row", found: message };
}

function strayRow(last: number, { seq }: Link): Broken | undefined {
  if (last <= seqMax) return undefined;
  return {
    seq: seq + 1,
    problem: "a row is missing or out of place",
    expected: `row ${seq + 1}`,
    found: `row ${last}`,
  };
}

type StoredColumns = readonly [
  seq: number,
  leaf: string,
  evidence: string,
  session: string | null,
  tool: string,
  verdict: string,
];

function rowOf([seq, leaf, evidence, session, tool, verdict]: StoredColumns): StoredRow {
  return { seq, leaf, evidence, session, tool, verdict };
}

/** Rows as they come, until they are many or large. Arrays cost a third of what the driver's objects cost. */
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
    totals: (reader: Reader, places: readonly EventPlace[]) => reader.totals(places),
    structure: (reader: Reader) => reader.structure(),
    contractText: (reader: Reader, digest: string) => reader.contractText(digest),
    verify: (reader: Reader, from: number, anchors: readonly Anchor[]) => reader.verify(from, anchors),
    verifyChain: (reader: Reader, anchors: readonly Anchor[]) => reader.verifyChain(anchors),
  },
);
