import { readFile, rename, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isOpen } from "../../../../../core/src/approvals/mod.ts";
import { files, hasLedger } from "../../files/data-folder.ts";
import { makeMissingError, makeNoLedgerError, reserveBytes } from "./file.ts";
import type { KeptTogether, OpenOptions, WriteOptions } from "./writer.ts";
import type {
  DeliveryNotes,
  KeyNotes,
  LedgerStore,
  OpenedStore,
  ScrubResult,
  StoredEffect,
  StoreTransaction,
  Verification,
} from "../store.ts";
import type { StoredCounter, StoredHead } from "../tables.ts";
import { makeTables, type Description, type Tables } from "../tables.ts";
import type { Anchor } from "../../../../../core/src/record/tree/walk.ts";
import type { DueApprovals } from "./approval-tables.ts";
import {
  changeColumns,
  type Mistake,
  type StoredRow,
  type KeptApproval,
} from "../../../../../core/src/record/entry/row.ts";
import { packRows } from "./packed-rows.ts";
import { inSteps, type InTurn } from "../steps.ts";
import { Threads, type Remote } from "../threads.ts";

/** Threads that many ledgers share. */
export interface SqliteThreads {
  readonly writers: Threads;
  readonly readers: Threads;
}

/** @param max the number of threads that write, and of threads that read; more ledgers share them */
export function sqliteThreads(max: number): SqliteThreads {
  return {
    writers: new Threads(new URL("./writer.ts", import.meta.url), max),
    readers: new Threads(new URL("./reader.ts", import.meta.url), max),
  };
}

/** For ledgers that have their own threads. */
const ownThreads = sqliteThreads(Infinity);

/**
 * Opens the embedded store: SQLite with a write-ahead log in one folder, which one thread writes and another reads.
 *
 * @param threads by default the store has its own
 * @throws {LedgerRefused} if the ledger has another owner, is damaged, or is missing although it must exist
 */
export async function openSqlite(options: OpenOptions, threads: SqliteThreads = ownThreads): Promise<LedgerStore> {
  const { remote, said } = await threads.writers.open(options);
  return new SqliteStore(options.folder, said as OpenedStore, remote, threads.readers);
}

const nothing: Promise<readonly (string | undefined)[]> = Promise.resolve([]);

/** A ledger without a read for this long gives its reading thread back. */
const idleMs = 5000;

class SqliteStore implements LedgerStore {
  readonly opened: OpenedStore;
  readonly tables: Tables;
  readonly keyNotes: KeyNotes;
  readonly deliveries: DeliveryNotes;
  readonly #folder: string;
  readonly #writer: Remote;
  readonly #readers: Threads;
  #reader: Promise<Remote> | undefined;
  #asking = 0;
  #idle: NodeJS.Timeout | undefined;
  #head: StoredHead | undefined;
  #changed: number;
  #hasApprovals: boolean;
  /** Milliseconds: no open approval ends before this moment. */
  #nextEnd = 0;

  constructor(folder: string, opened: OpenedStore, writer: Remote, readers: Threads) {
    this.#folder = folder;
    this.opened = opened;
    this.#writer = writer;
    this.#readers = readers;
    this.#head = opened.head;
    this.#changed = opened.changed;
    this.#hasApprovals = opened.hasApprovals;
    const tables = makeTables((name, ...args) => this.#ask(name, ...args));
    this.tables = {
      ...tables,
      // A start needs no reading thread for these, which come in no order with other reads.
      counters: async () => ({ kept: await writer.call("counters"), damaged: undefined }),
      // Metrics ask often. A ledger that has parked no call needs no reading thread for the answer.
      countWaiting: (at) => (this.#hasApprovals ? tables.countWaiting(at) : Promise.resolve({ calls: 0, late: 0 })),
    };
    this.keyNotes = keyNotesOf(folder, writer);
    const all = (): Promise<ReadonlyMap<string, string>> => writer.call("deliveries");
    // This process is the only owner, so nobody else can have the right to send.
    this.deliveries = {
      all,
      take: async (endpoint) => (await all()).get(endpoint) ?? "",
      keep: async (endpoint, _owner, note) => {
        await writer.call("keepDelivery", endpoint, note);
        return true;
      },
    };
  }

  /** This process is the only owner, so a transaction starts without a lock or a message. */
  begin(): Promise<StoreTransaction> {
    const counters: KeptTogether[] = [];
    return Promise.resolve({
      head: this.#head,
      changed: this.#changed,
      inForce: undefined,
      frontier: undefined,
      signer: undefined,
      at: undefined,
      hasApprovals: this.#hasApprovals,
      approvals: (lookup) => this.#writer.call("approvals", lookup),
      dueApprovals: (at) => this.#dueApprovals(at),
      tables: { where: (table, column, values) => this.#writer.call("where", table, column, values) },
      values: (lookups) => (lookups.length === 0 ? nothing : this.#writer.call("values", lookups)),
      keepCounter: (counter, folded) => {
        counters.push([counter, folded]);
        return Promise.resolve();
      },
      commit: (rows, effects, { inForce, tree, ...options } = {}) =>
        this.#commit(rows, effects, { ...options, counters, mode: inForce?.mode, nodes: tree?.nodes ?? [] }),
      abort: () => Promise.resolve(),
    });
  }

  /** Asks the writing thread only if the time of an open approval may be over. */
  async #dueApprovals(at: number): Promise<readonly KeptApproval[]> {
    if (at < this.#nextEnd) return [];
    const { kept, next } = await this.#writer.call<DueApprovals>("dueApprovals", at);
    if (kept.length === 0) this.#nextEnd = next;
    return kept;
  }

  async #commit(rows: readonly StoredRow[], effects: readonly StoredEffect[], options: WriteOptions): Promise<void> {
    const { approvals = [], counters, mode, nodes, signer } = options;
    const isNothing = rows.length + counters.length + nodes.length === 0 && mode === undefined && signer === undefined;
    if (isNothing) return;
    await this.#writer.call("commit", packRows(rows), effects, options);
    const last = rows.at(-1);
    if (last === undefined) return;
    this.#head = { seq: last.seq, leaf: last.leaf };
    this.#changed = rows.findLast(({ verdict }) => verdict === changeColumns.verdict)?.seq ?? this.#changed;
    this.#hasApprovals ||= approvals.length > 0;
    for (const { status, ends } of approvals)
      if (isOpen({ status }) && ends !== null) this.#nextEnd = Math.min(this.#nextEnd, ends);
  }

  async hasRoom(): Promise<boolean> {
    const { bavail, bsize } = await statfs(this.#folder);
    return bavail * bsize >= reserveBytes;
  }

  keepContract(digest: string, text: string): Promise<void> {
    return this.#writer.call("keepContract", digest, text);
  }

  keepCounter(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void> {
    return this.#writer.call("keepCounter", counter, folded);
  }

  scrub(rewrite: boolean): Promise<ScrubResult> {
    return this.#writer.call("scrub", rewrite);
  }

  verify(from: number, anchors: readonly Anchor[], inTurn?: InTurn): Promise<Verification> {
    return this.#withReader(async (reader) => {
      const walk = await reader.call<number>("startWalk", { from, anchors });
      return inSteps<Verification>(() => reader.call("goOn", walk), inTurn);
    });
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    await this.#endReader();
    await this.#writer.end();
  }

  #ask<Value>(name: string, ...args: readonly unknown[]): Promise<Value> {
    return this.#withReader((reader) => reader.call(name, ...args));
  }

  /** The reading thread starts with a read. After an idle time it rests or ends, which frees its memory. */
  async #withReader<Value>(read: (reader: Remote) => Promise<Value>): Promise<Value> {
    clearTimeout(this.#idle);
    this.#asking += 1;
    try {
      const reader = this.#reader;
      if ((await reader)?.hasEnded === true && this.#reader === reader) this.#reader = undefined;
      return await read(await this.#startedReader());
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0) this.#idle = setTimeout(() => void this.#endReader(), idleMs).unref();
    }
  }

  /** If the thread does not start, the next read tries again. */
  #startedReader(): Promise<Remote> {
    this.#reader ??= startReader(this.#readers, this.#folder).catch((error: unknown) => {
      this.#reader = undefined;
      throw error;
    });
    return this.#reader;
  }

  async #endReader(): Promise<void> {
    const reading = this.#reader;
    this.#reader = undefined;
    await (await reading)?.end();
  }
}

/** Stores the note about the first key in the database, and the uses of keys in a file next to it. */
function keyNotesOf(folder: string, writer: Remote): KeyNotes {
  const file = join(folder, files.keyUses);
  const uses = async (): Promise<ReadonlyMap<string, number>> => {
    try {
      const kept: unknown = JSON.parse(await readFile(file, "utf8"));
      return new Map(Object.entries(kept as Readonly<Record<string, number>>));
    } catch {
      return new Map();
    }
  };
  return {
    keepFirst: (note) => writer.call("keepFirstKey", note),
    uses,
    keepUses: async (later) => {
      const merged = new Map([...(await uses()), ...later]);
      await writeFile(`${file}.new`, `${JSON.stringify(Object.fromEntries(merged))}\n`, { mode: 0o600 });
      await rename(`${file}.new`, file);
    },
  };
}

async function startReader(readers: Threads, folder: string): Promise<Remote> {
  return (await readers.open(folder)).remote;
}

export interface InspectionOptions {
  readonly anchors: readonly Anchor[];
  readonly chainAlone: boolean;
  /** True if something outside the folder has observed the ledger. */
  readonly mustExist: boolean;
}

/** @throws {LedgerRefused} if there is no ledger, or if it cannot be read */
export async function readSqlite(
  folder: string,
): Promise<{ readonly tables: Tables; readonly close: () => Promise<void> }> {
  if (!hasLedger(folder)) throw makeNoLedgerError(folder);
  const reader = await startReader(ownThreads.readers, folder);
  return { tables: makeTables((name, ...args) => reader.call(name, ...args)), close: () => reader.end() };
}

/** The result of a walk. */
export interface InspectionResult extends Verification {
  /** The verifier key on record, if the ledger is sound. */
  readonly signer?: string | undefined;
}

/** Walks a ledger, whether or not a gate serves it. It never locks, writes or creates anything. */
export async function inspectSqlite(folder: string, inspection: InspectionOptions): Promise<InspectionResult> {
  const { anchors, chainAlone, mustExist } = inspection;
  if (!hasLedger(folder)) throw mustExist ? makeMissingError(folder) : makeNoLedgerError(folder);
  const reader = await startReader(ownThreads.readers, folder);
  try {
    const check = await reader.call<Verification>("verify", { from: 1, anchors, chainAlone });
    if (chainAlone) return check;
    const broken = check.broken ?? (await reader.call<Mistake | undefined>("structure"));
    if (broken !== undefined) return { ...check, broken };
    const { signer } = await reader.call<Description>("description");
    return { ...check, signer };
  } finally {
    await reader.end();
  }
}
