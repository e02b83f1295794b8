import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { measureFlush } from "../check.ts";
import { conclude, machine, median } from "../report.ts";
import { paymentCall } from "./calls.ts";
import { charts } from "./charts.ts";
import { placeholder, type Load, type Order } from "./load.ts";
import { pageWith, tables } from "./page.ts";
import { peers, type Peer } from "./peers.ts";
import type { Wanted } from "./policies.ts";
import {
  barsOf,
  connectionCounts,
  ruleCounts,
  usual,
  type Figures,
  type PeerResult,
  type Results,
  type Series,
} from "./results.ts";
import { residentMb } from "./server.ts";
import { setUpPeers } from "./setup.ts";
import { noticesWrongPolicy, startPeer, verify, type Started } from "./verify.ts";

const rounds = 3;
const seconds = Number(process.env["BENCH_SECONDS"] ?? 3);
const sessionCounts = [1, 10_000, Number(process.env["BENCH_SESSIONS"] ?? 1_000_000)] as const;
/** The ids of the peers to measure; all if empty. */
const only = (process.env["BENCH_PEERS"] ?? "").split(",").filter(Boolean);
const sixRules: Wanted = { others: 0, wrong: false, counted: false };
const here = import.meta.dirname;

/**
 * Compares the gate with other engines, in turn, on the same six rules and the same load.
 *
 * `--setup` installs the others and ends. `--verify` starts each, asks the table's calls and ends. A run of full length
 * writes the tables, the charts and results.json; a shorter one (`BENCH_SECONDS`, `BENCH_SESSIONS`, `BENCH_PEERS`)
 * writes them only with `--write`.
 */
export async function benchPeers(): Promise<void> {
  if (process.argv.includes("--setup")) {
    setUpPeers();
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-peers-"));
  process.setMaxListeners(100); // each server ends with this process
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
  try {
    const { ready, skipped } = await found(folder);
    if (process.argv.includes("--verify")) return;
    const results = await measured(folder, ready, skipped);
    console.log(`\n${tables(results)}`);
    if (isFull() || process.argv.includes("--write")) write(results);
    const failed = failures.length;
    for (const failure of failures) console.log(failure);
    conclude("peers", { ...barsOf(results), failed: { value: failed, bar: "<= 0", holds: failed === 0 } });
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The wrong answers of all loads, one line each. */
const failures: string[] = [];

function isFull(): boolean {
  return ["BENCH_SECONDS", "BENCH_SESSIONS", "BENCH_PEERS"].every((name) => process.env[name] === undefined);
}

function write(results: Results): void {
  writeFileSync(join(here, "results.json"), `${JSON.stringify(results, undefined, 2)}\n`);
  for (const [name, text] of Object.entries(charts(results))) writeFileSync(join(here, name), text);
  const page = join(here, "README.md");
  writeFileSync(page, pageWith(readFileSync(page, "utf8"), results));
}

interface Found {
  readonly ready: readonly Peer[];
  readonly skipped: Results["skipped"];
}

/**
 * Returns the peers that can be measured here. A peer with wrong decisions, or whose wrong decisions would not be
 * noticed, ends the run.
 */
async function found(folder: string): Promise<Found> {
  const ready: Peer[] = [];
  const skipped: { name: string; why: string }[] = [];
  for (const peer of peers) {
    const why = only.length > 0 && !only.includes(peer.id) ? "BENCH_PEERS does not name it" : peer.missing();
    if (why !== undefined) {
      console.log(`${peer.name}: SKIPPED, ${why}`);
      skipped.push({ name: peer.name, why });
      continue;
    }
    const started = await startPeer(peer, join(folder, `${peer.id}-verify`), sixRules);
    const wrong = await verify(started);
    await started.server.stop();
    if (wrong.length > 0) throw new Error(`${peer.name} does not decide the policy:\n${wrong.join("\n")}`);
    if (!(await noticesWrongPolicy(peer, join(folder, `${peer.id}-wrong`))))
      throw new Error(`${peer.name}: a policy with the wrong limit was not noticed`);
    console.log(`${peer.name}: decides all calls as expected, and a wrong limit was noticed`);
    ready.push(peer);
  }
  return { ready, skipped };
}

async function measured(folder: string, ready: readonly Peer[], skipped: Found["skipped"]): Promise<Results> {
  const day = new Date().toISOString().slice(0, 10);
  const flushMs = measureFlush(folder);
  const main = await byConnections(folder, ready);
  const results: PeerResult[] = [];
  for (const peer of ready) {
    const first = main.get(peer);
    if (first === undefined) continue;
    const rules = await byRules(folder, peer);
    const sessions = await bySessions(folder, peer);
    results.push({ id: peer.id, name: peer.name, ours: peer.ours, ...first, rules, sessions });
  }
  return { machine: machine(), day, seconds, rounds, flushMs, peers: results, skipped };
}

type First = Pick<PeerResult, "startMs" | "idleMb" | "loadedMb" | "connections">;

/** Starts all peers and measures them one after another, round by round. */
async function byConnections(folder: string, ready: readonly Peer[]): Promise<ReadonlyMap<Peer, First>> {
  const started: Started[] = [];
  try {
    for (const peer of ready) started.push(await startPeer(peer, join(folder, peer.id), sixRules));
    const idle = started.map(({ server }) => residentMb(server.roots));
    const subjects = started.map((one) => ({ started: one, sessions: usual }));
    const series = connectionCounts.map((connections) => ({ connections, loads: subjects.map((): Load[] => []) }));
    for (let round = 0; round <= rounds; round += 1) {
      for (const { connections, loads } of series) {
        for (const [at, subject] of subjects.entries()) {
          if (round === 0 && connections !== usual) continue; // a warm-up
          const load = await answersOf(subject, { connections, seconds: round === 0 ? seconds / 2 : seconds });
          if (round > 0) loads[at]?.push(load);
        }
      }
      console.log(round === 0 ? "warmed up" : `round ${round} of ${rounds}`);
    }
    return new Map(
      started.map(({ peer, server, startMs }, at) => [
        peer,
        {
          startMs,
          idleMb: idle[at] ?? 0,
          loadedMb: residentMb(server.roots),
          connections: Object.fromEntries(
            series.map(({ connections, loads }) => [connections, medians(loads[at] ?? [])]),
          ),
        },
      ]),
    );
  } finally {
    for (const { server } of started) await server.stop();
  }
}

/** Measures the same calls with few and with many rules of other tools. */
function byRules(folder: string, peer: Peer): Promise<Series> {
  return compared(
    "rules",
    ruleCounts.map((others) => ({
      size: others,
      sessions: usual,
      start: () => startPeer(peer, join(folder, `${peer.id}-rules-${others}`), { ...sixRules, others }),
    })),
  );
}

/**
 * Makes calls in this many sessions. The gate counts payments in each session and has seen them all before; the other
 * engines keep no state.
 */
function bySessions(folder: string, peer: Peer): Promise<Series> {
  return compared(
    "sessions",
    sessionCounts.map((sessions) => ({
      size: sessions,
      sessions,
      start: async () => {
        const into = join(folder, `${peer.id}-sessions-${sessions}`);
        const started = await startPeer(peer, into, { ...sixRules, counted: peer.ours });
        if (!peer.ours) return started;
        const { perSecond } = await answersOf({ started, sessions }, { connections: usual, seconds, once: true });
        console.log(`${peer.name}: has seen ${sessions} sessions, ${Math.round(perSecond)} checks/s`);
        return started;
      },
    })),
  );
}

interface Variant {
  readonly size: number;
  readonly sessions: number;
  readonly start: () => Promise<Started>;
}

/**
 * Runs several servers of one peer at the same time and measures them in turn, so that other work on the machine
 * affects all of them.
 */
async function compared(what: string, variants: readonly Variant[]): Promise<Series> {
  const running: { readonly variant: Variant; readonly started: Started; readonly loads: Load[] }[] = [];
  try {
    for (const variant of variants) running.push({ variant, started: await variant.start(), loads: [] });
    for (let round = 0; round <= rounds; round += 1) {
      for (const { variant, started, loads } of running) {
        const load = await answersOf(
          { started, sessions: variant.sessions },
          { connections: usual, seconds: seconds / 2 },
        );
        if (round > 0) loads.push(load);
      }
    }
    const series = running.map(({ variant, loads }) => [variant.size, medians(loads)] as const);
    const said = series.map(([size, { perSecond, p99 }]) => `${size}: ${perSecond} checks/s, p99 ${p99} ms`);
    console.log(`${running[0]?.started.peer.name}, by ${what}: ${said.join("; ")}`);
    return Object.fromEntries(series);
  } finally {
    for (const { started } of running) await started.server.stop();
  }
}

interface Subject {
  readonly started: Started;
  readonly sessions: number;
}

/** Loads a server from another process. */
async function answersOf(
  { started: { peer, server }, sessions }: Subject,
  how: { readonly connections: number; readonly seconds: number; readonly once?: boolean },
): Promise<Load> {
  const requests = Array.from({ length: 97 }, (_, at) => peer.request({ ...paymentCall(at), session_id: placeholder }));
  const order: Order = {
    url: `${server.url}${requests[0]?.path ?? "/"}`,
    headers: requests[0]?.headers ?? {},
    bodies: requests.map(({ body }) => JSON.stringify(body)),
    marker: peer.allowed,
    sessions,
    once: false,
    ...how,
  };
  const load = await send(order);
  if (load.failed > 0)
    failures.push(
      `${peer.name}: ${load.failed} of ${load.total} answers were not the expected one, such as ${load.failure}`,
    );
  return load;
}

/** Runs one load in another process. */
export function send(order: Order): Promise<Load> {
  return new Promise((resolve, reject) => {
    const generator = spawn(process.execPath, [join(here, "load.ts")], { stdio: ["pipe", "pipe", "inherit"] });
    let text = "";
    generator.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
    generator.once("exit", (code) => {
      if (code === 0) resolve(JSON.parse(text) as Load);
      else reject(new Error(`the load ended with ${code}`));
    });
    generator.stdin.end(JSON.stringify(order));
  });
}

function medians(loads: readonly Load[]): Figures {
  const of = (pick: (load: Load) => number): number => Number(median(loads.map(pick)).toPrecision(4));
  return { perSecond: of((load) => load.perSecond), p50: of((load) => load.p50), p99: of((load) => load.p99) };
}
