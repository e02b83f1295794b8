import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { gateSettings, load, residentMb, start, type Server } from "./check.ts";
import { atMost, conclude, median, printTable, round } from "./report.ts";
import { paymentBody } from "./requests.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 3);
const pages = 150;
/** How long a gate rests after a burst of pages before its memory is measured. */
const restSeconds = Number(process.env["BENCH_REST"] ?? 60);
const bursts = 3;
const rootKey = "bench-key-bench-key-bench-key";

interface Loaded {
  readonly name: "base" | "this";
  readonly server: Server;
  readonly tenantKey: string;
}

/** Times of checks, in milliseconds. */
interface Checks {
  readonly of: Loaded["name"];
  readonly beside: string;
  readonly middle: number;
  readonly worst: number;
  /** How long all pages took; 0 if there were none. */
  readonly pagesMs: number;
}

const alone = "nothing";
const sameLedger = `${pages} pages of the same ledger`;
const otherTenant = `${pages} pages of a tenant`;

/**
 * Measures checks beside pages of a thousand receipts, and the gate of another checkout in turn (`BENCH_BASE`, a folder that
 * is set up); then the memory of the gate a minute after each of three bursts of pages.
 */
export async function benchReads(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const gates: Loaded[] = [];
  try {
    const base = process.env["BENCH_BASE"];
    if (base !== undefined) gates.push(await startGate("base", base, folder));
    gates.push(await startGate("this", root, folder));
    const checks: Checks[] = [];
    for (let turn = 0; turn < rounds; turn += 1)
      for (const gate of gates) {
        checks.push(await measure(gate, alone));
        checks.push(await measure(gate, sameLedger, `${gate.server.url}/receipts?limit=1000`, rootKey));
        checks.push(await measure(gate, otherTenant, `${gate.server.url}/t/acme/receipts?limit=1000`, gate.tenantKey));
      }
    for (const { server } of gates.splice(0)) server.child.kill("SIGKILL");
    const resident = new Map<Loaded["name"], readonly number[]>();
    for (const [name, checkout] of [
      ["base", base],
      ["this", root],
    ] as const)
      if (checkout !== undefined) resident.set(name, await measureMemory(name, checkout, folder));
    report(checks, resident);
  } finally {
    for (const { server } of gates) server.child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

async function startGate(name: Loaded["name"], checkout: string, folder: string): Promise<Loaded> {
  const data = mkdtempSync(join(folder, name));
  const tenants = join(folder, "tenants.yaml");
  const mandate = resolve(root, "bench/mandate.yaml");
  writeFileSync(tenants, `tenants:\n  acme: { mandate: ${mandate}, mode: enforce }\n`);
  const settings = { ...gateSettings(data), SVC_API_KEY: rootKey, SVC_TENANTS: tenants };
  const server = await start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], settings, checkout);
  const tenantKey = await makeKey(server, data);
  await load(server, 64, 6, rootKey);
  await load({ ...server, url: `${server.url}/t/acme` }, 64, 3, tenantKey);
  return { name, server, tenantKey };
}

async function makeKey({ url }: Server, data: string): Promise<string> {
  const operator = (JSON.parse(readFileSync(join(data, "operator.json"), "utf8")) as { readonly key: string }).key;
  const made = await fetch(`${url}/t/acme/admin/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "acme", scopes: ["check", "receipts"] }),
  });
  if (made.status !== 201) throw new Error(`a key was not made: ${await made.text()}`);
  return ((await made.json()) as { readonly key: string }).key;
}

/** Asks for pages at once, in another process. Returns how long all took. */
function readPages(url: string, key: string): Promise<number> {
  return new Promise((done, reject) => {
    const reader = spawn(process.execPath, ["bench/pages.ts", url, String(pages), key], {
      cwd: root,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    reader.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    reader.once("exit", (code) => (code === 0 ? done(Number(out)) : reject(new Error(`the pages ended with ${code}`))));
  });
}

/** Checks at the root, one every 10 ms, while the pages are read; without pages for two seconds. */
async function measure({ name, server }: Loaded, beside: string, url?: string, key = ""): Promise<Checks> {
  const state = { isOver: false };
  const work = url === undefined ? setTimeout(2000).then(() => 0) : readPages(url, key);
  const ending = work.finally(() => (state.isOver = true));
  const times: number[] = [];
  for (let n = 0; !state.isOver; n += 1) {
    const since = performance.now();
    await check(server, n);
    times.push(performance.now() - since);
    await setTimeout(10);
  }
  return { of: name, beside, middle: median(times), worst: Math.max(...times), pagesMs: await ending };
}

async function check({ url }: Server, n: number): Promise<void> {
  const headers = { authorization: `Bearer ${rootKey}`, "content-type": "application/json" };
  const answer = await fetch(`${url}/check`, { method: "POST", headers, body: paymentBody(n) });
  await answer.text();
  if (answer.status !== 200) throw new Error(`a check was answered with ${answer.status}`);
}

/** Returns the resident memory in MB, before and a minute after each burst of pages. */
async function measureMemory(name: Loaded["name"], checkout: string, folder: string): Promise<readonly number[]> {
  const { server } = await startGate(name, checkout, folder);
  try {
    await setTimeout(restSeconds * 1000);
    const resident = [residentMb(server)];
    for (let burst = 0; burst < bursts; burst += 1) {
      await readPages(`${server.url}/receipts?limit=1000`, rootKey);
      await setTimeout(restSeconds * 1000);
      resident.push(residentMb(server));
    }
    return resident;
  } finally {
    server.child.kill("SIGKILL");
  }
}

function report(checks: readonly Checks[], resident: ReadonlyMap<Loaded["name"], readonly number[]>): void {
  const found = (beside: string, of: Loaded["name"]): readonly Checks[] =>
    checks.filter((each) => each.beside === beside && each.of === of);
  console.log(`\na check every 10 ms, of ${rounds} turns: medians, and the worst of all`);
  printTable([
    ["beside", "gate", "middle ms", "worst ms", "all pages ms"],
    ...[alone, sameLedger, otherTenant].flatMap((beside) =>
      [...resident.keys()].map((of) => [
        beside,
        of,
        round(median(found(beside, of).map(({ middle }) => middle))),
        round(Math.max(...found(beside, of).map(({ worst }) => worst))),
        round(median(found(beside, of).map(({ pagesMs }) => pagesMs))),
      ]),
    ),
  ]);
  console.log(`\nresident MB, ${restSeconds} s after each burst of ${pages} pages`);
  printTable([
    ["gate", "before", ...Array.from({ length: bursts }, (_, at) => `burst ${at + 1}`)],
    ...[...resident].map(([of, sizes]) => [of, ...sizes.map(round)]),
  ]);
  const [before = NaN, ...after] = resident.get("this") ?? [];
  const worst = (beside: string): number => Math.max(...found(beside, "this").map((each) => each.worst));
  conclude("reads", {
    worst_check_ms_beside_same_ledger: atMost(worst(sameLedger), 250),
    worst_check_ms_beside_a_tenant: atMost(worst(otherTenant), 100),
    resident_after_of_before: atMost(Math.max(...after) / before, 1.6),
    growth_with_the_second_burst: atMost((after[1] ?? NaN) / (after[0] ?? NaN), 1.05),
    growth_with_the_third_burst: atMost((after[2] ?? NaN) / (after[1] ?? NaN), 1.05),
  });
}
