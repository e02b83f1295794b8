import { hash } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { addDecimals } from "../../../wire/mod.ts";
import { Missing } from "../../entry/erasure.ts";
import type { Leaf } from "../../entry/leaf.ts";
import { readEffects, verifyRow, wrongCheck, type Link } from "../../entry/verifier.ts";
import { foldSeal } from "../seals.ts";
import type { KeptCounter } from "../store.ts";
import { readCounters } from "./file.ts";
import { strayNodes, TreeWalk, wrongNode } from "../../tree/walk.ts";
import type { Anchor } from "../store.ts";
import type { Broken, StoredRow } from "../../entry/row.ts";

/** Events of one slice: a few milliseconds in which the write-ahead log cannot be folded back. */
const sliceEvents = 16_384;

/** Totals that a walk keeps in memory, however many keys there are. */
const totalsMax = 8192;

type Key = readonly [counter: number, key: Uint8Array, at: number, seq: number];

export interface WalkOptions {
  readonly log: string;
  readonly from: number;
  readonly anchors: readonly Anchor[];
}

/** The tree over the rows of a walk from row 1, beside the inner hashes that the file keeps. */
export class NodeWalk {
  readonly #database: DatabaseSync;
  readonly #node: StatementSync;
  readonly #tree: TreeWalk;

  constructor(database: DatabaseSync, anchors: readonly Anchor[]) {
    this.#database = database;
    this.#node = database.prepare("SELECT hash FROM nodes WHERE level = ? AND place = ?");
    this.#tree = new TreeWalk(anchors);
  }

  step({ hash: of }: Link): Broken | undefined {
    for (const node of this.#tree.append(of)) {
      const kept = this.#node.get(node.level, node.place)?.["hash"];
      const broken = wrongNode(node, kept instanceof Uint8Array ? kept : undefined);
      if (broken !== undefined) return broken;
    }
    return undefined;
  }

  /** The root is not the one that an anchor has seen. */
  parted(): Broken | undefined {
    return this.#tree.parted();
  }

  /** One statement sees one state. */
  rest(through: number): Broken | undefined {
    const rows = this.#database
      .prepare(
        `SELECT level, count(*) AS count, (SELECT max(seq) FROM receipts) AS last FROM nodes GROUP BY level
         UNION ALL SELECT 1, 0, max(seq) FROM receipts`,
      )
      .all();
    const counts = new Map<number, number>();
    for (const { level, count } of rows) counts.set(Number(level), (counts.get(Number(level)) ?? 0) + Number(count));
    return strayNodes(counts, through, Number(rows.at(-1)?.["last"] ?? 0));
  }
}

/** One walk over the chain: beside each row, its contract's text and the events that it recorded; then what is left. */
export class Walk {
  readonly #database: DatabaseSync;
  readonly #log: string;
  readonly #tree: NodeWalk | undefined;
  readonly #previousTotal: StatementSync;
  readonly #total: StatementSync;
  readonly #leaf: StatementSync;
  readonly #counters: readonly KeptCounter[];
  readonly #damaged: KeptCounter | undefined;
  readonly #ids: ReadonlyMap<string, number>;
  readonly #contracts = new Set<string>();
  readonly #missing = new Missing();
  /** Totals by counter and key that the walk has come to: half of its look-ups are saved. */
  readonly #totals = new Map<string, string>();
  /** Counters in which events that were folded later stand between those of the walk. */
  readonly #withFolds: ReadonlySet<number>;
  /** It began at row 1 and still has every total, so that a key without one has not been met. */
  #sawAll: boolean;
  #events = 0;

  constructor(database: DatabaseSync, { log, from, anchors }: WalkOptions) {
    this.#tree = from <= 1 ? new NodeWalk(database, anchors) : undefined;
    this.#database = database;
    this.#sawAll = from <= 1;
    this.#log = log;
    const { kept, damaged } = readCounters(database);
    this.#counters = kept;
    this.#damaged = damaged;
    this.#withFolds = new Set(kept.filter((counter) => counter.folded > 0).map(({ id }) => id));
    this.#ids = new Map(kept.map(({ digest, id }) => [digest, id]));
    this.#previousTotal = database.prepare(
      "SELECT total FROM effects WHERE counter = ? AND key = ? AND (at, seq) < (?, ?) ORDER BY at DESC, seq DESC LIMIT 1",
    );
    this.#leaf = database.prepare("SELECT leaf FROM receipts WHERE seq = ?");
    this.#total = database.prepare(
      "SELECT total FROM effects WHERE counter = ? AND key = ? AND at = ? AND seq = ? AND folded IS NULL",
    );
  }

  step(row: StoredRow, before: Link): Link | Broken {
    const verified = verifyRow(row, before, this.#log);
    if ("problem" in verified) return verified;
    const { leaf, link, missing } = verified;
    const broken = wrongCheck(leaf, (seq) => this.#leafAt(seq)) ?? this.#missing.pass(leaf, row.evidence, missing);
    return broken ?? this.#contract(leaf) ?? this.#eventsOf(row, leaf) ?? this.#tree?.step(link) ?? link;
  }

  /** The root over the rows so far is not the one that an anchor has seen. */
  parted(): Broken | undefined {
    return this.#tree?.parted();
  }

  /** The first row, of those walked, that lacks what none of them says was erased. */
  get lacking(): Broken | undefined {
    return this.#missing.first;
  }

  #leafAt(seq: number): string | undefined {
    const leaf = this.#leaf.get(seq)?.["leaf"];
    return leaf === undefined ? undefined : String(leaf);
  }

  #contract({ contract, seq }: Leaf): Broken | undefined {
    if (contract === null || this.#contracts.has(contract)) return undefined;
    const digest = contract.replace(/^sha256:/, "");
    const text = this.#database.prepare("SELECT text FROM contracts WHERE digest = ?").get(digest)?.["text"];
    const found = text === undefined ? "no text" : hash("sha256", String(text), "hex");
    if (found !== digest) {
      return { seq, problem: "the text of its contract is not there as it was", expected: digest, found };
    }
    this.#contracts.add(contract);
    return undefined;
  }

  #eventsOf(row: StoredRow, { at, seq }: Leaf): Broken | undefined {
    for (const { amount, counter, key } of readEffects(row.evidence) ?? []) {
      const id = this.#ids.get(counter) ?? -1;
      if (this.#damaged?.id === id) return damagedCounter(this.#damaged, seq);
      const under = Buffer.from(key, "hex");
      const expected = this.#expectedTotal({ id, under, of: `${counter} ${key}`, at, seq, amount });
      const found = this.#total.get(id, under, at, seq)?.["total"];
      if (found !== expected) {
        const problem = "a counter does not stand where its receipts put it";
        return { seq, problem, expected, found: found === undefined ? "no such event" : String(found) };
      }
      this.#events += 1;
    }
    return undefined;
  }

  /** The total before is what the walk itself has added up, where it saw all of it, else what the file says. */
  #expectedTotal({ id, under, of, at, seq, amount }: WalkedEvent): string {
    const walked = this.#totals.get(of);
    const isFirst = walked === undefined && this.#sawAll && !this.#withFolds.has(id);
    const before = isFirst ? undefined : (walked ?? this.#previousTotal.get(id, under, at, seq)?.["total"]);
    const total = before === undefined ? amount : addDecimals(String(before), amount);
    if (this.#totals.size >= totalsMax) {
      this.#totals.clear();
      this.#sawAll = false;
    }
    if (!this.#withFolds.has(id)) this.#totals.set(of, total);
    return total;
  }

  /**
   * What no row led to: a counter's own description, events that no receipt recorded, events that a fold found,
   * contracts that no row names yet.
   *
   * @param through the last row that was walked; events of later rows are not looked at
   */
  async rest(through: number): Promise<Broken | undefined> {
    if (this.#damaged !== undefined) return damagedCounter(this.#damaged, through + 1);
    const folded = new Map<number, number>();
    let live = 0;
    let from: Key | undefined;
    do {
      const to = this.#sliceEnd(from);
      const tally = this.#tally(from, to, through);
      if (tally.beyond > 0) return beyond(tally.last + 1);
      live += tally.live;
      const broken = tally.folded === 0 ? undefined : this.#foldedEvents(from, to, folded);
      if (broken !== undefined) return broken;
      from = to;
      await setImmediate();
    } while (from !== undefined);
    if (live !== this.#events) return this.#unrecorded(live, through);
    return this.#foldedCounts(folded, through) ?? this.#unnamedContract(through) ?? this.#tree?.rest(through);
  }

  #sliceEnd(from: Key | undefined): Key | undefined {
    const after = from === undefined ? "" : "WHERE (counter, key, at, seq) > (?, ?, ?, ?)";
    const row = this.#database
      .prepare(
        `SELECT counter, key, at, seq FROM effects ${after} ORDER BY counter, key, at, seq LIMIT 1 OFFSET ${sliceEvents - 1}`,
      )
      .get(...(from ?? []));
    if (row === undefined) return undefined;
    return [Number(row["counter"]), row["key"] as Uint8Array, Number(row["at"]), Number(row["seq"])];
  }

  /** One statement sees one state: an event beyond the last row is no row that has just come. */
  #tally(from: Key | undefined, to: Key | undefined, through: number): Tally {
    const row = this.#database
      .prepare(
        `SELECT count(*) FILTER (WHERE folded IS NULL AND seq <= ?) AS live, count(folded) AS folded,
           count(*) FILTER (WHERE seq > (SELECT coalesce(max(seq), 0) FROM receipts)) AS beyond,
           (SELECT coalesce(max(seq), 0) FROM receipts) AS last
         FROM effects ${within(from, to)}`,
      )
      .get(through, ...(from ?? []), ...(to ?? []));
    const { live, folded, beyond: past, last } = row ?? {};
    return { live: Number(live), folded: Number(folded), beyond: Number(past), last: Number(last) };
  }

  #foldedEvents(from: Key | undefined, to: Key | undefined, counts: Map<number, number>): Broken | undefined {
    const rows = this.#database
      .prepare(`SELECT counter, key, at, seq, total, folded FROM effects ${within(from, to, "folded IS NOT NULL")}`)
      .all(...(from ?? []), ...(to ?? []));
    const digests = new Map(this.#counters.map(({ id, digest }) => [id, digest]));
    for (const row of rows) {
      const [id, key, at, seq] = [
        Number(row["counter"]),
        row["key"] as Uint8Array,
        Number(row["at"]),
        Number(row["seq"]),
      ];
      const before = this.#previousTotal.get(id, key, at, seq)?.["total"];
      const event = { counter: digests.get(id) ?? "", key, at, seq, total: String(row["total"]) };
      const expected = foldSeal({ ...event, before: before === undefined ? undefined : String(before) });
      const found = String(row["folded"]);
      if (found !== expected)
        return { seq, problem: "an event that was folded into a counter is not as it was", expected, found };
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return undefined;
  }

  #foldedCounts(counts: ReadonlyMap<number, number>, through: number): Broken | undefined {
    const short = this.#counters.find(({ id, folded }) => (counts.get(id) ?? 0) !== folded);
    if (short === undefined) return undefined;
    const problem = `the counter ${short.id} does not hold the events that were folded into it`;
    return { seq: through, problem, expected: String(short.folded), found: String(counts.get(short.id) ?? 0) };
  }

  #unnamedContract(through: number): Broken | undefined {
    for (const { digest, text } of this.#database.prepare("SELECT digest, text FROM contracts").iterate()) {
      const found = hash("sha256", String(text), "hex");
      const problem = "the text of a contract that no row names yet is not as it was";
      if (found !== digest) return { seq: through + 1, problem, expected: String(digest), found };
    }
    return undefined;
  }

  /** The first row whose events are not those that it recorded. */
  #unrecorded(live: number, through: number): Broken {
    const rows = this.#database
      .prepare(
        "SELECT cast(seq AS TEXT) AS seq, count(*) AS count FROM effects WHERE folded IS NULL GROUP BY effects.seq ORDER BY effects.seq",
      )
      .iterate();
    for (const row of rows) {
      const seq = Number(row["seq"]);
      const evidence = this.#database.prepare("SELECT evidence FROM receipts WHERE seq = ?").get(seq)?.["evidence"];
      const recorded = evidence === undefined ? 0 : (readEffects(String(evidence))?.length ?? 0);
      const problem = "the counters hold an event that its receipt did not record";
      if (recorded !== row["count"]) return { seq, problem, expected: String(recorded), found: String(row["count"]) };
    }
    const problem = "the counters do not hold the events that the receipts recorded";
    return { seq: through, problem, expected: String(this.#events), found: String(live) };
  }
}

interface WalkedEvent {
  readonly id: number;
  readonly under: Uint8Array;
  readonly of: string;
  readonly at: number;
  readonly seq: number;
  readonly amount: string;
}

interface Tally {
  /** Events that receipts recorded, up to the last row that was walked. */
  readonly live: number;
  readonly folded: number;
  /** Events of rows that are not there. */
  readonly beyond: number;
  /** The last row there is. */
  readonly last: number;
}

function within(from: Key | undefined, to: Key | undefined, condition = "true"): string {
  const after = from === undefined ? "" : " AND (counter, key, at, seq) > (?, ?, ?, ?)";
  const upTo = to === undefined ? "" : " AND (counter, key, at, seq) <= (?, ?, ?, ?)";
  return `WHERE ${condition}${after}${upTo}`;
}

function damagedCounter({ id }: KeptCounter, seq: number): Broken {
  return {
    seq,
    problem: `the counter ${id} is not described as it was`,
    expected: "the description that was sealed",
    found: "another",
  };
}

function beyond(seq: number): Broken {
  const problem = "the counters hold an event of a row that is not there: rows are missing from the end";
  return { seq, problem, expected: `row ${seq}`, found: "no row" };
}
