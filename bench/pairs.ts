import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gateSettings, load, start, type Load, type Server } from "./check.ts";
import { conclude, median, printTable, round } from "./report.ts";

const rounds = Number(process.env["BENCH_ROUNDS"] ?? 7);
const seconds = Number(process.env["BENCH_SECONDS"] ?? 2);
const connectionCounts = (process.env["BENCH_CONNECTIONS"] ?? "64,1").split(",").map(Number);

/**
 * Compares this checkout's gate with the gate of another checkout (`BENCH_BASE`, a folder that is set up) and with bare
 * Fastify, in turn in one run. Each figure is the median of the ratios of the rounds, with the least and the greatest.
 */
export async function benchPairs(): Promise<void> {
  const base = process.env["BENCH_BASE"];
  if (base === undefined)
    throw new Error("set BENCH_BASE to the folder of another checkout, for example of the commit before");
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const servers: Server[] = [];
  try {
    const before = await startGate(base, join(folder, "before"), servers);
    const after = await startGate(process.cwd(), join(folder, "after"), servers);
    const bare = await start(["bench/bare.ts"], {});
    servers.push(bare);
    for (const connections of connectionCounts) {
      const found: Record<"before" | "after" | "bare", Load>[] = [];
      for (let index = -1; index < rounds; index += 1) {
        const turn = {
          before: await load(before, connections, seconds),
          after: await load(after, connections, seconds),
          bare: await load(bare, connections, seconds),
        };
        if (index >= 0) found.push(turn); // the first round warms all three up
      }
      report(connections, found);
    }
    conclude("pairs", {});
  } finally {
    for (const { child } of servers) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

async function startGate(checkout: string, data: string, servers: Server[]): Promise<Server> {
  const server = await start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], gateSettings(data), checkout);
  servers.push(server);
  return server;
}

function report(connections: number, found: readonly Record<"before" | "after" | "bare", Load>[]): void {
  const row = (name: string, pick: (load: Load) => number): (string | number)[] => [
    name,
    ...(["before", "after", "bare"] as const).map((side) => round(median(found.map((turn) => pick(turn[side]))))),
    interval(found.map(({ before, after }) => pick(after) / pick(before))),
    interval(found.map(({ bare, after }) => pick(after) / pick(bare))),
  ];
  console.log(`\n${connections} connections, ${found.length} rounds of ${seconds} s`);
  printTable([
    ["", "before", "after", "bare Fastify", "after / before", "after / bare"],
    row("CPU per answer, us", ({ cpuMicros }) => cpuMicros),
    row("answers/s", ({ perSecond }) => perSecond),
    row("mean ms", ({ perSecond }) => (connections * 1000) / perSecond),
    row("p99 ms", ({ p99 }) => p99),
  ]);
}

function interval(ratios: readonly number[]): string {
  return `${round(median(ratios))} [${round(Math.min(...ratios))}, ${round(Math.max(...ratios))}]`;
}
