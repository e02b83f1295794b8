import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Figures } from "../../../bench/scale/plan.ts";
import { openPostgres } from "../../../packages/gate/src/ledger/store/postgres/postgres.ts";
import type { LedgerStore, StoredEffect } from "../../../packages/gate/src/ledger/store/store.ts";
import type { StoredRow } from "../../../packages/core/src/record/entry/row.ts";
import { apiKey, root, spawnGate } from "../../support/gate-process.ts";
import type { PostgresServer } from "../../support/postgres-server.ts";
import { findCitus, startCluster, type Cluster } from "./cluster.ts";

// `npm run distributed -- measure`: the figures of bench/scale, on this machine, as one JSON object.
const cleanups: (() => Promise<void> | void)[] = [];

async function measure(): Promise<void> {
  try {
    const found = findCitus();
    if ("missing" in found) throw new Error(found.missing);
    const cluster = await startCluster({ after: (clean) => void cleanups.push(clean) }, found.binaries);
    const { single, many, bytesPerCheck } = await measureStore(cluster);
    const line = (pick: (transaction: AppendTransaction) => number): readonly [number, number] => {
      const perRow = (pick(many) - pick(single)) / (many.rows - single.rows);
      return [round(pick(single) - perRow), round(perRow)];
    };
    const [cycleMs, cycleMsPerRow] = line(({ ms }) => ms);
    const [databaseMsPerBatch, databaseMsPerRow] = line(({ workersMs }) => workersMs);
    const [coordinatorMsPerBatch, coordinatorMsPerRow] = line(({ coordinatorMs }) => coordinatorMs);
    const figures: Figures = {
      gateMsPerCheck: round(await measureGate(cluster)),
      cycleMs,
      cycleMsPerRow,
      databaseMsPerBatch,
      databaseMsPerRow,
      coordinatorMsPerBatch,
      coordinatorMsPerRow,
      bytesPerCheck,
    };
    console.log(JSON.stringify(figures, undefined, 2));
  } finally {
    for (const clean of cleanups.toReversed()) await clean();
  }
}

/** One batch: its length and its processor time. */
interface AppendTransaction {
  readonly rows: number;
  readonly ms: number;
  readonly coordinatorMs: number;
  readonly workersMs: number;
}

interface Measured {
  readonly single: AppendTransaction;
  readonly many: AppendTransaction;
  readonly bytesPerCheck: number;
}

/** Commits batch after batch to one ledger alone, as a gate does: each row reads and updates two counters. */
async function measureStore(cluster: Cluster): Promise<Measured> {
  const database = await openPostgres({ url: cluster.servingUrl });
  try {
    const store = await database.open({ ledger: "measured", log: undefined });
    const counters = ["a".repeat(64), "b".repeat(64)];
    for (const digest of counters)
      await inTransaction(store, (transaction) =>
        transaction.keepCounter({ digest, definition: "{}", through: null, unknownThrough: -1 }, []),
      );
    const adding = new Adding(store, counters);
    await transactions(cluster, adding, 1, 1000);
    const single = await transactions(cluster, adding, 1, 4000);
    await transactions(cluster, adding, 256, 1000);
    const many = await transactions(cluster, adding, 256, 4000);
    const bytesPerCheck = Math.round((await bytesOf(cluster)) / adding.seq);
    return { single, many, bytesPerCheck };
  } finally {
    await database.close();
  }
}

type StoreTransaction = Awaited<ReturnType<LedgerStore["begin"]>>;

async function inTransaction(
  store: LedgerStore,
  work: (transaction: StoreTransaction) => Promise<void>,
): Promise<void> {
  const transaction = await store.begin();
  await work(transaction);
  await transaction.commit([], []);
}

/** Adds rows of the size of payments. */
class Adding {
  readonly #store: LedgerStore;
  readonly #counters: readonly string[];
  readonly #keys = Array.from({ length: 1000 }, () => randomBytes(32).toString("hex"));
  seq = 0;

  constructor(store: LedgerStore, counters: readonly string[]) {
    this.#store = store;
    this.#counters = counters;
  }

  async add(rows: number): Promise<void> {
    const transaction = await this.#store.begin();
    const from = this.seq;
    const effects = Array.from({ length: rows }, (_, at) => this.#effects(from + at + 1));
    await transaction.values(effects.flat().map(({ counter, key }) => ({ counter, key, after: -1 })));
    await transaction.commit(
      effects.map((_, at) => this.#row(from + at + 1)),
      effects.flat(),
    );
    this.seq += rows;
  }

  #row(seq: number): StoredRow {
    const text = (bytes: number): string => randomBytes(bytes).toString("base64url");
    return {
      seq,
      leaf: text(400),
      evidence: text(900),
      session: `run-${seq >> 3}`,
      tool: "payment.send",
      verdict: "ALLOW",
    };
  }

  #effects(seq: number): readonly StoredEffect[] {
    const key = this.#keys[seq % this.#keys.length] ?? "";
    return this.#counters.map((counter) => ({ seq, at: 1_790_000_000_000 + seq, counter, key, amount: "1.5" }));
  }
}

async function transactions(
  { coordinator, workers }: Cluster,
  adding: Adding,
  rows: number,
  forMs: number,
): Promise<AppendTransaction> {
  const cpu = (servers: readonly PostgresServer[]): number => servers.reduce((sum, server) => sum + cpuMs(server), 0);
  const [coordinatorBefore, workersBefore, from] = [cpu([coordinator]), cpu(workers), performance.now()];
  let count = 0;
  for (; performance.now() - from < forMs; count += 1) await adding.add(rows);
  return {
    rows,
    ms: (performance.now() - from) / count,
    coordinatorMs: (cpu([coordinator]) - coordinatorBefore) / count,
    workersMs: (cpu(workers) - workersBefore) / count,
  };
}

/** Returns the processor time of a server and its processes, ended ones included (proc(5), in ticks of 10 ms). */
function cpuMs({ folder }: PostgresServer): number {
  const main = Number(readFileSync(join(folder, "postmaster.pid"), "utf8").split("\n")[0]);
  const children = readFileSync(`/proc/${main}/task/${main}/children`, "utf8").trim().split(" ").filter(Boolean);
  const ticks = [main, ...children].map((pid) => {
    const fields = statOf(pid);
    const own = Number(fields[11]) + Number(fields[12]);
    return pid === main ? own + Number(fields[13]) + Number(fields[14]) : own;
  });
  return ticks.reduce((sum, next) => sum + next, 0) * 10;
}

function statOf(pid: number | string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  } catch {
    return Array.from({ length: 15 }, () => "0");
  }
}

/** Returns the size of all shards, with indexes. */
async function bytesOf({ coordinator }: Cluster): Promise<number> {
  const [row] = await coordinator.run(
    "SELECT (citus_total_relation_size('svc_gate.receipts') + citus_total_relation_size('svc_gate.effects'))::float8 AS bytes",
  );
  return Number(row?.["bytes"]);
}

/** Measures a gate's processor time for one check: payments with counters over 64 connections. */
async function measureGate({ servingUrl }: Cluster): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-measure-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  const settings = {
    SVC_DATABASE_URL: servingUrl,
    SVC_MANDATE: join(root, "contracts", "payments.yaml"),
    SVC_MODE: "enforce",
    SVC_DATA_DIR: folder,
  };
  const gate = spawnGate(["serve"], { settings });
  cleanups.push(() => void gate.kill("SIGKILL"));
  const url = await said(gate, /listens on (\S+)\n/);
  await load(url, 2);
  const cpu = (): number => Number(statOf(gate.pid ?? 0)[11]) + Number(statOf(gate.pid ?? 0)[12]);
  const before = cpu();
  const total = await load(url, 6);
  return ((cpu() - before) * 10) / total;
}

async function load(url: string, seconds: number): Promise<number> {
  const args = [join(root, "bench", "load.ts"), url, "64", String(seconds), apiKey];
  const generator = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const result = JSON.parse(await said(generator, /^(\{.*\})\n/m)) as {
    readonly total: number;
    readonly failed: number;
  };
  console.log(JSON.stringify(result));
  return result.total;
}

function said({ stdout }: { readonly stdout: NodeJS.ReadableStream | null }, what: RegExp): Promise<string> {
  let text = "";
  return new Promise((resolve, reject) => {
    stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const found = what.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    });
    stdout?.once("end", () => reject(new Error(`ended with: ${text}`)));
  });
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}

await measure();
