import { hash } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { addDecimals } from "../../wire/mod.ts";
import type { Leaf } from "../leaf.ts";
import { firstLink, linkOf, readEffects, verifyRow, type Link } from "../verifier.ts";
import { serveCalls } from "./calls.ts";
import { counterIds, openForReading, readMeta } from "./sqlite-file.ts";
import type { Anchor, Broken, RowQuery, StoredRow, Verification } from "./store.ts";

/** Rows of one slice of a long read: a few milliseconds, so that the write-ahead log can be folded back in between. */
const sliceRows = 512;
/** Characters of one slice that is sent to another thread: bounds memory where rows are large. */
const sliceCharacters = 1_000_000;

/** A connection that only reads, in a thread of its own: it never holds up a commit. */
class Reader {
  readonly #database: DatabaseSync;
  readonly #log: string;
  readonly #upwards: StatementSync;
  readonly #previousTotal: StatementSync;
  readonly #total: StatementSync;

  constructor(folder: string) {
    this.#database = openForReading(folder);
    this.#log = readMeta(this.#database)?.log ?? "";
    this.#upwards = this.#database.prepare(
      "SELECT seq, leaf, evidence, session, tool, verdict FROM receipts WHERE seq >= ? ORDER BY seq LIMIT ?",
    );
    this.#previousTotal = this.#database.prepare(
      "SELECT total FROM effects WHERE counter = ? AND key = ? AND (at, seq) < (?, ?) ORDER BY at DESC, seq DESC LIMIT 1",
    );
    this.#total = this.#database.prepare(
      "SELECT total FROM effects WHERE counter = ? AND key = ? AND at = ? AND seq = ? AND folded = 0",
    );
    this.#upwards.setReturnArrays(true);
  }

  read({ before, limit, session, tool, verdict }: RowQuery): readonly StoredRow[] {
    const filters = Object.entries({ session, tool, verdict }).filter(([, value]) => value !== undefined);
    const where = ["seq < ?", ...filters.map(([name]) => `${name} = ?`)].join(" AND ");
    const statement = this.#database.prepare(
      `SELECT seq, leaf, evidence, session, tool, verdict FROM receipts WHERE ${where} ORDER BY seq DESC LIMIT ?`,
    );
    return bounded(statement.iterate(before, ...filters.map(([, value]) => String(value)), limit));
  }

  scan(from: number): readonly StoredRow[] {
    const statement = this.#database.prepare(
      "SELECT seq, leaf, evidence, session, tool, verdict FROM receipts WHERE seq >= ? ORDER BY seq LIMIT ?",
    );
    return bounded(statement.iterate(from, sliceRows));
  }

  contractText(digest: string): string | undefined {
    const text = this.#database.prepare("SELECT text FROM contracts WHERE digest = ?").get(digest)?.["text"];
    return text === undefined ? undefined : String(text);
  }

  /** Walks from row `from` to the last row that is there at the end. Between slices other calls are answered. */
  async verify(from: number, anchors: readonly Anchor[]): Promise<Verification> {
    const log = this.#log;
    const rows = Number(this.#database.prepare("SELECT count(*) AS count FROM receipts").get()?.["count"]);
    const walk = new Walk(this.#database, log, { total: this.#total, previous: this.#previousTotal });
    let link = from > 1 ? this.#linkBefore(from) : firstLink;
    for (;;) {
      const slice = this.#upwards.all(link.seq + 1, sliceRows) as unknown as readonly StoredColumns[];
      for (const columns of slice) {
        const next = walk.step(rowOf(columns), link);
        const broken = "problem" in next ? next : parted(next, anchors);
        if ("problem" in next || broken !== undefined) return { log, rows, head: link, broken };
        link = next;
      }
      if (slice.length < sliceRows) break;
      await setImmediate();
    }
    return {
      log,
      rows: Math.max(rows, link.seq),
      head: link,
      broken: tooShort(link, anchors) ?? (from > 1 ? undefined : walk.extraEffect(link.seq)),
    };
  }

  #linkBefore(from: number): Link {
    const [columns] = this.#upwards.all(from - 1, 1) as unknown as readonly StoredColumns[];
    return columns === undefined ? firstLink : linkOf(rowOf(columns));
  }

  close(): void {
    this.#database.close();
  }
}

/** The row is not the one that an anchor vouches for. */
function parted({ seq, hash: found }: Link, anchors: readonly Anchor[]): Broken | undefined {
  const anchor = anchors.find((candidate) => candidate.seq === seq && candidate.hash !== found);
  return anchor === undefined
    ? undefined
    : { seq, problem: `the row is not the one that the ${anchor.by} has seen`, expected: anchor.hash, found };
}

/** The chain ends before a row that an anchor vouches for. */
function tooShort({ seq }: Link, anchors: readonly Anchor[]): Broken | undefined {
  const anchor = anchors.find((candidate) => candidate.seq > seq);
  if (anchor === undefined) return undefined;
  return {
    seq: seq + 1,
    problem: `rows are missing from the end: the ${anchor.by} has seen row ${anchor.seq}`,
    expected: `row ${anchor.seq}`,
    found: `row ${seq}`,
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

function bounded(rows: Iterable<unknown>): readonly StoredRow[] {
  const slice: StoredRow[] = [];
  let characters = 0;
  for (const row of rows as Iterable<StoredRow>) {
    slice.push({ ...row });
    characters += row.leaf.length + row.evidence.length;
    if (characters > sliceCharacters) break;
  }
  return slice;
}

/** One walk over the chain: beside each row, its contract's text and the events that it recorded. */
class Walk {
  readonly #database: DatabaseSync;
  readonly #log: string;
  readonly #statements: { readonly total: StatementSync; readonly previous: StatementSync };
  readonly #counters: ReadonlyMap<string, number>;
  readonly #contracts = new Set<string>();
  #effects = 0;

  constructor(
    database: DatabaseSync,
    log: string,
    statements: { readonly total: StatementSync; readonly previous: StatementSync },
  ) {
    this.#database = database;
    this.#log = log;
    this.#statements = statements;
    this.#counters = counterIds(database);
  }

  step(row: StoredRow, before: Link): Link | Broken {
    const verified = verifyRow(row, before, this.#log);
    if ("problem" in verified) return verified;
    return this.#contract(verified.leaf) ?? this.#effectsOf(row, verified.leaf) ?? verified.link;
  }

  #contract({ contract, seq }: Leaf): Broken | undefined {
    if (contract === null || this.#contracts.has(contract)) return undefined;
    const digest = contract.replace(/^sha256:/, "");
    const text = this.#database.prepare("SELECT text FROM contracts WHERE digest = ?").get(digest)?.["text"];
    const found = text === undefined ? "no text" : hash("sha256", String(text), "hex");
    if (found !== digest)
      return { seq, problem: "the text of its contract is not there as it was", expected: digest, found };
    this.#contracts.add(contract);
    return undefined;
  }

  #effectsOf(row: StoredRow, { at, seq }: Leaf): Broken | undefined {
    for (const { amount, counter, key } of readEffects(row.evidence) ?? []) {
      const id = this.#counters.get(counter) ?? -1;
      const under = Buffer.from(key, "hex");
      const previous = this.#statements.previous.get(id, under, at, seq);
      const expected = previous === undefined ? amount : addDecimals(String(previous["total"]), amount);
      const found = this.#statements.total.get(id, under, at, seq)?.["total"];
      if (found !== expected)
        return { seq, problem: "a counter does not stand where its receipts put it", expected, found: String(found) };
      this.#effects += 1;
    }
    return undefined;
  }

  /** An event in the counters that no receipt recorded. */
  extraEffect(through: number): Broken | undefined {
    const counted = Number(
      this.#database.prepare("SELECT count(*) AS count FROM effects WHERE folded = 0 AND seq <= ?").get(through)?.[
        "count"
      ],
    );
    if (counted === this.#effects) return undefined;
    const rows = this.#database
      .prepare("SELECT seq, count(*) AS count FROM effects WHERE folded = 0 GROUP BY seq ORDER BY seq")
      .iterate();
    for (const row of rows) {
      const seq = Number(row["seq"]);
      const evidence = this.#database.prepare("SELECT evidence FROM receipts WHERE seq = ?").get(seq)?.["evidence"];
      const recorded = evidence === undefined ? 0 : (readEffects(String(evidence))?.length ?? 0);
      if (recorded !== row["count"])
        return {
          seq,
          problem: "the counters hold an event that its receipt did not record",
          expected: String(recorded),
          found: String(row["count"]),
        };
    }
    return {
      seq: through,
      problem: "the counters do not hold the events that the receipts recorded",
      expected: String(this.#effects),
      found: String(counted),
    };
  }
}

let reader: Reader | undefined;

function opened(): Reader {
  if (reader === undefined) throw new Error("the ledger is not open for reading");
  return reader;
}

serveCalls({
  open: (folder: string) => {
    reader = new Reader(folder);
  },
  read: (query: RowQuery) => opened().read(query),
  scan: (from: number) => opened().scan(from),
  contractText: (digest: string) => opened().contractText(digest),
  verify: (from: number, anchors: readonly Anchor[]) => opened().verify(from, anchors),
  close: () => opened().close(),
});
