import { hash } from "node:crypto";
import { Missing } from "../entry/erasure.ts";
import type { Leaf } from "../entry/leaf.ts";
import type { Broken, Finding, StoredRow } from "../entry/row.ts";
import { firstLink, linkOf, readEffects, verifyEvidence, verifyLink, type Link } from "../entry/verifier.ts";
import type { Anchor, Verification } from "../store/store.ts";
import type { TreeNode } from "../tree/merkle.ts";
import { strayNodes, TreeWalk, type Levels } from "../tree/walk.ts";
import { blame, parted, tooShort } from "./anchors.ts";
import { CounterWalk, type CounterReader, type Counters, type RecordedEvent } from "./counter-walk.ts";

/** A row as a walk takes it: without evidence where the chain alone is walked, without columns in an export. */
export type WalkedRow = Pick<StoredRow, "leaf" | "seq"> & Partial<Omit<StoredRow, "leaf" | "seq">>;

/** Some rows of a ledger, in order. None means that the end is reached. */
export interface WalkedSlice {
  readonly rows: readonly WalkedRow[];
  /** The counters, read after the rows. */
  readonly counters?: Counters;
  /** What keeps the reader from giving more rows, or what it found behind the last one. */
  readonly broken?: Broken | undefined;
}

/** How far a walk came. */
export interface Walked {
  /** Its first row. */
  readonly from: number;
  readonly link: Link;
  /** Of a walk from row 1. */
  readonly tree: TreeWalk | undefined;
  /** The last row of a person's act that was walked. */
  readonly changed: number | undefined;
}

/**
 * Reads a ledger for a walk, wherever it is stored. Any method may throw `BrokenHere`, where what it must read cannot be
 * read.
 */
export interface WalkReader {
  /** The ledger's name, and its rows at the beginning of the walk. */
  describe(): Promise<Pick<Verification, "log" | "rows"> | Broken>;
  next(from: number): Promise<WalkedSlice>;
  /** The first result among some leaves that does not name its check. */
  checks(leaves: readonly Leaf[]): Promise<Broken | undefined>;
  /** A contract's text, by its digest in hex. */
  contract(digest: string, seq: number): Promise<Uint8Array | string | undefined>;
  /** The first inner hash that is not stored as it was computed. @param links the rows that completed them */
  nodes(nodes: readonly TreeNode[], links: readonly Link[]): Promise<Broken | undefined>;
  /** What is stored beside the rows about their end differs from it. */
  end(walked: Walked): Promise<Broken | undefined>;
}

/** A reader of a store: it has counters, and others may add rows meanwhile. */
export interface StoreReader extends WalkReader, CounterReader {
  /** The last row now. */
  last(): Promise<number>;
  /** How many inner hashes each level has, and the last row at that moment. */
  levels(): Promise<Levels>;
  /** What is stored about the tree at the last row differs from it. */
  kept?(tree: TreeWalk): Broken | undefined;
}

/** What cannot be read, as the finding that it is. */
export class BrokenHere extends Error {
  readonly broken: Broken;

  constructor(broken: Broken) {
    super(broken.problem);
    this.broken = broken;
  }
}

export interface WalkOptions {
  readonly from: number;
  readonly anchors: readonly Anchor[];
  /** Order, links, hashes and the tree of the leaves, and nothing of what they commit to. */
  readonly chainAlone?: boolean;
}

/** Walks a store from a row on. */
export async function walkStore(reader: StoreReader, options: WalkOptions): Promise<Verification> {
  const walked = await new Walk(reader, options, reader).run();
  if (walked.broken === undefined) return walked;
  const { seq, problem, expected, found: stored } = walked.broken;
  return { ...walked, broken: { seq, problem, expected, found: stored } }; // Without the code of an export.
}

/** What the rows of one slice say by themselves, and what of it must be looked up. */
interface Slice {
  readonly links: Link[];
  readonly leaves: Leaf[];
  readonly nodes: TreeNode[];
  readonly events: RecordedEvent[];
  link?: Finding;
  evidence?: Finding | undefined;
  anchor?: Broken | undefined;
}

/**
 * One walk over a ledger, in slices, beside readers and writers: the whole of it to the last row that is there at the end, a
 * part of it to the one that was there at the beginning, because under load the end moves as fast as a walk. On one row it
 * reports what spec/export.md names first; then the columns, the counters and the anchors.
 */
export class Walk {
  readonly #reader: WalkReader;
  readonly #options: WalkOptions;
  readonly #store: StoreReader | undefined;
  readonly #counters: CounterWalk | undefined;
  readonly #tree: TreeWalk | undefined;
  readonly #missing = new Missing();
  /** The row that each contract was met at first. */
  readonly #contracts = new Map<string, number>();
  /** How many parts rows lack. */
  #lacking: (readonly [seq: number, parts: number])[] = [];
  #erasedParts = 0;
  #log = "";
  #link = firstLink;
  #changed: number | undefined;

  constructor(reader: WalkReader, options: WalkOptions, store?: StoreReader) {
    this.#reader = reader;
    this.#options = options;
    this.#store = store;
    const isWhole = options.from <= 1;
    this.#tree = isWhole ? new TreeWalk(options.anchors) : undefined;
    if (store !== undefined && options.chainAlone !== true) this.#counters = new CounterWalk(store, isWhole);
  }

  /** How many contracts the rows that hold name, and parts they lack. */
  get counts(): { readonly contracts: number; readonly erasedParts: number } {
    const contracts = [...this.#contracts.values()].filter((seq) => seq <= this.#link.seq).length;
    return { contracts, erasedParts: this.#erasedParts };
  }

  async run(): Promise<Verification> {
    const described = await found(() => this.#reader.describe());
    if ("problem" in described) return { log: "", rows: 0, head: firstLink, broken: described };
    const { log, rows } = described;
    this.#log = log;
    const broken = await found(() => this.#walk(rows));
    return { log, rows: Math.max(rows, this.#link.seq), head: this.#link, broken };
  }

  async #walk(rows: number): Promise<Broken | undefined> {
    const { anchors, from } = this.#options;
    if (from > 1) this.#link = await this.#linkBefore(from);
    let [last, settled] = [rows, 0];
    for (;;) {
      const slice = await this.#reader.next(this.#link.seq + 1);
      const broken = await this.#step(slice);
      if (broken !== undefined) return broken;
      if (slice.rows.length === 0) return this.#end();
      if (this.#tree !== undefined || this.#link.seq <= last) continue;
      const lacking = this.#missing.first;
      // What was erased since the walk began is told of by a row that was there when its loss was seen: up to that it goes on.
      if (lacking === undefined || lacking.seq <= settled) return tooShort(this.#link, anchors) ?? lacking;
      [settled, last] = [this.#link.seq, (await this.#store?.last()) ?? 0];
    }
  }

  async #linkBefore(from: number): Promise<Link> {
    const [row] = (await this.#reader.next(from - 1)).rows;
    return row === undefined ? firstLink : linkOf(row);
  }

  async #step({ rows, counters, broken: behind }: WalkedSlice): Promise<Broken | undefined> {
    const slice = this.#verify(rows);
    const { evidence, anchor, events, leaves, links, nodes } = slice;
    const reader = this.#reader;
    const broken = first(
      slice.link && (await this.#blame(slice.link, links.at(-1) ?? this.#link)),
      await found(() => reader.checks(leaves)),
      await found(() => reader.nodes(nodes, links)),
      this.#options.chainAlone === true ? undefined : await found(() => this.#contractsOf(leaves)),
      evidence,
      await found(async () => this.#counters?.step(events, counters)),
      anchor,
      behind,
    );
    const holds = ({ seq }: Link): boolean => broken === undefined || seq < broken.seq;
    this.#link = links.findLast(holds) ?? this.#link;
    for (const [seq, parts] of this.#lacking) if (seq <= this.#link.seq) this.#erasedParts += parts;
    this.#lacking = [];
    return broken;
  }

  /** Up to the first row that does not hold by itself. */
  #verify(rows: readonly WalkedRow[]): Slice {
    const slice: Slice = { links: [], leaves: [], nodes: [], events: [] };
    let before = this.#link;
    for (const row of rows) {
      const linked = verifyLink(row, before, this.#log);
      if ("problem" in linked) {
        slice.link = linked;
        break;
      }
      const { leaf, link } = linked;
      before = link;
      slice.links.push(link);
      slice.leaves.push(leaf);
      const nodes = this.#tree?.append(link.hash) ?? [];
      if (nodes.length > 0) slice.nodes.push(...nodes);
      slice.evidence = this.#evidence(leaf, row, slice.events);
      slice.anchor = parted(link, this.#options.anchors) ?? this.#tree?.parted();
      if (slice.evidence !== undefined || slice.anchor !== undefined) break;
      if (leaf.kind === "change") this.#changed = leaf.seq;
    }
    return slice;
  }

  #evidence(leaf: Leaf, row: WalkedRow, events: RecordedEvent[]): Finding | undefined {
    const { evidence } = row;
    if (evidence === undefined || this.#options.chainAlone === true) return undefined;
    const missing = verifyEvidence(leaf, evidence, row);
    if ("problem" in missing) return missing;
    const { at, seq } = leaf;
    if (missing.length > 0) this.#lacking.push([seq, missing.length]);
    if (this.#counters !== undefined)
      for (const effect of readEffects(evidence) ?? []) events.push({ ...effect, at, seq });
    return this.#missing.pass(leaf, evidence, missing);
  }

  /** Of an export a tile says which of two rows is the wrong one. */
  async #blame(broken: Finding, last: Link): Promise<Broken> {
    if (this.#store === undefined) return broken;
    return blame(broken, last, this.#options.anchors, (await this.#store.next(broken.seq)).rows);
  }

  async #contractsOf(leaves: readonly Leaf[]): Promise<Finding | undefined> {
    for (const { contract, seq } of leaves) {
      if (contract === null || this.#contracts.has(contract)) continue;
      const expected = /^sha256:([0-9a-f]{64})$/.exec(contract)?.[1];
      const text = expected === undefined ? undefined : await this.#reader.contract(expected, seq);
      const digest = text === undefined ? "no text" : hash("sha256", text, "hex");
      const problem = "the text of its contract is not there as it was";
      if (digest !== expected) return { code: "contract", seq, problem, expected: expected ?? contract, found: digest };
      this.#contracts.set(contract, seq);
    }
    return undefined;
  }

  async #end(): Promise<Broken | undefined> {
    const { anchors, from } = this.#options;
    const [link, tree, store, counters] = [this.#link, this.#tree, this.#store, this.#counters];
    return (
      (await this.#reader.end({ from, link, tree, changed: this.#changed })) ??
      tooShort(link, anchors) ??
      this.#missing.first ??
      (tree && store?.kept?.(tree)) ??
      counters?.damaged(link.seq + 1) ??
      (tree && (await counters?.rest(link.seq))) ??
      (tree && store && strayNodes(await store.levels(), link.seq))
    );
  }
}

async function found<Value>(read: () => Promise<Value>): Promise<Broken | Value> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof BrokenHere) return error.broken;
    throw error;
  }
}

/** The one at the earlier row; of two at one row, the one that is named first. */
function first(...broken: readonly (Broken | undefined)[]): Broken | undefined {
  return broken.reduce((least, next) =>
    next !== undefined && (least === undefined || next.seq < least.seq) ? next : least,
  );
}
