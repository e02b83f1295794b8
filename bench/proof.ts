import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { load, start, type Load, type Server } from "./check.ts";
import { fillElsewhere } from "./fill.ts";
import { atLeast, atMost, conclude, median, printTable, round } from "./report.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const rounds = 7;

interface Pair {
  readonly without: Load;
  readonly proven: Load;
}

/**
 * Measures the cost of signed heads: the gate is compared with the same gate without tree and signatures, in
 * alternating turns. Over a large ledger it measures the duration of a start after `kill -9`, and the size of a proof's
 * file.
 */
export async function benchProof(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const rows = Number(process.env["BENCH_ROWS"] ?? 1_000_000);
  fillElsewhere(join(folder, "large"), rows);
  const proofBytes = sizeOfProof(join(folder, "large"), Math.floor(rows / 2));
  const startMs = await measureUncleanStarts(join(folder, "large"));
  const gates = {
    without: await startGate(join(folder, "without"), ["--import", "./bench/without-proof.ts"]),
    proven: await startGate(join(folder, "proven"), []),
  };
  try {
    const full: Pair[] = [];
    const single: Pair[] = [];
    for (let transaction = 0; transaction <= rounds; transaction += 1) {
      const pairs = { full: await inTurn(gates, 64, 4, transaction), single: await inTurn(gates, 1, 2, transaction) };
      if (transaction === 0) continue; // the first transaction warms both up
      full.push(pairs.full);
      single.push(pairs.single);
    }
    report({ full, single, rows, proofBytes, startMs });
  } finally {
    for (const { child } of Object.values(gates)) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

type Gates = Readonly<Record<keyof Pair, Server>>;

async function inTurn(gates: Gates, connections: number, seconds: number, transaction: number): Promise<Pair> {
  if (transaction % 2 === 0)
    return {
      without: await load(gates.without, connections, seconds),
      proven: await load(gates.proven, connections, seconds),
    };
  const proven = await load(gates.proven, connections, seconds);
  return { without: await load(gates.without, connections, seconds), proven };
}

function startGate(folder: string, flags: readonly string[]): Promise<Server> {
  return start(["--max-semi-space-size=8", ...flags, "bin/svc-gate.mjs", "serve"], {
    SVC_MODE: "enforce",
    SVC_API_KEY: "bench-key-bench-key-bench-key",
    SVC_MANDATE: "bench/mandate.yaml",
    SVC_PORT: "0",
    SVC_DATA_DIR: folder,
    SVC_LOG: "warn",
  });
}

/** Measures starts after a load and a `kill -9`, so that there is a write-ahead log. */
async function measureUncleanStarts(folder: string): Promise<number> {
  const times: number[] = [];
  for (let transaction = 0; transaction < 4; transaction += 1) {
    const startedAt = performance.now();
    const gate = await startGate(folder, []);
    times.push(performance.now() - startedAt);
    await load(gate, 64, 1);
    gate.child.kill("SIGKILL");
  }
  return median(times.slice(1));
}

function sizeOfProof(folder: string, row: number): number {
  const file = join(folder, "row.tlog-proof");
  const made = spawnSync(process.execPath, ["bin/svc-gate.mjs", "prove", String(row), folder, "--out", file], {
    cwd: root,
    encoding: "utf8",
  });
  if (made.status !== 0) throw new Error(`no proof of row ${row}: ${made.stderr}`);
  return readFileSync(file).length;
}

interface Found {
  readonly full: readonly Pair[];
  readonly single: readonly Pair[];
  readonly rows: number;
  readonly proofBytes: number;
  readonly startMs: number;
}

function report({ full, single, rows, proofBytes, startMs }: Found): void {
  const ratio = (pairs: readonly Pair[], pick: (found: Load) => number): number =>
    median(pairs.map(({ without, proven }) => pick(proven) / pick(without)));
  const row = (name: string, pairs: readonly Pair[], pick: (found: Load) => number): (string | number)[] => [
    name,
    round(median(pairs.map(({ without }) => pick(without)))),
    round(median(pairs.map(({ proven }) => pick(proven)))),
    `${round(ratio(pairs, pick) * 100)} %`,
  ];
  console.log(`\n${rounds} rounds in turn, medians`);
  printTable([
    ["", "without proof", "signed heads", "ratio"],
    row("64 connections: answers/s", full, (found) => found.perSecond),
    row("64 connections: p99 ms", full, (found) => found.p99),
    row("64 connections: CPU per answer, us", full, (found) => found.cpuMicros),
    row("1 connection: answers/s", single, (found) => found.perSecond),
    row("1 connection: mean ms", single, (found) => found.mean),
  ]);
  console.log(`over ${rows} rows: a start after kill -9 takes ${round(startMs)} ms, a proof ${proofBytes} bytes`);
  conclude("proof", {
    throughput_of_without: atLeast(
      ratio(full, (found) => found.perSecond),
      0.9,
    ),
    start_after_kill_ms: atMost(startMs, 3000),
    proof_bytes: atMost(proofBytes, 2048),
  });
}
