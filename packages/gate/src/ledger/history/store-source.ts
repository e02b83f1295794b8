import { setImmediate } from "node:timers/promises";
import { leafHash, type Leaf } from "../../../../core/src/record/entry/leaf.ts";
import type { Mistake } from "../../../../core/src/record/entry/row.ts";
import { wrongCheck, type Link } from "../../../../core/src/record/entry/verifier.ts";
import { LedgerRefused, Unreadable } from "../errors.ts";
import { keyDigester } from "../key-digests.ts";
import type { Pause } from "../store/steps.ts";
import { makeTables, type HeadRecord, type Tables, type TablesHead } from "../store/tables.ts";
import { lastUnder, type TreeNode } from "../../../../core/src/record/tree/merkle.ts";
import { wrongNode, type TreeWalk } from "../../../../core/src/record/tree/walk.ts";
import { anchorMismatch, tooShort } from "./anchors.ts";
import { reportDamageAt } from "./findings.ts";
import type { WalkResult, WalkedSlice, WalkSource } from "./walk-source.ts";

/** Rows that a walk reads at once; fewer if rows are large. */
const walkRows = 128;
/** Rows that a walk reads at once if it reads only leaves. */
const walkLeaves = 512;

/** The rows of a store for a walk, to which others may add rows meanwhile. */
export class TablesSource implements WalkSource {
  /** The tables, for parts of the walk besides the rows. It pauses before each long read. */
  readonly tables: Tables;
  readonly #tables: Tables;
  readonly #leavesAlone: boolean;
  readonly #pause: Pause;
  /** The last row at the start of the walk. */
  #rows = 0;
  /** Read before the latest rows, so that no row up to it may be missing. */
  #record: HeadRecord | undefined;
  /** Makes a keyed digest of a text, in hex. Known once the source is described. */
  digest: (text: string) => string = keyDigester("");

  /** @param pause called before each slice; by default others of this thread go on then */
  constructor(tables: Tables, leavesAlone: boolean, pause: Pause = () => setImmediate()) {
    this.#tables = tables;
    this.#leavesAlone = leavesAlone;
    this.#pause = pause;
    this.tables = makeTables(async (method, ...args) => {
      if (method === "page" || method === "tally") await pause();
      return (tables[method] as (...of: readonly unknown[]) => Promise<unknown>)(...args);
    });
  }

  async describe(): Promise<{ readonly log: string; readonly rows: number } | Mistake> {
    try {
      const { log, counterSecret } = await this.#tables.description();
      this.digest = keyDigester(counterSecret);
      this.#rows = (await this.#head()).rows;
      return { log, rows: this.#rows };
    } catch (error) {
      if (!(error instanceof LedgerRefused)) throw error;
      const expected = "the description that it was made with";
      return { seq: 1, problem: error.message, expected, found: "another" };
    }
  }

  /** If the last row cannot be read, the walk reports it when it reaches that row. */
  async #head(): Promise<TablesHead> {
    try {
      return await this.#tables.head();
    } catch (error) {
      if (error instanceof Unreadable) return { rows: 0 };
      throw error;
    }
  }

  /** The last row now. */
  async last(): Promise<number> {
    return reportDamageAt(this.#rows + 1, async () => (await this.#tables.head()).rows);
  }

  async next(from: number): Promise<WalkedSlice> {
    // If it paused for rows that were added during the walk, it might never reach the last one.
    await (from <= this.#rows ? this.#pause() : setImmediate());
    const after = from === 1 ? undefined : [from - 1];
    return reportDamageAt(from, async () => {
      if (this.#leavesAlone)
        return { rows: await this.#tables.page("receipts", { after, limit: walkLeaves }, ["seq", "leaf"]) };
      const [{ record }, rows, counters] = await Promise.all([
        this.#head(),
        this.#tables.page("receipts", { after, limit: walkRows }),
        this.#tables.counters(),
      ]);
      this.#record = record;
      return { rows, counters };
    });
  }

  async checks(leaves: readonly Leaf[]): Promise<Mistake | undefined> {
    const results = leaves.filter(({ check }) => check !== null);
    if (results.length === 0) return undefined;
    const [rows, keys] = [results.map(({ seq }) => seq), results.map(({ check }) => [check ?? 0])];
    const found = await reportDamageAt(rows, () => this.#tables.at("receipts", keys, ["leaf"]));
    return firstOf(results, (leaf, index) => wrongCheck(leaf, () => found[index]?.leaf));
  }

  async nodes(nodes: readonly TreeNode[]): Promise<Mistake | undefined> {
    if (nodes.length === 0) return undefined;
    const keys = nodes.map(({ level, index }) => [level, index]);
    const found = await reportDamageAt(nodes.map(lastUnder), () => this.#tables.at("nodes", keys, ["hash"]));
    return firstOf(nodes, (node, index) => wrongNode(node, found[index]?.hash));
  }

  contract(digest: string, seq: number): Promise<string | undefined> {
    return reportDamageAt(seq, async () => (await this.#tables.at("contracts", [[digest]]))[0]?.text);
  }

  async end({ changed, from, link }: WalkResult): Promise<Mistake | undefined> {
    const record = this.#record;
    if (record !== undefined) return wrongHead(record, link) ?? changedElsewhere(record, changed, from);
    const last = await this.last();
    if (last <= Number.MAX_SAFE_INTEGER) return undefined;
    const problem = "a row is missing or out of order";
    return { seq: link.seq + 1, problem, expected: `row ${link.seq + 1}`, found: `row ${last}` };
  }

  /** Compares the stored tree with the tree at the last row. */
  compareTree(tree: TreeWalk): Mistake | undefined {
    const record = this.#record;
    if (record === undefined || tree.size === 0) return undefined;
    const { checkpoint = "", frontier = "none", signer = "" } = record;
    return tree.compareStored({ frontier, checkpoint, signer });
  }
}

/** The chain must end with the row that the ledger's head record names. */
function wrongHead({ head }: HeadRecord, link: Link): Mistake | undefined {
  const { seq, leaf } = head ?? { seq: 0, leaf: undefined };
  const anchors = leaf === undefined ? [] : [{ seq, hash: leafHash(leaf), by: "head row" }];
  if (link.seq <= seq) return tooShort(link, anchors) ?? anchorMismatch(link, anchors);
  const problem = "the head row does not know the last rows";
  return { seq: seq + 1, problem, expected: `no row ${seq + 1}`, found: `rows up to ${link.seq}` };
}

/** The head must name the last row of a person's act, because gates follow people's acts by it. */
function changedElsewhere(
  { changed, head }: HeadRecord,
  walked: number | undefined,
  from: number,
): Mistake | undefined {
  if (walked === undefined ? changed < from : changed === walked) return undefined;
  const problem = "the head row does not name the last row of a person's act";
  return { seq: head?.seq ?? 0, problem, expected: String(walked ?? "an earlier row"), found: String(changed) };
}

function firstOf<Each>(
  all: readonly Each[],
  wrong: (each: Each, index: number) => Mistake | undefined,
): Mistake | undefined {
  for (const [index, each] of all.entries()) {
    const broken = wrong(each, index);
    if (broken !== undefined) return broken;
  }
  return undefined;
}
