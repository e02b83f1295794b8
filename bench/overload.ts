import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readLedger } from "../packages/gate/src/ledger/mod.ts";
import { leafHash } from "../packages/core/src/record/entry/mod.ts";
import { gateSettings, residentMb, start, type Server } from "./check.ts";
import type { Flood, Seen, Sender } from "./flood.ts";
import { atLeast, atMost, conclude, median, printTable, round } from "./report.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 3);
const connections = 1024;
const loops = [64, 256, 1024, 4096];
const warmUpSeconds = 0.7;

/** A gate under load. */
interface Loaded {
  readonly name: "base" | "this";
  readonly server: Server;
  readonly data: string;
  readonly modestKey: string;
  readonly hashesFile: string;
}

/** A load on a gate for some time, and its results. */
interface Phase {
  readonly of: Loaded["name"];
  readonly name: string;
  readonly seen: readonly Seen[];
  /** The gate's memory meanwhile, in MB. */
  readonly resident: number;
}

const fourfold = "four times the best, not waiting";
const beside = "a modest key beside nine times as much";
const loopOf = (count: number): string => `${count} connections that wait`;

/**
 * Measures a gate under overload, and the gate of another checkout in turn (`BENCH_BASE`, a folder that is set up): loops
 * of clients that wait for each answer, four times the best rate from clients that do not wait, and a key with little load
 * beside one with much. The benchmark looks for every answered receipt in the ledger.
 */
export async function benchOverload(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const gates: Loaded[] = [];
  try {
    const base = process.env["BENCH_BASE"];
    if (base !== undefined) gates.push(await startGate("base", base, folder));
    gates.push(await startGate("this", root, folder));
    const phases: Phase[] = [];
    for (const gate of gates) await flood(gate, "warm-up", 3, [asFast(64)]);
    for (let turn = 0; turn < rounds; turn += 1) for (const gate of gates) phases.push(...(await measure(gate)));
    report(phases, await lost(gates));
  } finally {
    for (const { server } of gates) server.child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

const heavyKey = "bench-key-bench-key-bench-key";

async function startGate(name: Loaded["name"], checkout: string, folder: string): Promise<Loaded> {
  const data = join(folder, name);
  const settings = { ...gateSettings(data), SVC_API_KEY: heavyKey };
  const server = await start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], settings, checkout);
  return { name, server, data, modestKey: await makeKey(server, data), hashesFile: join(folder, `${name}.hashes`) };
}

const asFast = (count: number): Sender => ({ name: "one", key: heavyKey, connections: count });
const asOften = (perSecond: number): Sender => ({ name: "greedy", key: heavyKey, connections, perSecond });

async function measure(gate: Loaded): Promise<readonly Phase[]> {
  const waiting: Phase[] = [];
  for (const count of loops) waiting.push(await flood(gate, loopOf(count), 2, [asFast(count)]));
  const best = answersOf(waiting[0]);
  const modest: Sender = { name: "modest", key: gate.modestKey, connections: 256, perSecond: best * 0.2 };
  return [
    ...waiting,
    await flood(gate, fourfold, 3, [asOften(4 * best)]),
    await flood(gate, beside, 4, [modest, asOften(best * 1.8)]),
  ];
}

function answersOf(phase: Phase | undefined): number {
  return phase?.seen.reduce((sum, { perSecond }) => sum + perSecond, 0) ?? NaN;
}

function refusedOf({ seen }: Phase): number {
  return seen.flatMap(({ refused }) => Object.values(refused)).reduce((sum, count) => sum + count, 0);
}

function report(phases: readonly Phase[], lostAnswers: number): void {
  console.log(`\nmedians of ${rounds} turns [least, most]; the load and the gate share this machine`);
  printTable([
    ["", "gate", "answered/s", "of 64 that wait", "refused", "p50 ms", "p99 ms", "MB"],
    ...[...loops.map(loopOf), fourfold, beside].flatMap((name) =>
      (["base", "this"] as const).flatMap((of) => rowOf(phases, name, of)),
    ),
  ]);
  const own = (name: string): readonly Phase[] => found(phases, name, "this");
  const all = phases.filter(({ of }) => of === "this").flatMap(({ seen }) => seen);
  conclude("overload", {
    refused_of_connections_that_wait: atMost(
      loops.flatMap((count) => own(loopOf(count))).reduce((sum, phase) => sum + refusedOf(phase), 0),
      0,
    ),
    answered_by_1024_that_wait_of_64: atLeast(median(ofBest(phases, loopOf(1024), "this")), 0.8),
    answered_at_four_times_of_best: atLeast(median(ofBest(phases, fourfold, "this")), 0.85),
    p99_ms_at_four_times: atMost(median(own(fourfold).map(({ seen }) => seen[0]?.p99 ?? Infinity)), 1200),
    modest_key_answered_share: atLeast(median(own(beside).map(({ seen: [modest] }) => shareOf(modest))), 0.99),
    errors: atMost(
      all.reduce((sum, { errors }) => sum + errors, 0),
      0,
    ),
    lost_answers: atMost(lostAnswers, 0),
  });
}

function found(phases: readonly Phase[], name: string, of: Loaded["name"]): readonly Phase[] {
  return phases.filter((phase) => phase.name === name && phase.of === of);
}

/** The answers of a load in each turn, of the answers of 64 connections that wait in the same turn. */
function ofBest(phases: readonly Phase[], name: string, of: Loaded["name"]): readonly number[] {
  const best = found(phases, loopOf(64), of);
  return found(phases, name, of).map((phase, turn) => answersOf(phase) / answersOf(best[turn]));
}

function shareOf(seen: Seen | undefined): number {
  return seen === undefined ? 0 : seen.served / seen.offered;
}

function rowOf(phases: readonly Phase[], name: string, of: Loaded["name"]): readonly (string | number)[][] {
  const turns = found(phases, name, of);
  if (turns.length === 0) return [];
  const of99 = turns.map(({ seen: [first] }) => first?.p99 ?? NaN);
  return [
    [
      name,
      of,
      round(median(turns.map(answersOf))),
      name === beside
        ? `share ${interval(turns.map(({ seen: [modest] }) => shareOf(modest)))}`
        : interval(ofBest(phases, name, of)),
      turns.map(refusedOf).join(", "),
      round(median(turns.map(({ seen: [first] }) => first?.p50 ?? NaN))),
      interval(of99),
      round(median(turns.map(({ resident }) => resident))),
    ],
  ];
}

function interval(numbers: readonly number[]): string {
  return `${round(median(numbers))} [${round(Math.min(...numbers))}, ${round(Math.max(...numbers))}]`;
}

async function flood(gate: Loaded, name: string, seconds: number, senders: readonly Sender[]): Promise<Phase> {
  const { server, hashesFile } = gate;
  const port = Number(new URL(server.url).port);
  const options: Flood = { senders, seconds, warmUpSeconds, hashesFile, path: "", port };
  const resident: number[] = [];
  const sampling = setInterval(() => resident.push(residentMb(server)), 250);
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
  return { of: gate.name, name, seen: JSON.parse(text) as Seen[], resident: Math.max(...resident) };
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

/** Stops the gates and returns how many answered receipts are not in their ledgers, by the first 16 characters of the hash. */
async function lost(gates: readonly Loaded[]): Promise<number> {
  let count = 0;
  for (const { server, data, hashesFile } of gates) {
    const stopped = new Promise((resolve) => server.child.once("exit", resolve));
    server.child.kill("SIGTERM");
    await stopped;
    const answered = readFileSync(hashesFile, "latin1");
    const missing = new Set<string>();
    for (let at = 0; at < answered.length; at += 16) missing.add(answered.slice(at, at + 16));
    const history = await readLedger(data);
    for await (const rows of history.scan(1)) for (const { leaf } of rows) missing.delete(leafHash(leaf).slice(0, 16));
    await history.close();
    count += missing.size;
  }
  return count;
}
