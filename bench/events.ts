import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request, type ClientRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gateSettings, load, residentMb, start, type Load, type Server } from "./check.ts";
import { atLeast, atMost, conclude, median, printTable, round } from "./report.ts";

const streams = Number(process.env["BENCH_STREAMS"] ?? 500);
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const seconds = Number(process.env["BENCH_SECONDS"] ?? 2);
/** A key may have 64 streams. */
const streamsOfKey = 50;

/**
 * Measures checks while many streams of events are open, before they are opened, and after they are closed. So neither side
 * profits from a gate that is warmer.
 */
export async function benchEvents(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const data = join(folder, "data");
  const gate = await start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], gateSettings(data));
  try {
    const operator = (JSON.parse(readFileSync(join(data, "operator.json"), "utf8")) as { readonly key: string }).key;
    const keys = await Promise.all(
      Array.from({ length: Math.ceil(streams / streamsOfKey) }, (_, at) => makeKey(gate, operator, `listener-${at}`)),
    );
    await load(gate, 64, seconds); // This warms the gate up.
    const before = await measured(gate);
    const all = await Promise.all(
      Array.from({ length: streams }, (_, at) => stream(gate, keys[at % keys.length] ?? "")),
    );
    await load(gate, 64, seconds);
    const beside = [...(await measured(gate)), ...(await measured(gate))];
    for (const each of all) each.destroy();
    await load(gate, 64, seconds);
    report([...before, ...(await measured(gate))], beside);
  } finally {
    gate.child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Round extends Load {
  readonly residentMb: number;
}

async function measured(server: Server): Promise<readonly Round[]> {
  const found: Round[] = [];
  for (let times = 0; times < rounds; times += 1) {
    const loaded = await load(server, 64, seconds);
    found.push({ ...loaded, residentMb: residentMb(server) });
  }
  return found;
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
  return new Promise((resolve, reject) => {
    const asked = request(`${url}/events`, { agent: false, headers: { authorization: `Bearer ${key}` } }, (answer) => {
      answer.resume();
      answer.on("error", () => undefined);
      if (answer.statusCode === 200) resolve(asked);
      else reject(new Error(`a stream was refused: ${answer.statusCode}`));
    });
    asked.on("error", reject);
    asked.end();
  });
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
