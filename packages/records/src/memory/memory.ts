import { isOpen } from "../../../core/src/approvals/mod.ts";
import { limits } from "../../../core/src/wire/mod.ts";
import { voteRows } from "../../../core/src/record/entry/approval-rows.ts";
import { erasedColumns, type Erasure } from "../../../core/src/record/entry/erasure.ts";
import { withoutParts } from "../../../core/src/record/entry/evidence.ts";
import type { StoredRepeat } from "../../../core/src/record/entry/repeat.ts";
import { changeColumns, type KeptApproval, type StoredRow } from "../../../core/src/record/entry/row.ts";
import { Fault, LedgerRefused } from "../../../gate/src/ledger/engine.ts";
import { TablesSource } from "../../../gate/src/ledger/engine.ts";
import { Walk } from "../../../gate/src/ledger/engine.ts";
import type { Anchor } from "../../../core/src/record/tree/walk.ts";
import {
  repeatsDeletedMax,
  type ApprovalLookup,
  type ApprovalsFound,
  type CommitOptions,
  type DeliveryNotes,
  type KeyNotes,
  type LedgerStore,
  type OpenedStore,
  type ScrubResult,
  type StoredEffect,
  type StoreTransaction,
  type Verification,
} from "../../../gate/src/ledger/engine.ts";
import type { StoredCounter } from "../../../gate/src/ledger/engine.ts";
import { withPromises, type Entry, type Tables } from "../../../gate/src/ledger/engine.ts";
import { keptApprovals, MemoryTables } from "./reads.ts";
import { MemoryLedger } from "./tables.ts";

/** The most approvals that are read at once: as many as may be open. */
const dueMax = 10_000;

/** @throws {LedgerRefused} if the ledger is open already */
export function openMemory(tables: MemoryLedger = new MemoryLedger()): MemoryStore {
  if (tables.isOpen) throw new LedgerRefused("another gate is serving the ledger in memory");
  tables.isOpen = true;
  return new MemoryStore(tables);
}

/** The engine. Every method works at once; promises are there because the interface has them. */
export class MemoryStore implements LedgerStore {
  readonly opened: OpenedStore;
  readonly tables: Tables;
  readonly keyNotes: KeyNotes;
  readonly deliveries: DeliveryNotes;
  readonly #tables: MemoryLedger;
  #headLeaf: string | undefined;
  #changed: number;

  constructor(tables: MemoryLedger) {
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
    this.tables = withPromises(new MemoryTables(tables));
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
      tables: this.tables,
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
    const { inForce, signer, tree } = options;
    const { approvals = [], erasures = [], outcomes = [], released = [], repeats = [] } = options;
    tables.rows.push(...rows);
    this.#headLeaf = tables.head?.leaf;
    this.#changed = lastChange(rows) ?? this.#changed;
    tables.counters.add(effects);
    for (const { level, index, hash } of tree?.nodes ?? [])
      tables.keep("nodes", { level, place: index, hash: hash.toString("hex") });
    for (const erasure of erasures) erase(tables, erasure);
    for (const row of released) tables.counters.release([row, row]);
    for (const approval of approvals) tables.keep("approvals", approval);
    tables.hasApprovals ||= approvals.length > 0;
    for (const outcome of outcomes) tables.keep("outcomes", outcome);
    keepRepeats(tables, repeats);
    tables.signer = signer ?? tables.signer;
    tables.mode = this.#headLeaf === undefined ? (inForce?.mode ?? tables.mode) : undefined;
  }

  async keepContract(digest: string, text: string): Promise<void> {
    this.#tables.keep("contracts", { digest, text });
  }

  async keepCounter(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void> {
    this.#tables.counters.keep(counter, folded);
  }

  async hasRoom(): Promise<boolean> {
    return true;
  }

  /** Walks the rows and the tree. The other tables are not compared: no disk can change them. */
  verify(from: number, anchors: readonly Anchor[]): Promise<Verification> {
    return new Walk(new TablesSource(this.tables, false), { from, anchors }).run();
  }

  async scrub(): Promise<ScrubResult> {
    return "clean";
  }

  async close(): Promise<void> {
    this.#tables.isOpen = false;
  }
}

function lastChange(rows: readonly StoredRow[]): number | undefined {
  return rows.findLast(({ verdict }) => verdict === changeColumns.verdict)?.seq;
}

/** Forgets parts of checks, and the approvals of these checks but denials that apply without their call. */
function erase({ rows, kept: { approvals }, counters }: MemoryLedger, { parts, rows: ranges }: Erasure): void {
  const gone = parts.includes("call") ? erasedColumns : {};
  for (const [from, to] of ranges) {
    for (let seq = from; seq <= to; seq += 1) {
      const row = rows[seq - 1];
      if (row !== undefined && row.verdict !== changeColumns.verdict)
        rows[seq - 1] = { ...row, ...gone, evidence: withoutParts(row.evidence, parts) };
      const { status, record } = approvals.get(String(seq)) ?? {};
      if (status !== "denied" || record?.includes('"call":{"attach":"') !== true) approvals.delete(String(seq));
    }
    counters.release([from, to]);
  }
}

function keepRepeats(tables: MemoryLedger, repeats: readonly StoredRepeat[]): void {
  for (const repeat of repeats) tables.keep("repeats", repeat);
  const oldest = (repeats[0]?.at ?? -Infinity) - limits.repeatWithinMs;
  const { repeats: kept } = tables.kept;
  const old = repeats.length === 0 ? [] : [...kept.values()].filter(({ at }) => at < oldest);
  for (const { id } of old.toSorted((one, other) => one.at - other.at).slice(0, repeatsDeletedMax)) kept.delete(id);
}

function dueApprovals(tables: MemoryLedger, at: number): readonly KeptApproval[] {
  const due = keptApprovals(tables, (each) => isOpen(each) && (each.ends ?? Infinity) <= at);
  const endOf = ({ row }: KeptApproval): number => tables.kept.approvals.get(String(row.seq))?.ends ?? 0;
  return due.toSorted((one, other) => endOf(one) - endOf(other)).slice(0, dueMax);
}

function findApprovals(tables: MemoryLedger, { attaches, rows, keys, at }: ApprovalLookup): ApprovalsFound {
  const mattersAt = ({ ends }: Entry<"approvals">): boolean => ends !== null && ends > at;
  const kept = keptApprovals(
    tables,
    (each) =>
      rows.includes(each.seq) ||
      (attaches.includes(each.attach) && each.ends !== null) ||
      (keys.includes(each.key) && each.status === "denied" && mattersAt(each)),
  );
  const open = [...tables.kept.approvals.values()].filter((each) => isOpen(each) && mattersAt(each));
  return {
    kept,
    votes: voteRows(kept).flatMap((row) => tables.rows[row - 1] ?? []),
    reservations: kept.flatMap(({ row }) => tables.counters.readReservations(row.seq)),
    open: open.filter(({ key }) => keys.includes(key)).map(({ key, place }) => [key, place, 1]),
    all: open.length,
  };
}
