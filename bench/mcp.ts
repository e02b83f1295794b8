/**
 * Compares a call through `svc-gate mcp` with a call through a plain proxy, over both transports: how much longer does it
 * take than the check itself? The three are measured in turn in one run, one call after the other.
 */
import { spawn, spawnSync, type ChildProcessByStdio } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request as send, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { SvcGate } from "../clients/javascript/svc-gate.mjs";
import { gateSettings, start, type Server } from "./check.ts";
import { atMost, conclude, medianInterval, median, printTable, round, shown, type Measures } from "./report.ts";

const rounds = Number(process.env["BENCH_ROUNDS"] ?? 15);
const calls = Number(process.env["BENCH_CALLS"] ?? 200);
const thinkMs = 8;
const quantile = Number(process.env["BENCH_QUANTILE"] ?? 0.5);
const agentBin = "packages/agent/bin/svc-gate.mjs";
const rawServer = ["test/support/mcp/raw-server.ts"];
const proxyKey = "the-key-of-this-benchmark";

const contract = `contract: bank
tools:
  bank.pay:
    input: { type: object, additionalProperties: false, required: [amount], properties: { amount: { type: number } } }
    otherwise: ALLOW
rules:
  - { rule: large, on: [bank.pay], when: input.amount > 500, verdict: BLOCK, reason: too much }
`;

type Call = (amount: number) => Promise<unknown>;

interface Sides {
  readonly plain: Call;
  readonly gated: Call;
}

export async function benchMcp(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const running: { readonly kill: (signal: NodeJS.Signals) => unknown }[] = [];
  try {
    mkdirSync(join(folder, "contracts"));
    writeFileSync(join(folder, "contracts", "bank.yaml"), contract);
    writeFileSync(join(folder, "mandate.yaml"), "mandate: bench\ncontracts: [contracts/bank.yaml]\n");
    const settings: Readonly<Record<string, string>> = {
      ...gateSettings(join(folder, "data")),
      SVC_MANDATE: join(folder, "mandate.yaml"),
    };
    const gate = await start(["bin/svc-gate.mjs", "serve"], settings);
    running.push(gate.child);
    const env = { ...process.env, SVC_URL: gate.url, SVC_KEY: settings["SVC_API_KEY"] ?? "", SVC_MCP_KEY: proxyKey };
    const measures: Record<string, Measures[string]> = {};
    for (const [transport, sides] of [
      ["stdio", await stdioSides(folder, env, running)],
      ["http", await httpSides(folder, env, running)],
    ] as const) {
      measures[`${transport}: ms beside the check`] = atMost(await measured(transport, sides, checker(gate, env)), 0.5);
    }
    conclude("mcp", measures);
  } finally {
    for (const each of running) each.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

function checker({ url }: Server, env: NodeJS.ProcessEnv): Call {
  const gate = new SvcGate(url, { apiKey: env["SVC_KEY"], idempotent: true });
  return async (amount) => {
    const verdict = await gate.check("bank.pay", { amount });
    if (!verdict.allowed) throw new Error(verdict.reason);
    // The proxy reports each outcome, so this does too.
    void gate.outcome(verdict, "done");
  };
}

/** Returns the median of what a call takes longer than through the plain proxy and the check, in milliseconds. */
async function measured(transport: string, { plain, gated }: Sides, check: Call): Promise<number> {
  const found: Record<"plain" | "gated" | "check", number>[] = [];
  for (let index = -2; index < rounds; index += 1) {
    const turn = { plain: await perCall(plain), check: await perCall(check), gated: await perCall(gated) };
    if (index >= 0) found.push(turn); // The first rounds warm everything up.
  }
  const row = (name: string, pick: (turn: (typeof found)[number]) => number): string[] => [
    name,
    shown(medianInterval(found.map(pick))),
  ];
  const beside = (turn: (typeof found)[number]): number => turn.gated - turn.plain - turn.check;
  console.log(`\n${transport}, ${rounds} rounds of ${calls} calls, ms per call`);
  printTable([
    ["", "median of the rounds"],
    row("plain proxy", (turn) => turn.plain),
    row("check and outcome, without a proxy", (turn) => turn.check),
    row("svc-gate mcp", (turn) => turn.gated),
    row("svc-gate mcp, beside the plain proxy and the check", beside),
    row("svc-gate mcp / plain proxy", (turn) => turn.gated / turn.plain),
  ]);
  return round(median(found.map(beside)));
}

/** Returns the time of a call, in milliseconds: the median, or another quantile on a machine with other load. */
async function perCall(call: Call): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < calls; index += 1) {
    const startedAt = performance.now();
    await call(index % 100);
    times.push(performance.now() - startedAt);
    // An agent thinks between calls. Otherwise a check would wait until the row of the last outcome is on disk.
    await pause(thinkMs);
  }
  return times.toSorted((one, other) => one - other)[Math.floor(calls * quantile)] ?? Number.NaN;
}

type Running = { readonly kill: (signal: NodeJS.Signals) => unknown }[];

async function stdioSides(folder: string, env: NodeJS.ProcessEnv, running: Running): Promise<Sides> {
  const target = [process.execPath, ...rawServer];
  const own = ["--name", "bank", "--pins", join(folder, "stdio.json")];
  accept([...own, "--", ...target], env);
  const startCall = async (args: readonly string[]): Promise<Call> => {
    const child = spawn(process.execPath, args, { env, stdio: ["pipe", "pipe", "inherit"] });
    running.push(child);
    return shaken(child);
  };
  return {
    plain: await startCall(["bench/mcp/plain.ts", "stdio", ...target]),
    gated: await startCall([agentBin, "mcp", ...own, "--", ...target]),
  };
}

function accept(args: readonly string[], env: NodeJS.ProcessEnv): void {
  const { status, stderr } = spawnSync(process.execPath, [agentBin, "mcp", "accept", "--yes", ...args], {
    env,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(stderr);
}

/** Shakes hands and returns how a tool is called. */
async function shaken(child: ChildProcessByStdio<Writable, Readable, null>): Promise<Call> {
  const waiting = new Map<number, (message: { readonly result?: unknown; readonly error?: unknown }) => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
  });
  let id = 0;
  const ask = (method: string, params: object): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const own = (id += 1);
      waiting.set(own, (message) => {
        waiting.delete(own);
        if (message.error === undefined) resolve(message.result);
        else reject(new Error(JSON.stringify(message.error)));
      });
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: own, method, params })}\n`);
    });
  await ask("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "bench", version: "1" },
  });
  return async (amount) => paid(await ask("tools/call", { name: "pay", arguments: { amount } }), amount);
}

function paid(result: unknown, amount: number): void {
  if (!JSON.stringify(result).includes(`"paid ${amount}"`)) throw new Error(JSON.stringify(result));
}

async function httpSides(folder: string, env: NodeJS.ProcessEnv, running: Running): Promise<Sides> {
  const upstream = await start(["bench/mcp/server.ts"], {});
  running.push(upstream.child);
  const own = ["--name", "bank", "--pins", join(folder, "http.json"), "--upstream", `${upstream.url}/mcp`];
  accept(own, env);
  const plain = await start(["bench/mcp/plain.ts", "http", `${upstream.url}/mcp`], {});
  const gated = await start([agentBin, "mcp", ...own, "--port", "0"], {
    SVC_URL: env["SVC_URL"] ?? "",
    SVC_KEY: env["SVC_KEY"] ?? "",
    SVC_MCP_KEY: proxyKey,
  });
  running.push(plain.child, gated.child);
  return { plain: poster(plain.url), gated: poster(gated.url) };
}

function poster(address: string): Call {
  const agent = new Agent({ keepAlive: true });
  const headers = {
    authorization: `Bearer ${proxyKey}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  let id = 0;
  return async (amount) => {
    id += 1;
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id,
      method: "tools/call",
      params: { name: "pay", arguments: { amount } },
    });
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = send(`${address.replace(/\/mcp$/, "")}/mcp`, { method: "POST", agent, headers }, resolve);
      outgoing.on("error", reject);
      outgoing.end(body);
    });
    let text = "";
    for await (const piece of answer) text += String(piece);
    paid(JSON.parse(text), amount);
  };
}
