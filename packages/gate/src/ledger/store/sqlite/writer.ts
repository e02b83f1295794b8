import { hasLedger } from "../../files/data-folder.ts";
import { statfsSync } from "node:fs";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { serveOpened } from "../calls.ts";
import { eraseParts, markCleared, scrub } from "./erase.ts";
import {
  createTables,
  explain,
  makeMissingError,
  logPagesMax,
  openForWriting,
  readCounters,
  readMeta,
  reserveBytes,
  takeOwnership,
  writeMeta,
  type Meta,
} from "./file.ts";
import { counterEntry, soundCounters } from "../checksums.ts";
import { storedValues } from "../tables.ts";
import { keepIn, queryFor, RunningTotals, type KeptCounters, type TotalQuery } from "../running-totals.ts";
import { ApprovalTables, type DueApprovals } from "./approval-tables.ts";
import { changeColumns } from "../../../../../core/src/record/entry/row.ts";
import { insertion } from "./insertion.ts";
import { OutcomeTables } from "./outcome-tables.ts";
import { RepeatTable } from "./repeat-table.ts";
import { SqliteTables } from "./tables.ts";
import type { TreeNode } from "../../../../../core/src/record/tree/merkle.ts";
import { LedgerRefused, NotKept } from "../../errors.ts";
import type {
  ApprovalLookup,
  ApprovalsFound,
  CommitOptions,
  OpenedStore,
  ScrubResult,
  StoredEffect,
  StoredLookup,
} from "../store.ts";
import type { StoredCounter, StoredHead } from "../tables.ts";
import { unpackRows, type PackedRows } from "./packed-rows.ts";

export interface OpenOptions {
  readonly folder: string;
  /** The name of a new ledger. */
  readonly log: string | undefined;
  /** True if something outside the folder has observed the ledger, so that a new one must not be created. */
  readonly mustExist: boolean;
}

/** A counter and the folded events that are written in the transaction of a batch. */
export type KeptTogether = readonly [counter: StoredCounter, folded: readonly StoredEffect[]];

/** The changes that a batch makes besides its rows and their events. */
export interface WriteOptions extends Omit<CommitOptions, "inForce" | "tree"> {
  /** The mode of the ledger from now on, if it changes. */
  readonly mode: string | undefined;
  readonly counters: readonly KeptTogether[];
  readonly nodes: readonly TreeNode[];
}

/** The only connection that writes. It is synchronous and runs in its own thread. */
class Writer {
  readonly opened: OpenedStore;
  readonly #tables: SqliteTables;
  readonly #folder: string;
  readonly #lock: DatabaseSync;
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #end: StatementSync;
  readonly #insertRow: StatementSync;
  readonly #insertEffect: StatementSync;
  readonly #insertNode: StatementSync;
  readonly #latest: StatementSync;
  readonly #totalThrough: StatementSync;
  readonly #head: StatementSync;
  readonly #log: StatementSync;
  #counters: KeptCounters;
  /** Totals that `values` has read, so that the commit does not read them again. */
  readonly #totals = new RunningTotals();
  readonly #approvals: ApprovalTables;
  readonly #outcomes: OutcomeTables;
  readonly #repeats: RepeatTable;
  /** The leaf that this owner wrote last. Each commit checks that it is still the last one. */
  #headLeaf: string | undefined;
  #meta: Meta;

  constructor({ folder, log, mustExist }: OpenOptions, lock: DatabaseSync, database: DatabaseSync) {
    this.#folder = folder;
    this.#lock = lock;
    this.#database = database;
    this.#tables = new SqliteTables(database);
    const found = readMeta(database);
    const created = found === undefined;
    if (created && mustExist) throw makeMissingError(folder);
    const meta = found ?? createTables(database, log);
    if (created) markCleared(database);
    this.#meta = meta;
    this.#begin = this.#database.prepare("BEGIN IMMEDIATE");
    this.#end = this.#database.prepare("COMMIT");
    this.#head = this.#database.prepare("SELECT seq, leaf FROM receipts ORDER BY seq DESC LIMIT 1");
    this.#insertRow = insertion(this.#database, "receipts");
    this.#insertEffect = insertion(this.#database, "effects");
    this.#insertNode = insertion(this.#database, "nodes");
    this.#latest = this.#database.prepare(
      "SELECT at, total FROM effects WHERE counter = ? AND key = ? ORDER BY at DESC, seq DESC LIMIT 1",
    );
    this.#totalThrough = this.#database.prepare(
      "SELECT total FROM effects WHERE counter = ? AND key = ? AND at <= ? ORDER BY at DESC, seq DESC LIMIT 1",
    );
    this.#log = this.#database.prepare("PRAGMA wal_checkpoint(NOOP)");
    this.#counters = soundCounters(readCounters(database), ["in the ledger's file", "the file"]);
    this.#approvals = new ApprovalTables(this.#database, this.#tables);
    this.#outcomes = new OutcomeTables(this.#database);
    this.#repeats = new RepeatTable(this.#database);
    const head = this.#readHead();
    this.#headLeaf = head?.leaf;
    const changed = this.#database
      .prepare("SELECT max(seq) AS seq FROM receipts WHERE verdict = ? AND verdict <> 'ALLOW'")
      .get(changeColumns.verdict)?.["seq"];
    this.scrub(true); // A kill or a reader may have stopped the previous owner from doing it.
    const { hasApprovals } = this.#approvals;
    this.opened = { ...meta, created, head, changed: Number(changed ?? 0), counters: this.counters(), hasApprovals };
  }

  counters(): readonly StoredCounter[] {
    return [...this.#counters.values()];
  }

  values(lookups: readonly StoredLookup[]): readonly (string | undefined)[] {
    return lookups.map((lookup) => {
      const query = queryFor(lookup, this.#counters);
      return query && this.#outcomes.withoutTaken(query, this.#approvals.addReserved(query, this.#sum(query)));
    });
  }

  approvals(lookup: ApprovalLookup): ApprovalsFound {
    return this.#approvals.find(lookup, this.#counters);
  }

  dueApprovals(at: number): DueApprovals {
    return this.#approvals.due(at);
  }

  where(...query: Parameters<SqliteTables["where"]>): ReturnType<SqliteTables["where"]> {
    return this.#tables.where(...query);
  }

  #sum(query: TotalQuery): string {
    const { id, bytes, after } = query;
    const latest = this.#latest.get(id, bytes);
    const totalAtMoment = (): unknown => this.#totalThrough.get(id, bytes, after)?.["total"];
    return this.#totals.sum(query, [latest?.["at"], latest?.["total"]], totalAtMoment);
  }

  commit(packed: PackedRows, effects: readonly StoredEffect[], options: WriteOptions): void {
    const { counters, nodes, signer, mode } = options;
    const { erasures = [], approvals = [], released = [], repeats = [], outcomes = [] } = options;
    this.#requireRoom();
    this.#begin.run();
    if (this.#readHead()?.leaf !== this.#headLeaf)
      throw new Error(
        "the ledger's last row is not the one that this gate wrote: somebody else has written to the file",
      );
    let headLeaf = this.#headLeaf;
    for (const { seq, session, tool, verdict, leaf, evidence } of unpackRows(packed)) {
      this.#insertRow.run(seq, session, tool, verdict, leaf, evidence);
      headLeaf = leaf;
    }
    for (const [counter, folded] of counters) this.#keep(counter, folded);
    this.#addEffects(effects, false);
    for (const { level, index, hash } of nodes) this.#insertNode.run(level, index, hash);
    for (const erasure of erasures) {
      eraseParts(this.#database, erasure);
      this.#approvals.erase(erasure);
    }
    this.#approvals.keep(approvals, released);
    this.#repeats.keep(repeats);
    this.#outcomes.keep(outcomes);
    // Rows name the mode.
    const keptMode = headLeaf === undefined ? (mode ?? this.#meta.mode) : undefined;
    const isOther = signer !== undefined || keptMode !== this.#meta.mode;
    const meta = isOther ? { ...this.#meta, signer: signer ?? this.#meta.signer, mode: keptMode } : this.#meta;
    if (isOther) writeMeta(this.#database, meta);
    this.#end.run();
    this.#meta = meta;
    this.#totals.clear();
    this.#headLeaf = headLeaf;
    this.#foldBack(logPagesMax);
  }

  /** Copies the log into the file, as far as no reader prevents it. @throws if the disk fails */
  #foldBack(fromPages: number): void {
    if (Number(this.#log.get()?.["log"]) >= fromPages) this.#database.exec("PRAGMA wal_checkpoint(PASSIVE)");
  }

  #requireRoom(): void {
    const { bavail, bsize } = statfsSync(this.#folder);
    if (bavail * bsize >= reserveBytes) return;
    this.#totals.clear(); // The transaction ends here, and a disk may stay full for long.
    throw new NotKept("disk-full", `under ${reserveBytes >> 20} MiB are free in ${this.#folder}`);
  }

  keepContract(digest: string, text: string): void {
    this.#database.prepare("INSERT OR IGNORE INTO contracts (digest, text) VALUES (?, ?)").run(digest, text);
    const kept = this.#database.prepare("SELECT text FROM contracts WHERE digest = ?").get(digest)?.["text"];
    if (kept !== text)
      throw new LedgerRefused(
        `the text of the contract ${digest} in the ledger is damaged: restore the file from a backup`,
      );
  }

  scrub(rewrite: boolean): ScrubResult {
    return scrub(this.#database, this.#folder, rewrite);
  }

  keepFirstKey(note: string): void {
    const meta = { ...this.#meta, firstKey: note };
    this.#database.exec("BEGIN IMMEDIATE");
    writeMeta(this.#database, meta);
    this.#database.exec("COMMIT");
    this.#meta = meta;
  }

  /** If it fails, neither memory nor the file changes, and batches continue. */
  keepCounter(kept: StoredCounter, folded: readonly StoredEffect[]): void {
    this.#requireRoom();
    const before = this.#counters;
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      this.#keep(kept, folded);
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#counters = before;
      this.#totals.clear();
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
    this.#foldBack(logPagesMax);
  }

  #keep(counter: StoredCounter, folded: readonly StoredEffect[]): void {
    const { kept, added } = keepIn(this.#counters, counter, folded);
    insertion(this.#database, "counters", "OR REPLACE").run(...storedValues("counters", counterEntry(kept)));
    this.#counters = new Map(this.#counters).set(kept.digest, kept);
    this.#addEffects(added, true);
    this.#totals.clear(); // A long fold has many keys.
  }

  /** Leaves the log as it is if a fault has interrupted a transaction. */
  close(): void {
    try {
      if (!this.#database.isTransaction) this.#foldBack(1);
    } finally {
      this.#database.close();
      this.#lock.close();
    }
  }

  keepDelivery(endpoint: string, note: string): void {
    this.#database.prepare("INSERT OR REPLACE INTO deliveries (endpoint, note) VALUES (?, ?)").run(endpoint, note);
  }

  deliveries(): ReadonlyMap<string, string> {
    const found = this.#database.prepare("SELECT endpoint, note FROM deliveries").all();
    return new Map(found.map(({ endpoint, note }) => [String(endpoint), String(note)]));
  }

  #addEffects(effects: readonly StoredEffect[], isFolded: boolean): void {
    for (const query of this.#totals.findMissing(effects, this.#counters)) this.#sum(query);
    for (const row of this.#totals.add(effects, this.#counters, isFolded)) this.#insertEffect.run(...row);
    this.#approvals.reserve(effects, this.#counters);
    this.#outcomes.take(effects, this.#counters, isFolded);
  }

  #readHead(): StoredHead | undefined {
    const row = this.#head.get();
    return row === undefined ? undefined : { seq: Number(row["seq"]), leaf: String(row["leaf"]) };
  }
}

/** Closes everything if opening fails: the thread lives on, and would keep the ledger locked. */
function openWriter(options: OpenOptions): Writer {
  const { folder, mustExist } = options;
  const lock = takeOwnership(folder);
  let database: DatabaseSync | undefined;
  try {
    if (mustExist && !hasLedger(folder)) throw makeMissingError(folder);
    database = openForWriting(folder);
    return new Writer(options, lock, database);
  } catch (error) {
    database?.close();
    lock.close();
    throw error;
  }
}

serveOpened(
  (options: OpenOptions) => {
    try {
      const writer = openWriter(options);
      return { opened: writer, said: writer.opened };
    } catch (error) {
      throw explain(error, options.folder);
    }
  },
  [
    "approvals",
    "dueApprovals",
    "where",
    "values",
    "commit",
    "scrub",
    "keepFirstKey",
    "keepDelivery",
    "deliveries",
    "keepContract",
    "keepCounter",
    "counters",
  ],
);
