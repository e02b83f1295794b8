import { hash } from "node:crypto";
import { addDecimals } from "../../../wire/mod.ts";
import { Missing } from "../../entry/erasure.ts";
import { leafHash, type Leaf } from "../../entry/leaf.ts";
import {
  firstLink,
  linkOf,
  readEffects,
  verifyRow,
  wrongCheck,
  type Link,
  type RecordedEffect,
} from "../../entry/verifier.ts";
import { blame, parted, tooShort } from "../anchors.ts";
import type { TreeNode } from "../../tree/merkle.ts";
import { strayNodes, TreeWalk, wrongNode } from "../../tree/walk.ts";
import { frontierOf, headRow, ledgerSeal, readCounters, storedRow, type Counters, type HeadRow } from "./rows.ts";
import { ask, type Asked } from "./sql.ts";

import { foldSeal } from "../seals.ts";
import { LedgerRefused, type Anchor, type Verification } from "../store.ts";
import type { Broken, StoredRow } from "../../entry/row.ts";

/** Rows that a walk takes at once, and characters of them. */
const slice = { rows: 128, characters: 1_000_000 } as const;
/** Events of one slice. */
const sliceEvents = 16_384;

/** Answers of statements that were sent together, each a state no older than that of the one before. */
export type Read = (...asked: readonly Asked[]) => Promise<readonly (readonly (readonly unknown[])[])[]>;

export interface Walk {
  readonly ledger: string;
  readonly from: number;
  readonly anchors: readonly Anchor[];
}

/**
 * Walks a ledger from a row on, in slices, beside readers and writers: the whole of it to the last row that is there at
 * the end, a part of it to the one that was there at the beginning, because under load the end moves as fast as a walk.
 */
export async function verifyPostgres(read: Read, { ledger, from, anchors }: Walk): Promise<Verification> {
  const described = await describe(read, ledger);
  if ("problem" in described) return { log: "", rows: 0, head: firstLink, broken: described };
  const { log, rows } = described;
  const tree = from > 1 ? undefined : new TreeWalk(anchors);
  const walker = new Walker(read, { ledger, counters: described.counters, tree });
  let link = from > 1 ? await walker.linkBefore(from) : firstLink;
  let [last, settled] = [rows, 0];
  for (;;) {
    const { head, found } = await walker.next(link.seq + 1);
    if (found.length === 0) {
      const broken =
        parts(head, link) ??
        walker.changedElsewhere(head, from) ??
        tooShort(link, anchors) ??
        walker.lacking ??
        (tree === undefined ? undefined : (keptTree(tree, head) ?? (await walker.rest(link.seq))));
      return { log, rows: Math.max(rows, link.seq), head: link, broken };
    }
    const stepped = await walker.step(found, link, { log, anchors });
    link = stepped.link;
    if (stepped.broken !== undefined)
      return { log, rows: Math.max(rows, link.seq), head: link, broken: stepped.broken };
    if (from === 1 || link.seq <= last) continue;
    const lacking = walker.lacking;
    // What was erased since the walk began is told of by a row that was there when its loss was seen: up to that it goes on.
    if (lacking === undefined || lacking.seq <= settled)
      return { log, rows: link.seq, head: link, broken: tooShort(link, anchors) ?? lacking };
    [settled, last] = [link.seq, (await walker.next(link.seq)).head.seq];
  }
}

interface Described {
  readonly log: string;
  readonly rows: number;
  readonly counters: Counters;
}

async function describe(read: Read, ledger: string): Promise<Described | Broken> {
  const asked = [ask("findLedger", ledger), ask("counters", ledger)];
  const [found = [], counters = []] = await read(...asked);
  const [log = "", secret = "", seal = "", ...head] = (found[0] ?? []) as readonly string[];
  const expected = "the description that it was made with";
  if (seal !== ledgerSeal(ledger, log, secret))
    return { seq: 1, problem: "the ledger's description is not as it was", expected, found: "another" };
  try {
    return { log, rows: headRow(head).seq, counters: readCounters(counters) };
  } catch (error) {
    if (!(error instanceof LedgerRefused)) throw error;
    return { seq: 1, problem: error.message, expected, found: "another" };
  }
}

/** The chain ends where the ledger's own row says, and with the row that it says. */
function parts(head: HeadRow, link: Link): Broken | undefined {
  const by = "head row";
  const anchors = head.leaf === null ? [] : [{ seq: head.seq, hash: leafHash(head.leaf), by }];
  if (link.seq <= head.seq) return tooShort(link, anchors) ?? parted(link, anchors);
  const problem = "the head row does not know the last rows";
  return { seq: head.seq + 1, problem, expected: `no row ${head.seq + 1}`, found: `rows up to ${link.seq}` };
}

/** What the ledger's own row says of the tree is that of the rows. */
function keptTree(tree: TreeWalk, head: HeadRow): Broken | undefined {
  if (tree.size === 0) return undefined;
  return tree.kept({
    frontier: frontierOf(head) ?? "none",
    checkpoint: head.checkpoint ?? "",
    signer: head.signer ?? "",
  });
}

interface Event extends RecordedEffect {
  readonly seq: number;
  readonly at: number;
}

interface Against {
  readonly log: string;
  readonly anchors: readonly Anchor[];
}

/** An event's place in the order of their table. */
type Place = readonly [counter: number, key: Uint8Array, at: number, seq: number];

const firstPlace: Place = [-1, Buffer.alloc(0), -1, -1];
const lastPlace: Place = [2 ** 31 - 1, Buffer.alloc(0), 0, 0];

interface WalkerOptions {
  readonly ledger: string;
  readonly counters: Counters;
  /** Of a walk from row 1. */
  readonly tree: TreeWalk | undefined;
}

class Walker {
  readonly #read: Read;
  readonly #ledger: string;
  #counters: Counters;
  readonly #tree: TreeWalk | undefined;
  readonly #contracts = new Set<string>();
  readonly #missing = new Missing();
  #events = 0;
  /** The last row of a person's act that was walked. */
  #changed: number | undefined;

  constructor(read: Read, { ledger, counters, tree }: WalkerOptions) {
    this.#read = read;
    this.#tree = tree;
    this.#ledger = ledger;
    this.#counters = counters;
  }

  /** Some rows from one on, and the head as it was no later: every row up to it must be among them or before. */
  async next(from: number): Promise<{ readonly head: HeadRow; readonly found: readonly StoredRow[] }> {
    const ledger = this.#ledger;
    const lowest = from === 1 ? Number.MIN_SAFE_INTEGER : from;
    const scan = ask("scan", ledger, lowest, slice.rows, slice.characters);
    const [head, found = [], counters = []] = await this.#read(ask("readHead", ledger), scan, ask("counters", ledger));
    this.#counters = readCounters(counters);
    return { head: headRow(head?.[0] ?? []), found: found.map(storedRow) };
  }

  /** Gates follow people's acts by the row that the head names: it must be the last one. */
  changedElsewhere({ seq, changed }: HeadRow, from: number): Broken | undefined {
    if (this.#changed === undefined ? changed < from : changed === this.#changed) return undefined;
    const problem = "the head row does not name the last row of a person's act";
    return { seq, problem, expected: String(this.#changed ?? "an earlier row"), found: String(changed) };
  }

  /** The first row, of those walked, that lacks what none of them says was erased. */
  get lacking(): Broken | undefined {
    return this.#missing.first;
  }

  async linkBefore(from: number): Promise<Link> {
    const [row] = (await this.next(from - 1)).found;
    return row === undefined ? firstLink : linkOf(row);
  }

  /** The link after the rows, or after the last one that holds. */
  async step(
    rows: readonly StoredRow[],
    before: Link,
    { log, anchors }: Against,
  ): Promise<{ readonly link: Link; readonly broken: Broken | undefined }> {
    const links: Link[] = [before];
    const leaves: Leaf[] = [];
    const events: Event[] = [];
    const nodes: TreeNode[] = [];
    let broken: Broken | undefined;
    for (const row of rows) {
      const last = links.at(-1) ?? before;
      const next = verifyRow(row, last, log);
      if ("problem" in next) broken = blame(next, last, anchors, (await this.next(next.seq)).found);
      else {
        nodes.push(...(this.#tree?.append(next.link.hash) ?? []));
        broken =
          parted(next.link, anchors) ??
          this.#tree?.parted() ??
          this.#missing.pass(next.leaf, row.evidence, next.missing);
      }
      if ("problem" in next || broken !== undefined) break;
      const { at, seq } = next.leaf;
      links.push(next.link);
      leaves.push(next.leaf);
      if (next.leaf.kind === "change") this.#changed = seq;
      events.push(...(readEffects(row.evidence) ?? []).map((effect) => ({ ...effect, at, seq })));
    }
    broken = first(
      await this.#checksOf(leaves),
      await this.#contractsOf(leaves),
      await this.#eventsOf(events),
      await this.#nodesOf(nodes),
      broken,
    );
    const link = links.findLast(({ seq }) => broken === undefined || seq < broken.seq) ?? before;
    return { link, broken };
  }

  async #nodesOf(nodes: readonly TreeNode[]): Promise<Broken | undefined> {
    for (const node of nodes) {
      const [rows] = await this.#read(ask("nodes", this.#ledger, node.level, node.place, node.place));
      const broken = wrongNode(node, rows?.[0]?.[0] as Uint8Array | undefined);
      if (broken !== undefined) return broken;
    }
    return undefined;
  }

  /** The rows that results name as their checks. */
  async #checksOf(leaves: readonly Leaf[]): Promise<Broken | undefined> {
    const results = leaves.filter(({ check }) => check !== null);
    if (results.length === 0) return undefined;
    const found = await this.#read(...results.map(({ check }) => ask("leafAt", this.#ledger, check)));
    const leafAt = (place: number): string | undefined => found[place]?.[0]?.[0] as string | undefined;
    return first(...results.map((leaf, place) => wrongCheck(leaf, () => leafAt(place))));
  }

  async #contractsOf(leaves: readonly Leaf[]): Promise<Broken | undefined> {
    for (const { contract, seq } of leaves) {
      if (contract === null || this.#contracts.has(contract)) continue;
      const digest = contract.replace(/^sha256:/, "");
      const [rows] = await this.#read(ask("contract", this.#ledger, digest));
      const text = rows?.[0]?.[0];
      const found = typeof text === "string" ? hash("sha256", text, "hex") : "no text";
      if (found !== digest)
        return { seq, problem: "the text of its contract is not there as it was", expected: digest, found };
      this.#contracts.add(contract);
    }
    return undefined;
  }

  /** Each event's total is the one before it and what the receipt says. */
  async #eventsOf(events: readonly Event[]): Promise<Broken | undefined> {
    for (let from = 0; from < events.length; from += sliceEvents) {
      const some = events.slice(from, from + sliceEvents);
      const [found = []] = await this.#read(
        ask(
          "walkedEvents",
          this.#ledger,
          some.map(({ counter }) => this.#counters.get(counter)?.id ?? -1),
          some.map(({ key }) => Buffer.from(key, "hex")),
          some.map(({ at }) => at),
          some.map(({ seq }) => seq),
        ),
      );
      for (const [place, { amount, seq }] of some.entries()) {
        const [total, before] = (found[place] ?? []) as readonly (string | null)[];
        const expected = typeof before === "string" ? sum(before, amount) : amount;
        const problem = "a counter does not stand where its receipts put it";
        if (total !== expected) return { seq, problem, expected, found: total ?? "no such event" };
      }
    }
    this.#events += events.length;
    return undefined;
  }

  /**
   * What no row led to: events that no receipt recorded, events that a fold found, contracts that no row names yet.
   *
   * @param through the last row that was walked; events of later rows are not looked at
   */
  async rest(through: number): Promise<Broken | undefined> {
    const folded = new Map<number, number>();
    let live = 0;
    let from = firstPlace;
    for (let isLast = false; !isLast;) {
      const end = await this.#sliceEnd(from);
      isLast = end === undefined;
      const to = end ?? lastPlace;
      const [rows] = await this.#read(ask("walkedTally", this.#ledger, ...from, ...to, through));
      const [some, folds, beyond, last] = (rows?.[0] ?? []).map(Number);
      if (Number(beyond) > 0) return beyondEnd(Number(last) + 1);
      live += Number(some);
      const broken = Number(folds) === 0 ? undefined : await this.#foldedEvents(from, to, folded);
      if (broken !== undefined) return broken;
      from = to;
    }
    if (live !== this.#events) return this.#unrecorded(live, through);
    return (
      (await this.#foldedCounts(folded, through)) ??
      (await this.#unnamedContract(through)) ??
      (await this.#strayNodes(through))
    );
  }

  async #sliceEnd(from: Place): Promise<Place | undefined> {
    const [rows] = await this.#read(ask("walkedEnd", this.#ledger, ...from, sliceEvents - 1));
    const [counter, key, at, seq] = rows?.[0] ?? [];
    return counter === undefined ? undefined : [Number(counter), key as Uint8Array, Number(at), Number(seq)];
  }

  async #foldedEvents(from: Place, to: Place, counts: Map<number, number>): Promise<Broken | undefined> {
    const asked = [ask("walkedFolds", this.#ledger, ...from, ...to), ask("counters", this.#ledger)];
    const [rows = [], counters = []] = await this.#read(...asked);
    const digests = new Map([...readCounters(counters).values()].map(({ id, digest }) => [id, digest]));
    for (const columns of rows) {
      const [counter, key, at, seq] = [
        Number(columns[0]),
        columns[1] as Uint8Array,
        Number(columns[2]),
        Number(columns[3]),
      ];
      const [total, found, before] = columns.slice(4) as readonly (string | null)[];
      const event = { counter: digests.get(counter) ?? "", key, at, seq, total: String(total) };
      const expected = foldSeal({ ...event, before: before ?? undefined });
      if (found !== expected) {
        const problem = "an event that was folded into a counter is not as it was";
        return { seq, problem, expected, found: String(found) };
      }
      counts.set(counter, (counts.get(counter) ?? 0) + 1);
    }
    return undefined;
  }

  /** Between what counters said before the events were counted, and what they say after: a fold may be going on. */
  async #foldedCounts(counts: ReadonlyMap<number, number>, through: number): Promise<Broken | undefined> {
    const [rows = []] = await this.#read(ask("counters", this.#ledger));
    const later = readCounters(rows);
    for (const { id, digest, folded } of this.#counters.values()) {
      const found = counts.get(id) ?? 0;
      const problem = `the counter ${id} does not hold the events that were folded into it`;
      if (found < folded || found > (later.get(digest)?.folded ?? folded))
        return { seq: through, problem, expected: String(folded), found: String(found) };
    }
    return undefined;
  }

  async #unnamedContract(through: number): Promise<Broken | undefined> {
    for (let after = ""; ;) {
      const [rows = []] = await this.#read(ask("contracts", this.#ledger, after));
      for (const [digest, text] of rows) {
        const found = hash("sha256", String(text), "hex");
        const problem = "the text of a contract that no row names yet is not as it was";
        if (found !== digest) return { seq: through + 1, problem, expected: String(digest), found };
      }
      if (rows.length === 0) return undefined;
      after = String(rows.at(-1)?.[0]);
    }
  }

  async #strayNodes(through: number): Promise<Broken | undefined> {
    if (this.#tree === undefined) return undefined;
    const [counted = [], head] = await this.#read(ask("countNodes", this.#ledger), ask("readHead", this.#ledger));
    const counts = new Map(counted.map(([level, count]) => [Number(level), Number(count)]));
    return strayNodes(counts, through, headRow(head?.[0] ?? []).seq);
  }

  /** The first row whose events are not those that it recorded. */
  async #unrecorded(live: number, through: number): Promise<Broken> {
    for (let after = Number.MIN_SAFE_INTEGER; ;) {
      const [counted = []] = await this.#read(ask("walkedRows", this.#ledger, after, sliceEvents));
      for (const [seq = 0, count] of counted.map((columns) => columns.map(Number))) {
        const [rows] = await this.#read(ask("evidenceAt", this.#ledger, seq));
        const evidence = rows?.[0]?.[0];
        const recorded = typeof evidence === "string" ? (readEffects(evidence)?.length ?? 0) : 0;
        const problem = "the counters hold an event that its receipt did not record";
        if (recorded !== count) return { seq, problem, expected: String(recorded), found: String(count) };
        after = seq;
      }
      if (counted.length === 0) break;
    }
    const problem = "the counters do not hold the events that the receipts recorded";
    return { seq: through, problem, expected: String(this.#events), found: String(live) };
  }
}

/** What was changed by hand may be no decimals. */
function sum(before: string, amount: string): string {
  const areDecimals = [before, amount].every((text) => /^[0-9]+(?:\.[0-9]+)?$/.test(text));
  return areDecimals ? addDecimals(before, amount) : `${before} and ${amount}`;
}

/** The one at the earlier row; of two at one row, the one that is named first. */
function first(...broken: readonly (Broken | undefined)[]): Broken | undefined {
  return broken.reduce((least, next) =>
    next !== undefined && (least === undefined || next.seq < least.seq) ? next : least,
  );
}

function beyondEnd(seq: number): Broken {
  const problem = "the counters hold an event of a row that is not there: rows are missing from the end";
  return { seq, problem, expected: `row ${seq}`, found: "no row" };
}
