import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { ClientRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { besideStreams, openStream, type Round } from "./beside.ts";
import { gateSettings, start, type Server } from "./check.ts";
import { atLeast, atMost, conclude, median, printTable, round } from "./report.ts";

const streams = Number(process.env["BENCH_STREAMS"] ?? 500);
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const seconds = Number(process.env["BENCH_SECONDS"] ?? 2);
/** A key may have 64 streams. */
const streamsOfKey = 50;

/** Measures checks while many streams of events are open, and without them. */
export async function benchEvents(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const data = join(folder, "data");
  const gate = await start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], gateSettings(data));
  try {
    const operator = (JSON.parse(readFileSync(join(data, "operator.json"), "utf8")) as { readonly key: string }).key;
    const keys = await Promise.all(
      Array.from({ length: Math.ceil(streams / streamsOfKey) }, (_, at) => makeKey(gate, operator, `listener-${at}`)),
    );
    const open = (): Promise<readonly ClientRequest[]> =>
      Promise.all(Array.from({ length: streams }, (_, at) => stream(gate, keys[at % keys.length] ?? "")));
    const { without, beside } = await besideStreams(gate, { rounds, seconds, open });
    report(without, beside);
  } finally {
    gate.child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

async function makeKey({ url }: Server, operator: string, name: string): Promise<string> {
  const made = await fetch(`${url}/admin/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    body: JSON.stringify({ name, scopes: ["receipts"] }),
  });
  if (made.status !== 201) throw new Error(`a key was not made: ${await made.text()}`);
  return ((await made.json()) as { readonly key: string }).key;
}

function stream({ url }: Server, key: string): Promise<ClientRequest> {
  return openStream(`${url}/events`, { authorization: `Bearer ${key}` });
}

function report(without: readonly Round[], beside: readonly Round[]): void {
  const row = (name: string, pick: (found: Round) => number): readonly (string | number)[] => [
    name,
    ...[without, beside].map((side) => round(median(side.map(pick)))),
  ];
  console.log(`\n${streams} streams of events, ${2 * rounds} rounds of ${seconds} s for each side`);
  printTable([
    ["", "without streams", "with streams"],
    row("checks/s, 64 connections", ({ perSecond }) => perSecond),
    row("p99, ms", ({ p99 }) => p99),
    row("processor time of the gate for each check, \u00b5s", ({ cpuMicros }) => cpuMicros),
    row("resident MB", ({ residentMb: resident }) => resident),
  ]);
  const both = (pick: (found: Round) => number): readonly [number, number] => [
    median(without.map(pick)),
    median(beside.map(pick)),
  ];
  // Other work on the machine changes the throughput more than streams do, and the processor time hardly.
  const [cpuWithout, cpuBeside] = both(({ cpuMicros }) => cpuMicros);
  const [mbWithout, mbBeside] = both(({ residentMb: resident }) => resident);
  conclude("events", {
    checks_for_each_processor_second_with_over_without: atLeast(cpuWithout / cpuBeside, 0.97),
    memory_with_over_without: atMost(mbBeside / mbWithout, 1.1),
    failed: atMost(
      [...without, ...beside].reduce((sum, { failed }) => sum + failed, 0),
      0,
    ),
  });
}
