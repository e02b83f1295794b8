import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gateSettings, load, start, type Load, type Server } from "../check.ts";
import { atMost, median, medianInterval, printTable, round, shown, type Measures } from "../report.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** One round: each checkout is loaded once, and the other one comes first in the next round. */
interface Pair {
  readonly before: Load;
  readonly after: Load;
}

/**
 * Compares the processor time of a check with that of another checkout (`BENCH_BASE`, a folder that is set up), for a
 * contract that never escalates. Both gates read the same mandate.
 */
export async function measureCpu(folder: string, rounds: number): Promise<Measures> {
  const base = process.env["BENCH_BASE"];
  if (base === undefined) throw new Error("set BENCH_BASE to the folder of a checkout from before approvals");
  const mandate = writeMandate(folder);
  const servers: Server[] = [];
  const startGate = async (checkout: string, name: string): Promise<Server> => {
    const settings = { ...gateSettings(join(folder, name)), SVC_MANDATE: mandate };
    const server = await start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], settings, checkout);
    servers.push(server);
    return server;
  };
  try {
    const gates = { before: await startGate(base, "before"), after: await startGate(root, "after") };
    const pairs: Pair[] = [];
    for (let index = -2; index < rounds; index += 1) {
      const pair = await inTurn(gates, index % 2 === 0);
      if (index >= 0) pairs.push(pair); // The first two rounds warm both up.
    }
    return report(pairs);
  } finally {
    for (const { child } of servers) child.kill("SIGKILL");
  }
}

async function inTurn(gates: Readonly<Record<keyof Pair, Server>>, isBeforeFirst: boolean): Promise<Pair> {
  if (isBeforeFirst) return { before: await load(gates.before, 64, 1), after: await load(gates.after, 64, 1) };
  const after = await load(gates.after, 64, 1);
  return { before: await load(gates.before, 64, 1), after };
}

/** The payments of the other benchmarks. Where they ask a person, this contract refuses. */
function writeMandate(folder: string): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "payments.yaml"), neverEscalating());
  const file = join(folder, "mandate.yaml");
  writeFileSync(file, "mandate: bench\ncontracts: [payments.yaml]\n");
  return file;
}

export function neverEscalating(): string {
  const text = readFileSync(join(root, "bench", "contracts", "payments.yaml"), "utf8");
  return text.replaceAll("verdict: ESCALATE", "verdict: BLOCK");
}

function report(pairs: readonly Pair[]): Measures {
  const ratio = medianInterval(pairs.map(({ before, after }) => after.cpuMicros / before.cpuMicros));
  const of = (side: keyof Pair): number => round(median(pairs.map((pair) => pair[side].cpuMicros)));
  console.log(`\nA contract that never escalates, 64 connections, ${pairs.length} rounds of 1 s`);
  printTable([
    ["", "before", "after", "after / before"],
    ["CPU for each check, us", of("before"), of("after"), shown(ratio)],
  ]);
  return { cpu_of_before: atMost(ratio.median, 1.01) };
}
