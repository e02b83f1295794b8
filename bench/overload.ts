import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readLedger } from "../packages/svc-gate/src/ledger/mod.ts";
import { leafHash } from "../packages/svc-gate/src/ledger/entry/mod.ts";
import { residentMb, start, type Server } from "./check.ts";
import type { Flood, Seen, Sender } from "./flood.ts";
import { atLeast, atMost, conclude, median, printTable, round } from "./report.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const key = "bench-key-bench-key-bench-key";
const connections = 1024;
const bestConnections = 64;
const warmUpSeconds = 0.7;

/** A load on a gate for some time, and its results. */
interface Phase {
  readonly name: string;
  readonly seen: readonly Seen[];
  /** The gate's memory meanwhile, in MB. */
  readonly resident: readonly number[];
}

/**
 * Measures a gate under overload: its maximum rate, then one, two and four times that rate, with clients that wait for
 * answers and clients that do not. A second key sends a small load at the same time. The benchmark looks for every
 * answered receipt in the ledger.
 */
export async function benchOverload(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const data = join(folder, "data");
  const gate = await start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], {
    SVC_MODE: "enforce",
    SVC_API_KEY: key,
    SVC_MANDATE: "bench/mandate.yaml",
    SVC_PORT: "0",
    SVC_DATA_DIR: data,
    SVC_LOG: "warn",
  });
  try {
    const hashesFile = join(folder, "hashes");
    const found = await measure(gate, hashesFile, await makeKey(gate, data));
    const stopped = new Promise((resolve) => gate.child.once("exit", resolve));
    gate.child.kill("SIGTERM");
    await stopped;
    report(found, await lost(data, hashesFile));
  } finally {
    gate.child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One turn of the compared loads, so that other work on the machine affects all of them. */
interface Turn {
  readonly best: Phase;
  readonly fourfold: Phase;
  readonly waiting: Phase;
}

interface Found {
  readonly light: Phase;
  readonly transactions: readonly Turn[];
  readonly others: readonly Phase[];
  readonly alone: Phase;
  readonly beside: Phase;
}

async function measure(gate: Server, hashesFile: string, modestKey: string): Promise<Found> {
  const run = (name: string, seconds: number, ...senders: readonly Sender[]): Promise<Phase> =>
    flood(gate, name, { senders, seconds, warmUpSeconds, hashesFile, path: "", port: Number(new URL(gate.url).port) });
  const asFast = (count: number): Sender => ({ name: "one", key, connections: count });
  const asOften = (perSecond: number): Sender => ({ name: "one", key, connections, perSecond });
  await run("warm-up", 3, asFast(64));
  const light = await run("1,000 a second", 3, { ...asOften(1000), connections: 64 });
  await run("warm-up of a flood", 3, asOften(60_000)); // The first flood fills the pools of memory.
  const transactions: Turn[] = [];
  while (transactions.length < 3) {
    const best = await run(`as fast as answered, ${bestConnections} connections`, 2, asFast(bestConnections));
    const fourfold = await run("four times that, not waiting", 3, asOften(4 * answersOf(best)));
    const name = `as fast as answered, ${4 * bestConnections} connections`;
    transactions.push({ best, fourfold, waiting: await run(name, 2, asFast(4 * bestConnections)) });
  }
  const best = median(transactions.map((transaction) => answersOf(transaction.best)));
  const others = [await run("the best, not waiting", 2, asOften(best)), await run("twice that", 2, asOften(2 * best))];
  const modest: Sender = { name: "modest", key: modestKey, connections: 256, perSecond: best * 0.2 };
  const alone = await run("a fifth of the best", 3, modest);
  const greedy: Sender = { ...asOften(best * 1.8), name: "greedy" };
  const beside = await run("the same beside nine times as much", 4, modest, greedy);
  return { light, transactions, others, alone, beside };
}

function answersOf({ seen }: Phase): number {
  return seen.reduce((sum, { perSecond }) => sum + perSecond, 0);
}

function p99Of({ seen }: Phase): number {
  return seen[0]?.p99 ?? Infinity;
}

function report({ light, transactions, others, alone, beside }: Found, lostAnswers: number): void {
  console.log(`\n${connections} connections where nobody waits; the load and the gate share this machine`);
  const phases = [
    light,
    ...transactions.flatMap(({ best, fourfold, waiting }) => [best, fourfold, waiting]),
    ...others,
    alone,
    beside,
  ];
  printTable([
    ["", "due/s", "not sent/s", "answered/s", "refused/s", "p50 ms", "p99 ms", "refused p99 ms", "errors", "MB"],
    ...phases.flatMap(({ name, seen, resident }) =>
      seen.map((one) => row(seen.length === 1 ? name : `${name}: ${one.name}`, one, Math.max(...resident))),
    ),
  ]);
  const ratio = (of: (transaction: Turn) => number): number => median(transactions.map(of));
  const modest = beside.seen[0];
  conclude("overload", {
    answered_at_four_times_of_best: atLeast(
      ratio(({ best, fourfold }) => answersOf(fourfold) / answersOf(best)),
      0.9,
    ),
    p99_at_four_times_of_a_fifth: atMost(ratio(({ fourfold }) => p99Of(fourfold)) / p99Of(alone), 10),
    answered_with_four_times_the_connections: atLeast(
      ratio(({ best, waiting }) => answersOf(waiting) / answersOf(best)),
      0.9,
    ),
    p99_with_four_times_the_connections_of_a_fifth: atMost(ratio(({ waiting }) => p99Of(waiting)) / p99Of(alone), 10),
    resident_growth_at_four_times: atMost(residentGrowth(transactions), 1.1),
    modest_key_answered_share: atLeast((modest?.answered ?? 0) / (modest?.offered ?? 1), 0.98),
    modest_key_p99_of_alone: atMost(p99Of(beside) / p99Of(alone), 10),
    errors: atMost(
      phases.flatMap(({ seen }) => seen).reduce((sum, { errors }) => sum + errors, 0),
      0,
    ),
    lost_answers: atMost(lostAnswers, 0),
  });
}

/** Compares the gate's memory at four times its load in the last turn with that in the first. */
function residentGrowth(turns: readonly Turn[]): number {
  const peaks = turns.map(({ fourfold }) => Math.max(...fourfold.resident));
  return (peaks.at(-1) ?? Infinity) / (peaks[0] ?? 1);
}

function row(name: string, seen: Seen, resident: number): (string | number)[] {
  const seconds = seen.answered / seen.perSecond;
  const refused = Object.values(seen.refused).reduce((sum, count) => sum + count, 0);
  const rates = [seen.offered, seen.unsent, seen.answered, refused].map((count) => round(count / seconds));
  return [name, ...rates, round(seen.p50), round(seen.p99), round(seen.refusedP99), seen.errors, round(resident)];
}

async function flood(gate: Server, name: string, options: Flood): Promise<Phase> {
  const resident: number[] = [];
  const sampling = setInterval(() => resident.push(residentMb(gate)), 250);
  const text = await new Promise<string>((resolve, reject) => {
    const generator = spawn(process.execPath, ["bench/flood.ts", JSON.stringify(options)], {
      cwd: root,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    generator.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    generator.once("exit", (code) => (code === 0 ? resolve(out) : reject(new Error(`the load ended with ${code}`))));
  });
  clearInterval(sampling);
  return { name, seen: JSON.parse(text) as Seen[], resident };
}

async function makeKey({ url }: Server, data: string): Promise<string> {
  const operator = (JSON.parse(readFileSync(join(data, "operator.json"), "utf8")) as { readonly key: string }).key;
  const made = await fetch(`${url}/admin/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "modest", scopes: ["check"] }),
  });
  if (made.status !== 201) throw new Error(`a key was not made: ${await made.text()}`);
  return ((await made.json()) as { readonly key: string }).key;
}

/** Returns answered receipts that are not in the ledger, by the first 16 characters of their hash. */
async function lost(data: string, hashesFile: string): Promise<number> {
  const answered = readFileSync(hashesFile, "latin1");
  const missing = new Set<string>();
  for (let at = 0; at < answered.length; at += 16) missing.add(answered.slice(at, at + 16));
  const history = await readLedger(data);
  for await (const rows of history.scan(1)) for (const { leaf } of rows) missing.delete(leafHash(leaf).slice(0, 16));
  await history.close();
  return missing.size;
}
