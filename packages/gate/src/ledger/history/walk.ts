import { hash } from "node:crypto";
import { MissingParts } from "../../../../core/src/record/entry/erasure.ts";
import { Uses } from "../../../../core/src/record/entry/uses.ts";
import type { Leaf } from "../../../../core/src/record/entry/leaf.ts";
import type { Mistake, Finding, StoredRow } from "../../../../core/src/record/entry/row.ts";
import {
  firstLink,
  linkOf,
  readEffects,
  verifyEvidence,
  verifyLink,
  type Link,
} from "../../../../core/src/record/entry/verifier.ts";
import { isEvent } from "../../../../core/src/record/entry/outcome-rows.ts";
import type { Verification } from "../store/store.ts";
import type { TreeNode } from "../../../../core/src/record/tree/merkle.ts";
import type { Pause } from "../store/steps.ts";
import type { Tables } from "../store/tables.ts";
import { TreeWalk, type Anchor } from "../../../../core/src/record/tree/walk.ts";
import { blame, anchorMismatch, tooShort } from "./anchors.ts";
import { ApprovalWalk } from "./approval-walk.ts";
import { catchFinding } from "./findings.ts";
import { OutcomeWalk } from "./outcome-walk.ts";
import { changedRepeat, strayNodes } from "./strays.ts";
import { TablesSource } from "./store-source.ts";
import type { WalkedRow, WalkedSlice, WalkSource } from "./walk-source.ts";
import { CounterWalk, type RecordedEvent } from "./counter-walk.ts";

export interface WalkOptions {
  readonly from: number;
  readonly anchors: readonly Anchor[];
  /** Checks only the order, links, hashes and the tree of the leaves, not the evidence. */
  readonly chainAlone?: boolean;
}

/**
 * Walks a store from a row on.
 *
 * @param pause called before each slice; by default others of this thread go on then
 */
export async function walkStore(tables: Tables, options: WalkOptions, pause?: Pause): Promise<Verification> {
  const source = new TablesSource(tables, options.chainAlone === true, pause);
  const walked = await new Walk(source, options, source).run();
  if (walked.broken === undefined) return walked;
  const { seq, problem, expected, found: stored } = walked.broken;
  return { ...walked, broken: { seq, problem, expected, found: stored } }; // without the code of an export
}

/** The result of checking one slice alone, and the data to look up. */
interface VerifiedSlice {
  readonly links: Link[];
  readonly leaves: Leaf[];
  readonly nodes: TreeNode[];
  readonly events: RecordedEvent[];
  link?: Finding;
  evidence?: Finding | undefined;
  approval?: Mistake | undefined;
  anchor?: Mistake | undefined;
}

/**
 * One walk over a ledger, in slices, while others read and write. A walk of the whole ledger ends at the last row at
 * that time. A walk of a part ends at the last row at its start, because under load the end moves as fast as the
 * walk. If a row has several mistakes, the walk reports the one that comes first in spec/export.md, then columns,
 * counters and anchors.
 */
export class Walk {
  readonly #source: WalkSource;
  readonly #options: WalkOptions;
  readonly #store: TablesSource | undefined;
  readonly #counters: CounterWalk | undefined;
  readonly #approvals: ApprovalWalk | undefined;
  readonly #outcomes: OutcomeWalk | undefined;
  readonly #tree: TreeWalk | undefined;
  readonly #missing = new MissingParts();
  readonly #uses = new Uses();
  /** The first row of each contract. */
  readonly #contracts = new Map<string, number>();
  /** The number of missing parts of rows. */
  #lacking: (readonly [seq: number, parts: number])[] = [];
  #erasedParts = 0;
  #log = "";
  #link = firstLink;
  #changed: number | undefined;

  /** @param store the source, if it has other tables that must match the rows */
  constructor(source: WalkSource, options: WalkOptions, store?: TablesSource) {
    this.#source = source;
    this.#options = options;
    this.#store = store;
    const isWhole = options.from <= 1;
    this.#tree = isWhole ? new TreeWalk(options.anchors) : undefined;
    if (store !== undefined && options.chainAlone !== true) {
      const digest = (text: string): string => store.digest(text);
      this.#counters = new CounterWalk(store.tables, isWhole);
      if (isWhole) {
        this.#approvals = new ApprovalWalk(store.tables, digest);
        this.#outcomes = new OutcomeWalk(store.tables);
      }
    }
  }

  /** The number of contracts in the valid rows, and of their erased parts. */
  get counts(): { readonly contracts: number; readonly erasedParts: number } {
    const contracts = [...this.#contracts.values()].filter((seq) => seq <= this.#link.seq).length;
    return { contracts, erasedParts: this.#erasedParts };
  }

  async run(): Promise<Verification> {
    const described = await catchFinding(() => this.#source.describe());
    if ("problem" in described) return { log: "", rows: 0, head: firstLink, broken: described };
    const { log, rows } = described;
    this.#log = log;
    const broken = await catchFinding(() => this.#walk(rows));
    return { log, rows: Math.max(rows, this.#link.seq), head: this.#link, broken };
  }

  async #walk(rows: number): Promise<Mistake | undefined> {
    const { anchors, from } = this.#options;
    if (from > 1) this.#link = await this.#linkBefore(from);
    let [last, settled] = [rows, 0];
    for (;;) {
      const slice = await this.#source.next(this.#link.seq + 1);
      const broken = await this.#step(slice);
      if (broken !== undefined) return broken;
      if (slice.rows.length === 0) return this.#end();
      if (this.#tree !== undefined || this.#link.seq <= last) continue;
      const lacking = this.#missing.first;
      // A part that was erased during the walk is recorded by a later row. So the walk continues to the last row at
      // this moment.
      if (lacking === undefined || lacking.seq <= settled) return tooShort(this.#link, anchors) ?? lacking;
      [settled, last] = [this.#link.seq, (await this.#store?.last()) ?? 0];
    }
  }

  async #linkBefore(from: number): Promise<Link> {
    const [row] = (await this.#source.next(from - 1)).rows;
    return row === undefined ? firstLink : linkOf(row);
  }

  async #step({ rows, counters, broken: behind }: WalkedSlice): Promise<Mistake | undefined> {
    const slice = this.#verify(rows);
    const { evidence, approval, anchor, events, leaves, links, nodes } = slice;
    const source = this.#source;
    const broken = first(
      slice.link && (await this.#blame(slice.link, links.at(-1) ?? this.#link)),
      await catchFinding(() => source.checks(leaves)),
      await catchFinding(() => source.nodes(nodes, links)),
      this.#options.chainAlone === true ? undefined : await catchFinding(() => this.#contractsOf(leaves)),
      evidence,
      await catchFinding(async () => this.#counters?.step(events, counters)),
      anchor,
      approval ?? (await catchFinding(async () => this.#approvals?.step())),
      await catchFinding(async () => this.#outcomes?.step(counters)),
      behind,
    );
    const isIntact = ({ seq }: Link): boolean => broken === undefined || seq < broken.seq;
    this.#link = links.findLast(isIntact) ?? this.#link;
    for (const [seq, parts] of this.#lacking) if (seq <= this.#link.seq) this.#erasedParts += parts;
    this.#lacking = [];
    return broken;
  }

  /** Checks rows up to the first wrong one. */
  #verify(rows: readonly WalkedRow[]): VerifiedSlice {
    const slice: VerifiedSlice = { links: [], leaves: [], nodes: [], events: [] };
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
      if (slice.evidence === undefined && row.evidence !== undefined)
        slice.approval = this.#approvals?.take(leaf, row as StoredRow) ?? this.#outcomes?.take(leaf, row as StoredRow);
      slice.anchor = anchorMismatch(link, this.#options.anchors) ?? this.#tree?.anchorMismatch();
      if (slice.evidence !== undefined || slice.approval !== undefined || slice.anchor !== undefined) break;
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
      for (const effect of readEffects(evidence) ?? []) if (isEvent(effect)) events.push({ ...effect, at, seq });
    return this.#missing.pass(leaf, evidence, missing) ?? this.#uses.pass(leaf, evidence);
  }

  /** Finds out which of two rows was changed. In an export, a tile shows that. */
  async #blame(broken: Finding, last: Link): Promise<Mistake> {
    if (this.#store === undefined) return broken;
    return blame(broken, last, this.#options.anchors, (await this.#store.next(broken.seq)).rows);
  }

  async #contractsOf(leaves: readonly Leaf[]): Promise<Finding | undefined> {
    for (const { contract, seq } of leaves) {
      if (contract === null || this.#contracts.has(contract)) continue;
      const expected = /^sha256:([0-9a-f]{64})$/.exec(contract)?.[1];
      const text = expected === undefined ? undefined : await this.#source.contract(expected, seq);
      const digest = text === undefined ? "no text" : hash("sha256", text, "hex");
      const problem = "the text of its contract is missing or was changed";
      if (digest !== expected) return { code: "contract", seq, problem, expected: expected ?? contract, found: digest };
      this.#contracts.set(contract, seq);
    }
    return undefined;
  }

  async #end(): Promise<Mistake | undefined> {
    const { anchors, from } = this.#options;
    const [link, tree, store, counters] = [this.#link, this.#tree, this.#store, this.#counters];
    return (
      (await this.#source.end({ from, link, tree, changed: this.#changed })) ??
      tooShort(link, anchors) ??
      this.#missing.first ??
      this.#uses.first ??
      (tree && store?.compareTree?.(tree)) ??
      counters?.findDamage(link.seq + 1) ??
      (tree && (await counters?.rest(link.seq))) ??
      (await this.#approvals?.end(link.seq)) ??
      (await this.#outcomes?.end(link.seq)) ??
      (tree && store && (await changedRepeat(store, link.seq))) ??
      (tree && store && (await strayNodes(store.tables, link.seq)))
    );
  }
}

/** Returns the finding with the lowest row; on the same row, the first of them. */
function first(...broken: readonly (Mistake | undefined)[]): Mistake | undefined {
  return broken.reduce((least, next) =>
    next !== undefined && (least === undefined || next.seq < least.seq) ? next : least,
  );
}
