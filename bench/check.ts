import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fillElsewhere } from "./fill.ts";
import { atLeast, atMost, conclude, median, printTable, round } from "./report.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const key = "bench-key-bench-key-bench-key";
const rounds = 5;
const seconds = 4;

export interface Load {
  readonly perSecond: number;
  readonly total: number;
  readonly p50: number;
  readonly p99: number;
  readonly mean: number;
  readonly failed: number;
  /** The server's processor time for each answer, in microseconds. */
  readonly cpuMicros: number;
}

/**
 * Durable checks a second over HTTP in enforce mode with the payments contract, compared with a bare Fastify server in
 * alternating turns of the same run. Latency on one connection, compared with this disk's flush; resident memory over a
 * large ledger.
 */
export async function benchCheck(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const rows = Number(process.env["BENCH_ROWS"] ?? 1_000_000);
  fillElsewhere(join(folder, "data"), rows);
  const bare = await start(["bench/bare.ts"], {});
  const startedAt = performance.now();
  const gate = await start(
    ["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"],
    gateSettings(join(folder, "data")),
  );
  const startMs = performance.now() - startedAt;
  try {
    const flushMs = measureFlush(folder);
    const full: { readonly bare: Load; readonly gate: Load }[] = [];
    const single: { readonly bare: Load; readonly gate: Load }[] = [];
    for (let transaction = 0; transaction <= rounds; transaction += 1) {
      const pair = { bare: await load(bare, 64), gate: await load(gate, 64) };
      const alone = { bare: await load(bare, 1, 2), gate: await load(gate, 1, 2) };
      if (transaction === 0) continue; // the first transaction warms both up
      full.push(pair);
      single.push(alone);
    }
    report({ full, single, flushMs, rows, startMs, residentMb: residentMb(gate) });
  } finally {
    for (const { child } of [bare, gate]) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Found {
  readonly full: readonly { readonly bare: Load; readonly gate: Load }[];
  readonly single: readonly { readonly bare: Load; readonly gate: Load }[];
  readonly flushMs: number;
  readonly rows: number;
  readonly startMs: number;
  readonly residentMb: number;
}

function report({ full, single, flushMs, rows, startMs, residentMb: resident }: Found): void {
  const of = (pairs: Found["full"], pick: (load: Load) => number) => ({
    bare: median(pairs.map((pair) => pick(pair.bare))),
    gate: median(pairs.map((pair) => pick(pair.gate))),
    ratio: median(pairs.map((pair) => pick(pair.gate) / pick(pair.bare))),
  });
  const row = (name: string, pairs: Found["full"], pick: (load: Load) => number): (string | number)[] => {
    const { bare, gate, ratio } = of(pairs, pick);
    return [name, round(bare), round(gate), `${round(ratio * 100)} %`];
  };
  console.log(
    `\n${rows} rows in the ledger, ${rounds} rounds in turn, medians; one flush of this disk: ${round(flushMs)} ms (median)`,
  );
  printTable([
    ["", "bare Fastify", "svc-gate", "ratio"],
    row("64 connections: answers/s", full, (found) => found.perSecond),
    row("64 connections: p50 ms", full, (found) => found.p50),
    row("64 connections: p99 ms", full, (found) => found.p99),
    row("64 connections: CPU per answer, us", full, (found) => found.cpuMicros),
    row("1 connection: answers/s", single, (found) => found.perSecond),
  ]);
  const p99 = of(full, (found) => found.p99);
  conclude("check", {
    cpu_of_bare: atMost(of(full, (found) => found.cpuMicros).ratio, 2.8),
    throughput_of_bare: atLeast(of(full, (found) => found.perSecond).ratio, 0.4),
    p99_ms: atMost(p99.gate, 4 * p99.bare + flushMs),
    mean_one_connection_ms: atMost(1000 / of(single, (found) => found.perSecond).gate, flushMs + 0.45),
    resident_mb: atMost(resident, 200),
    start_ms: atMost(startMs, 2000),
    failed: atMost(
      full.concat(single).reduce((sum, pair) => sum + pair.bare.failed + pair.gate.failed, 0),
      0,
    ),
  });
}

export interface Server {
  readonly child: ChildProcess;
  readonly url: string;
}

/** The settings of a measured gate, with its ledger in this folder. */
export function gateSettings(data: string): Readonly<Record<string, string>> {
  return {
    SVC_MODE: "enforce",
    SVC_API_KEY: key,
    SVC_MANDATE: "bench/mandate.yaml",
    SVC_PORT: "0",
    SVC_DATA_DIR: data,
    SVC_LOG: "warn",
  };
}

/** @param checkout the folder whose program is started; by default this one */
export function start(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  checkout: string = root,
): Promise<Server> {
  const child = spawn(process.execPath, args, {
    cwd: checkout,
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  });
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`${args.join(" ")} ended with ${code}`)));
    child.stdout?.on("data", (chunk: Buffer) => {
      const url = /https?:\/\/[^\s]+/.exec(chunk.toString())?.[0];
      if (url !== undefined) resolve({ child, url });
    });
  });
}

/** @param bearer the key; by default the root's key in these benchmarks */
export async function load(
  { child, url }: Server,
  connections: number,
  duration: number = seconds,
  bearer: string = key,
): Promise<Load> {
  const before = cpuMicros(child);
  const text = await new Promise<string>((resolve, reject) => {
    const generator = spawn(process.execPath, ["bench/load.ts", url, String(connections), String(duration), bearer], {
      cwd: root,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    generator.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    generator.once("exit", (code) => (code === 0 ? resolve(out) : reject(new Error(`the load ended with ${code}`))));
  });
  const result = JSON.parse(text) as Omit<Load, "cpuMicros">;
  return { ...result, cpuMicros: (cpuMicros(child) - before) / result.total };
}

/** Returns a process's user and system time so far (proc(5), fields 14 and 15 in clock ticks of 10 ms). */
export function cpuMicros({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

export function residentMb({ child }: Server): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) / 1024;
}

/** Returns the median time to append 4 KiB and flush it, on the ledger's disk. */
export function measureFlush(folder: string): number {
  const flush = openFlush(folder);
  const times = Array.from({ length: 400 }, flush.once);
  flush.close();
  return median(times);
}

/** A file on the ledger's disk. `once` appends 4 KiB, flushes it and returns the milliseconds that this took. */
export function openFlush(folder: string): { readonly once: () => number; readonly close: () => void } {
  const file = openSync(join(folder, "flush"), "w");
  const page = Buffer.alloc(4096, 1);
  return {
    once: () => {
      const from = performance.now();
      writeSync(file, page);
      fdatasyncSync(file);
      return performance.now() - from;
    },
    close: () => closeSync(file),
  };
}
