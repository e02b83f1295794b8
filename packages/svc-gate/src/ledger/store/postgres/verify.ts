import { leafHash, type Leaf } from "../../entry/leaf.ts";
import { keyDigester } from "../../key-digests.ts";
import type { StoredRepeat } from "../../entry/repeat.ts";
import type { Broken, StoredRow, StoredOutcome } from "../../entry/row.ts";
import type { TabledApproval } from "../../history/approval-walk.ts";
import { wrongCheck, type Link } from "../../entry/verifier.ts";
import { anchorMismatch, tooShort } from "../../history/anchors.ts";
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
import type { TabledTaken } from "../../history/outcome-walk.ts";
import { walkStore, type StoreReader, type Walked, type WalkedSlice } from "../../history/walk.ts";
import type { TreeNode } from "../../tree/merkle.ts";
import { wrongNode, type Levels, type TreeWalk, type Anchor } from "../../tree/walk.ts";
import type { Pause } from "../steps.ts";
import type { Verification } from "../store.ts";
import {
  frontierOf,
  headRow,
  ledgerSeal,
  parseCounters,
  storedOutcomeOf,
  storedRepeatOf,
  storedRow,
  type HeadRow,
} from "./rows.ts";
import { ask, type BoundStatement } from "./sql.ts";

/** Rows that a walk reads at once, and characters. */
const slice = { rows: 128, characters: 1_000_000 } as const;

/** Sends statements together. No statement sees an older state than the one before it. */
export type Read = (...asked: readonly BoundStatement[]) => Promise<readonly (readonly (readonly unknown[])[])[]>;

export interface PostgresWalk {
  readonly ledger: string;
  readonly from: number;
  readonly anchors: readonly Anchor[];
}

/**
 * Walks a ledger from a row on, while others read and write.
 *
 * @param pause called before each slice
 */
export function verifyPostgres(
  read: Read,
  { ledger, ...options }: PostgresWalk,
  pause: Pause = () => Promise.resolve(),
): Promise<Verification> {
  return walkStore(new PostgresReader(read, ledger, pause), options);
}

const firstKey: EventKey = [-(2 ** 31), Buffer.alloc(0), Number.MIN_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
const lastKey: EventKey = [2 ** 31 - 1, Buffer.alloc(64, 255), Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];

class PostgresReader implements StoreReader {
  readonly #read: Read;
  readonly #ledger: string;
  readonly #pause: Pause;
  /** The last row at the beginning of the walk. */
  #rows = 0;
  /** The ledger's own row, read before the latest rows. */
  #head: HeadRow = headRow([]);
  #digest: (text: string) => string = keyDigester("");

  constructor(read: Read, ledger: string, pause: Pause) {
    this.#read = read;
    this.#ledger = ledger;
    this.#pause = pause;
  }

  async #ask(name: Parameters<typeof ask>[0], ...values: readonly unknown[]): Promise<readonly (readonly unknown[])[]> {
    const [rows = []] = await this.#read(ask(name, this.#ledger, ...values));
    return rows;
  }

  async describe(): Promise<Pick<Verification, "log" | "rows"> | Broken> {
    const [found = []] = await this.#ask("findLedger");
    const [log = "", secret = "", checksum = "", ...head] = found as readonly string[];
    const expected = "the description that it was made with";
    this.#digest = keyDigester(secret);
    if (checksum !== ledgerSeal(this.#ledger, log, secret))
      return { seq: 1, problem: "the ledger's description is not as it was", expected, found: "another" };
    this.#rows = headRow(head).seq;
    return { log, rows: this.#rows };
  }

  async last(): Promise<number> {
    const [head = []] = await this.#ask("readHead");
    return headRow(head).seq;
  }

  /** Reads the head before the rows, so that no row up to the head may be missing. */
  async next(from: number): Promise<WalkedSlice> {
    if (from <= this.#rows) await this.#pause(); // If it paused for rows that come meanwhile, it might never reach the last one.
    const lowest = from === 1 ? Number.MIN_SAFE_INTEGER : from;
    const scan = ask("scan", this.#ledger, lowest, slice.rows, slice.characters);
    const asked = [ask("readHead", this.#ledger), scan, ask("counters", this.#ledger)];
    const [head, found = [], counters = []] = await this.#read(...asked);
    this.#head = headRow(head?.[0] ?? []);
    return { rows: found.map(storedRow), counters: parseCounters(counters) };
  }

  async checks(leaves: readonly Leaf[]): Promise<Broken | undefined> {
    const results = leaves.filter(({ check }) => check !== null);
    if (results.length === 0) return undefined;
    const found = await this.#read(...results.map(({ check }) => ask("leafAt", this.#ledger, check)));
    const leafAt = (index: number): string | undefined => found[index]?.[0]?.[0] as string | undefined;
    return results.map((leaf, index) => wrongCheck(leaf, () => leafAt(index))).find((broken) => broken !== undefined);
  }

  async nodes(nodes: readonly TreeNode[]): Promise<Broken | undefined> {
    for (const node of nodes) {
      const [row] = await this.#ask("nodes", node.level, node.index, node.index);
      const broken = wrongNode(node, row?.[0] as Uint8Array | undefined);
      if (broken !== undefined) return broken;
    }
    return undefined;
  }

  async contract(digest: string): Promise<string | undefined> {
    const [row] = await this.#ask("contract", digest);
    return row?.[0] as string | undefined;
  }

  /** The chain must end with the row that the ledger's head record names. */
  end({ from, link, changed }: Walked): Promise<Broken | undefined> {
    return Promise.resolve(this.#parts(link) ?? this.#changedElsewhere(changed, from));
  }

  #parts(link: Link): Broken | undefined {
    const { leaf, seq } = this.#head;
    const anchors = leaf === null ? [] : [{ seq, hash: leafHash(leaf), by: "head row" }];
    if (link.seq <= seq) return tooShort(link, anchors) ?? anchorMismatch(link, anchors);
    const problem = "the head row does not know the last rows";
    return { seq: seq + 1, problem, expected: `no row ${seq + 1}`, found: `rows up to ${link.seq}` };
  }

  /** The head must name the last row of a person's act, because gates follow people's acts by it. */
  #changedElsewhere(walked: number | undefined, from: number): Broken | undefined {
    const { changed, seq } = this.#head;
    if (walked === undefined ? changed < from : changed === walked) return undefined;
    const problem = "the head row does not name the last row of a person's act";
    return { seq, problem, expected: String(walked ?? "an earlier row"), found: String(changed) };
  }

  kept(tree: TreeWalk): Broken | undefined {
    if (tree.size === 0) return undefined;
    const { checkpoint, signer } = this.#head;
    return tree.kept({
      frontier: frontierOf(this.#head) ?? "none",
      checkpoint: checkpoint ?? "",
      signer: signer ?? "",
    });
  }

  async counters(): Promise<Counters> {
    return parseCounters(await this.#ask("counters"));
  }

  async events(queries: readonly EventQuery[]): Promise<readonly StoredTotals[]> {
    const columns = [0, 1, 2, 3].map((column) => queries.map(({ key }) => key[column]));
    const rows = await this.#ask("walkedEvents", ...columns);
    return rows.map(([total, before]) => ({ total: textOf(total), before: textOf(before) }));
  }

  async tally(after: EventKey = firstKey, through: number): Promise<EventTally> {
    await this.#pause();
    const [end] = await this.#ask("walkedEnd", ...after, sliceEvents - 1);
    const to = end && keyOf(end);
    const [row] = await this.#ask("walkedTally", ...after, ...(to ?? lastKey), through);
    const [live = 0, folded = 0, beyond = 0, last = 0] = (row ?? []).map(Number);
    return { to, live, folded, beyond, last };
  }

  async folds(after: EventKey = firstKey, to: EventKey = lastKey): Promise<readonly FoldedRow[]> {
    const rows = await this.#ask("walkedFolds", ...after, ...to);
    return rows.map((columns) => {
      const [total, checksum, before] = columns.slice(4);
      return { key: keyOf(columns), total: String(total), checksum: String(checksum), before: textOf(before) };
    });
  }

  async recorded(after: number): Promise<readonly RecordedCount[]> {
    const rows = await this.#ask("walkedRows", after, sliceRows);
    return rows.map(([seq, count, evidence]) => [Number(seq), Number(count), textOf(evidence)]);
  }

  async contracts(after: string | undefined): Promise<readonly (readonly [digest: string, text: string])[]> {
    const rows = await this.#ask("contracts", after ?? null);
    return rows.map(([digest, text]) => [String(digest), String(text)] as const);
  }

  digest(text: string): string {
    return this.#digest(text);
  }

  async approvalsAt(rows: readonly number[]): Promise<readonly TabledApproval[]> {
    const { kept } = await this.counters();
    const digests = new Map(kept.map(({ id, digest }) => [id, digest]));
    const asked = [ask("walkedApprovals", this.#ledger, [...rows]), ask("holdsOf", this.#ledger, [...rows])];
    const [found = [], holds = []] = await this.#read(...asked);
    const held = Map.groupBy(holds, (columns) => Number(columns[3]));
    return found.map(([seq, attach, key, place, status, ends, record]) => ({
      row: Number(seq),
      attach: hexOf(attach),
      key: String(key),
      place: hexOf(place),
      status: String(status),
      ends: ends === null ? null : Number(ends),
      record: String(record),
      holds: (held.get(Number(seq)) ?? []).map(([counter, of, at, , amount]) => ({
        counter: digests.get(Number(counter)) ?? "?",
        key: hexOf(of),
        at: Number(at),
        amount: String(amount),
      })),
    }));
  }

  async approvalRows(after: number): Promise<readonly (Pick<StoredRow, "seq"> & Partial<StoredRow>)[]> {
    await this.#pause();
    const rows = await this.#ask("walkedApprovalRows", after, sliceRows);
    return rows.map((columns) => (columns[1] === null ? { seq: Number(columns[0]) } : storedRow(columns)));
  }

  async strayHold(): Promise<number | undefined> {
    const [row] = await this.#ask("strayHold");
    return row === undefined ? undefined : Number(row[0]);
  }

  async outcomesAt(rows: readonly number[]): Promise<readonly StoredOutcome[]> {
    return (await this.#ask("outcomesOf", [...rows])).map(storedOutcomeOf);
  }

  async outcomesAfter(row: number): Promise<readonly StoredOutcome[]> {
    await this.#pause();
    return (await this.#ask("walkedOutcomes", row, sliceRows)).map(storedOutcomeOf);
  }

  async takenAt(keys: readonly EventKey[]): Promise<readonly TabledTaken[]> {
    const columns = [0, 1, 2, 3].map((column) => keys.map((key) => key[column]));
    return (await this.#ask("walkedTakenAt", ...columns)).map(takenOf);
  }

  async takenAfter(key: EventKey = firstKey): Promise<readonly TabledTaken[]> {
    await this.#pause();
    return (await this.#ask("walkedTaken", ...key, sliceRows)).map(takenOf);
  }

  async repeats(after: string | undefined): Promise<readonly StoredRepeat[]> {
    const from = after === undefined ? null : Buffer.from(after, "hex");
    return (await this.#ask("walkedRepeats", from, sliceRows)).map(storedRepeatOf);
  }

  async rowsAt(rows: readonly number[]): Promise<readonly StoredRow[]> {
    return (await this.#ask("rowsAt", [...rows])).map(storedRow);
  }

  async levels(): Promise<Levels> {
    const [counted = [], head] = await this.#read(ask("countNodes", this.#ledger), ask("readHead", this.#ledger));
    const counts = new Map(counted.map(([level, count]) => [Number(level), Number(count)]));
    return { counts, last: headRow(head?.[0] ?? []).seq };
  }
}

function takenOf(columns: readonly unknown[]): TabledTaken {
  const [amount, outcome, folded] = columns.slice(4);
  return { key: keyOf(columns), amount: String(amount), outcome: Number(outcome), checksum: textOf(folded) ?? null };
}

function hexOf(value: unknown): string {
  return Buffer.from(value as Uint8Array).toString("hex");
}
