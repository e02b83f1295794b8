import { randomBytes } from "node:crypto";
import { isOpen, type Approval } from "../../../approvals/mod.ts";
import { limits } from "../../../wire/mod.ts";
import { readApprovals, voteRows } from "../../entry/approval-rows.ts";
import { erasedColumns, type Erasure } from "../../entry/erasure.ts";
import { withoutParts } from "../../entry/evidence.ts";
import { leafHash, parseLeaf } from "../../entry/leaf.ts";
import type { StoredRepeat } from "../../entry/repeat.ts";
import {
  changeColumns,
  resultVerdict,
  type KeptApproval,
  type StoredApproval,
  type StoredRow,
} from "../../entry/row.ts";
import type { Broken, StoredOutcome } from "../../entry/row.ts";
import { wrongCheck } from "../../entry/verifier.ts";
import { Fault, LedgerRefused } from "../../errors.ts";
import { Walk } from "../../history/walk.ts";
import { wrongNode, type Anchor } from "../../tree/walk.ts";
import {
  joinHashes,
  repeatsDeletedMax,
  type ApprovalLookup,
  type ApprovalQuery,
  type ApprovalsFound,
  type CommitOptions,
  type DeliveryNotes,
  type HistoryReader,
  type KeyNotes,
  type LedgerStore,
  type OpenedStore,
  type RowQuery,
  type Scrubbed,
  type StoredCounter,
  type StoredEffect,
  type StoreTransaction,
  type Verification,
} from "../store.ts";
import { CounterTables } from "./counter-tables.ts";

/** Rows of one slice of a long read, and their characters. */
const sliceRows = 512;
const sliceCharacters = 1_000_000;
/** The most approvals that are read at once: as many as may be open. */
const dueMax = 10_000;

/** What a ledger in memory consists of. It can be opened again after a close. */
export class MemoryTables {
  readonly log: string;
  readonly counterSecret: string = randomBytes(32).toString("hex");
  readonly rows: StoredRow[] = [];
  readonly counters: CounterTables = new CounterTables();
  readonly contracts: Map<string, string> = new Map();
  /** By level: the inner hashes of the tree. */
  readonly nodes: Map<number, string[]> = new Map();
  readonly approvals: Map<number, StoredApproval> = new Map();
  readonly outcomes: Map<number, StoredOutcome> = new Map();
  readonly repeats: Map<string, StoredRepeat> = new Map();
  readonly deliveries: Map<string, string> = new Map();
  readonly uses: Map<string, number> = new Map();
  signer: string | undefined;
  mode: string | undefined;
  firstKey: string | undefined;
  /** True if a call was ever parked for a person. */
  hasApprovals = false;
  wasOpened = false;
  isOpen = false;

  /** @param log the ledger's name */
  constructor(log: string = randomBytes(8).toString("hex")) {
    this.log = log;
  }

  get head(): StoredRow | undefined {
    return this.rows.at(-1);
  }
}

/** @throws {LedgerRefused} if the ledger is open already */
export function openMemory(tables: MemoryTables = new MemoryTables()): MemoryStore {
  if (tables.isOpen) throw new LedgerRefused("another gate is serving the ledger in memory");
  tables.isOpen = true;
  return new MemoryStore(tables);
}

/** The engine. Every method works at once; promises are there because the interface has them. */
export class MemoryStore implements LedgerStore {
  readonly opened: OpenedStore;
  readonly history: HistoryReader;
  readonly keyNotes: KeyNotes;
  readonly deliveries: DeliveryNotes;
  readonly #tables: MemoryTables;
  #headLeaf: string | undefined;
  #changed: number;

  constructor(tables: MemoryTables) {
    const { log, counterSecret, rows, head, signer, mode, firstKey, deliveries, uses } = tables;
    this.#tables = tables;
    this.#headLeaf = head?.leaf;
    this.#changed = lastChange(rows) ?? 0;
    this.opened = {
      log,
      created: !tables.wasOpened,
      counterSecret,
      head: head && { seq: head.seq, leaf: head.leaf },
      changed: this.#changed,
      signer,
      mode,
      firstKey,
      counters: tables.counters.counters,
      hasApprovals: tables.hasApprovals,
    };
    tables.wasOpened = true;
    this.history = historyOf(tables);
    this.keyNotes = {
      keepFirst: async (note) => void (tables.firstKey = note),
      uses: async () => uses,
      keepUses: async (later) => later.forEach((at, key) => uses.set(key, at)),
    };
    this.deliveries = {
      all: async () => deliveries,
      take: async (endpoint) => deliveries.get(endpoint) ?? "",
      keep: async (endpoint, _owner, note) => {
        deliveries.set(endpoint, note);
        return true;
      },
    };
  }

  async begin(): Promise<StoreTransaction> {
    const tables = this.#tables;
    const { head } = tables;
    const counters: (readonly [StoredCounter, readonly StoredEffect[]])[] = [];
    return {
      head: head && { seq: head.seq, leaf: head.leaf },
      changed: this.#changed,
      inForce: undefined,
      frontier: undefined,
      signer: undefined,
      at: undefined,
      hasApprovals: tables.hasApprovals,
      values: async (lookups) => lookups.map((lookup) => tables.counters.value(lookup)),
      approvals: async (lookup) => findApprovals(tables, lookup),
      dueApprovals: async (at) => dueApprovals(tables, at),
      rowsAt: (seqs) => this.history.rowsAt(seqs),
      outcomes: (seqs) => this.history.outcomes(seqs),
      repeats: async (ids) => ids.flatMap((id) => tables.repeats.get(id) ?? []),
      keepCounter: async (counter, folded) => void counters.push([counter, folded]),
      commit: async (rows, effects, options) => {
        this.#requireOrder(rows);
        tables.counters.require(effects, new Set(counters.map(([{ digest }]) => digest)));
        for (const [counter, folded] of counters) tables.counters.keep(counter, folded);
        this.#commit(rows, effects, options);
      },
      abort: async () => void counters.splice(0),
    };
  }

  /** @throws {Fault} if a row does not follow the one before it, or the last row is another */
  #requireOrder(rows: readonly StoredRow[]): void {
    const { head, rows: kept } = this.#tables;
    if (head?.leaf !== this.#headLeaf)
      throw new Fault("the ledger's last row is not the one that this gate wrote: somebody else has written to it");
    for (const [index, { seq }] of rows.entries())
      if (seq !== kept.length + index + 1) throw new Fault(`row ${seq} does not follow row ${kept.length + index}`);
  }

  #commit(rows: readonly StoredRow[], effects: readonly StoredEffect[], options: CommitOptions = {}): void {
    const tables = this.#tables;
    const {
      approvals = [],
      erasures = [],
      inForce,
      outcomes = [],
      released = [],
      repeats = [],
      signer,
      tree,
    } = options;
    tables.rows.push(...rows);
    this.#headLeaf = tables.head?.leaf;
    this.#changed = lastChange(rows) ?? this.#changed;
    tables.counters.add(effects);
    for (const { level, hash } of tree?.nodes ?? []) {
      const nodes = tables.nodes.get(level) ?? [];
      nodes.push(hash.toString("hex"));
      tables.nodes.set(level, nodes);
    }
    for (const erasure of erasures) erase(tables, erasure);
    for (const row of released) tables.counters.release([row, row]);
    for (const approval of approvals) tables.approvals.set(approval.row, approval);
    tables.hasApprovals ||= approvals.length > 0;
    for (const outcome of outcomes) tables.outcomes.set(outcome.seq, outcome);
    keepRepeats(tables.repeats, repeats);
    tables.signer = signer ?? tables.signer;
    tables.mode = this.#headLeaf === undefined ? (inForce?.mode ?? tables.mode) : undefined;
  }

  async keepContract(digest: string, text: string): Promise<void> {
    this.#tables.contracts.set(digest, text);
  }

  async keepCounter(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void> {
    this.#tables.counters.keep(counter, folded);
  }

  async keepSigner(verifier: string): Promise<string> {
    return (this.#tables.signer ??= verifier);
  }

  async *read({ before, from = 1, limit, ...query }: RowQuery): AsyncGenerator<readonly StoredRow[]> {
    const { outcomes, rows } = this.#tables;
    const isFound = filterOf(query, outcomes);
    let left = limit;
    for (let top = Math.min(before - 1, rows.length); top >= from && left > 0;) {
      const slice = sliceOf(rows, top - 1, -1).filter(({ seq }) => seq >= from);
      const found = slice.filter(isFound).slice(0, left);
      yield found;
      left -= found.length;
      top -= slice.length;
    }
  }

  checkpoint(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  async hasRoom(): Promise<boolean> {
    return true;
  }

  verify(from: number, anchors: readonly Anchor[]): Promise<Verification> {
    return verifyTables(this.#tables, this.history, from, anchors);
  }

  async scrub(): Promise<Scrubbed> {
    return "clean";
  }

  async close(): Promise<void> {
    this.#tables.isOpen = false;
  }
}

function historyOf(tables: MemoryTables): HistoryReader {
  const { rows, contracts, counters, approvals, outcomes, nodes } = tables;
  const at = (seqs: readonly number[]): readonly StoredRow[] => seqs.flatMap((seq) => rows[seq - 1] ?? []);
  const leaves = (from: number, count: number): readonly string[] =>
    rows.slice(from - 1, from - 1 + count).map(({ leaf }) => leaf);
  return {
    async *scan(from) {
      for (let next = from; next <= rows.length;) {
        const slice = sliceOf(rows, next - 1, 1);
        yield slice;
        next += slice.length;
      }
    },
    contractText: async (digest) => contracts.get(digest),
    counters: async () => counters.counters,
    totals: async (places) => counters.totals(places),
    hashes: async (level, from, count) => {
      const found = level === 0 ? leaves(from + 1, count).map(leafHash) : nodes.get(level)?.slice(from, from + count);
      return joinHashes(found ?? [], { level, from, count });
    },
    leaves: async (from, count) => leaves(from, count),
    approvals: async (query) => listApprovals(tables, query),
    outcomes: async (seqs) => seqs.flatMap((seq) => outcomes.get(seq) ?? []),
    taken: async (queries) => counters.taken(queries),
    rowsAt: async (seqs) => at(seqs),
    openHolds: async (seqs) =>
      seqs
        .filter((seq) => isOpen(approvals.get(seq) ?? { status: "used" }))
        .map((row) => ({ row, holds: counters.holdsOf(row) })),
    waiting: async (now) => {
      const waiting = [...approvals.values()].filter(({ status, ends }) => status === "pending" && (ends ?? 0) > now);
      const isLate = ({ row, ends }: StoredApproval): boolean =>
        2 * now - (ends ?? 0) > (parseLeaf(rows[row - 1]?.leaf ?? "")?.at ?? Infinity);
      return { calls: waiting.length, late: waiting.filter(isLate).length };
    },
  };
}

/** Rows of a bounded number and size, upwards or downwards from an index. */
function sliceOf(rows: readonly StoredRow[], from: number, step: 1 | -1): readonly StoredRow[] {
  const slice: StoredRow[] = [];
  let characters = 0;
  for (let index = from; slice.length < sliceRows && characters <= sliceCharacters; index += step) {
    const row = rows[index];
    if (row === undefined) break;
    slice.push(row);
    characters += row.leaf.length + row.evidence.length;
  }
  return slice;
}

function filterOf(
  { session, tool, verdict, refused, checks, outcome, leafHas = [] }: Omit<RowQuery, "before" | "from" | "limit">,
  outcomes: ReadonlyMap<number, StoredOutcome>,
): (row: StoredRow) => boolean {
  const isOfOutcome = ({ seq, leaf }: StoredRow): boolean =>
    outcome === "missing"
      ? !leaf.includes('"mode":"observe"') && !outcomes.has(seq)
      : outcomes.get(seq)?.status === outcome;
  return (row) =>
    (session === undefined || row.session === session) &&
    (tool === undefined || row.tool === tool) &&
    (verdict === undefined || row.verdict === verdict) &&
    (refused !== true || row.verdict === "BLOCK" || row.verdict === "ESCALATE") &&
    (checks !== true || (row.verdict !== changeColumns.verdict && row.verdict !== resultVerdict)) &&
    leafHas.every((text) => row.leaf.includes(text)) &&
    (outcome === undefined || isOfOutcome(row));
}

function lastChange(rows: readonly StoredRow[]): number | undefined {
  return rows.findLast(({ verdict }) => verdict === changeColumns.verdict)?.seq;
}

/** Forgets parts of checks, and the approvals of these checks but denials that hold without their call. */
function erase({ rows, approvals, counters }: MemoryTables, { parts, rows: ranges }: Erasure): void {
  const gone = parts.includes("call") ? erasedColumns : {};
  for (const [from, to] of ranges) {
    for (let seq = from; seq <= to; seq += 1) {
      const row = rows[seq - 1];
      if (row !== undefined && row.verdict !== changeColumns.verdict)
        rows[seq - 1] = { ...row, ...gone, evidence: withoutParts(row.evidence, parts) };
      const { status, record } = approvals.get(seq) ?? {};
      if (status !== "denied" || record?.includes('"call":{"attach":"') !== true) approvals.delete(seq);
    }
    counters.release([from, to]);
  }
}

function keepRepeats(kept: Map<string, StoredRepeat>, repeats: readonly StoredRepeat[]): void {
  if (repeats.length === 0) return;
  for (const repeat of repeats) kept.set(repeat.id, repeat);
  const oldest = (repeats[0]?.at ?? 0) - limits.repeatWithinMs;
  const old = [...kept.values()].filter(({ at }) => at < oldest);
  for (const { id } of old.toSorted((one, other) => one.at - other.at).slice(0, repeatsDeletedMax)) kept.delete(id);
}

function keptApprovals({ rows, approvals }: MemoryTables, isWanted: (approval: StoredApproval) => boolean) {
  return [...approvals.values()].filter(isWanted).flatMap(({ row, record }): readonly KeptApproval[] => {
    const asked = rows[row - 1];
    return asked === undefined ? [] : [{ row: asked, record }];
  });
}

function dueApprovals(tables: MemoryTables, at: number): readonly KeptApproval[] {
  const due = keptApprovals(tables, (each) => isOpen(each) && (each.ends ?? Infinity) <= at);
  const endOf = ({ row }: KeptApproval): number => tables.approvals.get(row.seq)?.ends ?? 0;
  return due.toSorted((one, other) => endOf(one) - endOf(other)).slice(0, dueMax);
}

function findApprovals(tables: MemoryTables, { attaches, rows, keys, at }: ApprovalLookup): ApprovalsFound {
  const mattersAt = ({ ends }: StoredApproval): boolean => ends !== null && ends > at;
  const kept = keptApprovals(
    tables,
    (each) =>
      rows.includes(each.row) ||
      (attaches.includes(each.attach) && each.ends !== null) ||
      (keys.includes(each.key) && each.status === "denied" && mattersAt(each)),
  );
  const open = [...tables.approvals.values()].filter((each) => isOpen(each) && mattersAt(each));
  return {
    kept,
    votes: voteRows(kept).flatMap((row) => tables.rows[row - 1] ?? []),
    holds: kept.flatMap(({ row }) => tables.counters.holdsOf(row.seq)),
    open: open.filter(({ key }) => keys.includes(key)).map(({ key, place }) => [key, place, 1]),
    all: open.length,
  };
}

/** Approvals, newest first. */
function listApprovals(tables: MemoryTables, query: ApprovalQuery): readonly Approval[] {
  const { before, limit, statuses, key, session, rows } = query;
  const found = keptApprovals(
    tables,
    (each) =>
      each.row < before &&
      (statuses?.includes(each.status) ?? true) &&
      (key === undefined || each.key === key) &&
      (rows?.includes(each.row) ?? true) &&
      (session === undefined || tables.rows[each.row - 1]?.session === session),
  );
  return readApprovals(found.toSorted((one, other) => other.row.seq - one.row.seq).slice(0, limit));
}

/** Walks the rows and the tree. The other tables are not compared: no disk can change them. */
function verifyTables(
  { log, rows, nodes: kept, contracts }: MemoryTables,
  history: HistoryReader,
  from: number,
  anchors: readonly Anchor[],
): Promise<Verification> {
  const walk = new Walk(
    {
      describe: async () => ({ log, rows: rows.length }),
      next: async (next) => {
        for await (const slice of history.scan(next)) return { rows: slice };
        return { rows: [] };
      },
      checks: async (leaves) => first(leaves, (leaf) => wrongCheck(leaf, (seq) => rows[seq - 1]?.leaf)),
      contract: async (digest) => contracts.get(digest),
      nodes: async (nodes) =>
        first(nodes, (node) => wrongNode(node, Buffer.from(kept.get(node.level)?.[node.index] ?? "", "hex"))),
      end: async () => undefined,
    },
    { from, anchors },
  );
  return walk.run();
}

function first<Each>(all: readonly Each[], wrong: (each: Each) => Broken | undefined): Broken | undefined {
  for (const each of all) {
    const broken = wrong(each);
    if (broken !== undefined) return broken;
  }
  return undefined;
}
