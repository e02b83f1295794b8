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
 * Measures checks while many streams of events are open, and while none is, in turn. The rounds begin without streams and
 * with them alternately, so that neither side profits from a warmer machine.
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
    const [without, withStreams]: [Load[], Load[]] = [[], []];
    const memory: number[] = [];
    for (let at = -1; at < rounds; at += 1) {
      const sides = [
        async () => keep(without, at, await load(gate, 64, seconds)),
        () => beside(gate, keys, at),
      ] as const;
      for (const side of at % 2 === 0 ? sides : sides.toReversed()) await side();
    }
    report(without, withStreams, memory);

    async function beside(server: Server, open: readonly string[], at: number): Promise<void> {
      const all = await Promise.all(
        Array.from({ length: streams }, (_, n) => stream(server, open[n % open.length] ?? "")),
      );
      keep(withStreams, at, await load(server, 64, seconds));
      if (at >= 0) memory.push(residentMb(server));
      for (const each of all) each.destroy();
    }
  } finally {
    gate.child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The first round warms the gate up. */
function keep(loads: Load[], at: number, found: Load): void {
  if (at >= 0) loads.push(found);
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

function report(without: readonly Load[], withStreams: readonly Load[], memory: readonly number[]): void {
  const ratios = withStreams.map(({ perSecond }, at) => perSecond / (without[at]?.perSecond ?? Infinity));
  const [first = 0] = memory;
  console.log(`\n${streams} streams of events, ${rounds} rounds of ${seconds} s`);
  printTable([
    ["", "without streams", "with streams"],
    [
      "checks/s, 64 connections",
      ...[without, withStreams].map((side) => round(median(side.map((one) => one.perSecond)))),
    ],
    ["p99, ms", ...[without, withStreams].map((side) => round(median(side.map((one) => one.p99))))],
    ["resident MB in the first and the last round", round(first), round(memory.at(-1) ?? 0)],
  ]);
  conclude("events", {
    throughput_with_over_without: atLeast(median(ratios), 0.97),
    memory_last_over_first: atMost((memory.at(-1) ?? 0) / first, 1.15),
    failed: atMost(
      [...without, ...withStreams].reduce((sum, { failed }) => sum + failed, 0),
      0,
    ),
  });
}
