import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { load, residentMb, start, type Load, type Server } from "./check.ts";
import { atLeast, atMost, conclude, median, printTable, round } from "./report.ts";
import { paymentBody } from "./requests.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const tenants = Number(process.env["BENCH_TENANTS"] ?? 1000);
const rounds = 5;

/**
 * Measures many tenants in one process, most of them idle: the memory of each, the delay of the first check of a closed
 * one, and a busy tenant's effect on another.
 */
export async function benchTenants(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const names = Array.from({ length: tenants }, (_, at) => `t${at}`);
  const file = join(folder, "tenants.yaml");
  const mandate = resolve(root, "bench/mandate.yaml");
  writeFileSync(file, `tenants:\n${names.map((id) => `  ${id}: { mandate: ${mandate}, mode: enforce }`).join("\n")}\n`);
  const gate = await start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], {
    SVC_API_KEY: "bench-key-bench-key-bench-key",
    SVC_MANDATE: mandate,
    SVC_TENANTS: file,
    SVC_PORT: "0",
    SVC_DATA_DIR: join(folder, "data"),
    SVC_LOG: "warn",
  });
  try {
    const operator = (JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")) as { key: string }).key;
    const keys = new Map<string, string>();
    for (const id of names) keys.set(id, await makeKey(gate, id, operator));
    report(await measure(gate, names, keys));
  } finally {
    gate.child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Found {
  /** Returns the resident memory in MB after a check in each of this many tenants. */
  readonly resident: readonly (readonly [used: number, mb: number])[];
  readonly firstMs: number;
  readonly nextMs: number;
  readonly alone: readonly Load[];
  readonly beside: readonly Load[];
}

async function measure(gate: Server, names: readonly string[], keys: ReadonlyMap<string, string>): Promise<Found> {
  const resident: [number, number][] = [[0, residentMb(gate)]];
  const [first, next]: [number[], number[]] = [[], []];
  for (const [at, id] of names.entries()) {
    const bearer = keys.get(id) ?? "";
    first.push(await timed(() => ask(gate, id, bearer, at)));
    next.push(await timed(() => ask(gate, id, bearer, at)));
    const used = at + 1;
    if ([0.1, 0.5, 1].some((part) => Math.round(part * names.length) === used)) resident.push([used, residentMb(gate)]);
  }
  const [quiet = "", busy = ""] = names.slice(-2);
  const of = (id: string): readonly [Server, string] => [{ ...gate, url: `${gate.url}/t/${id}` }, keys.get(id) ?? ""];
  const [victim, victimKey] = of(quiet);
  const [greedy, greedyKey] = of(busy);
  const [alone, beside]: [Load[], Load[]] = [[], []];
  for (let transaction = 0; transaction <= rounds; transaction += 1) {
    const quietly = await load(victim, 1, 2, victimKey);
    const [, loudly] = await Promise.all([load(greedy, 64, 4, greedyKey), load(victim, 1, 3, victimKey)]);
    if (transaction === 0) continue;
    alone.push(quietly);
    beside.push(loudly);
  }
  return { resident, firstMs: median(first), nextMs: median(next), alone, beside };
}

function report({ resident, firstMs, nextMs, alone, beside }: Found): void {
  const [, [, fewMb] = [0, 0]] = resident;
  const [all, allMb] = resident.at(-1) ?? [0, 0];
  const p99 = (loads: readonly Load[]): number => median(loads.map((found) => found.p99));
  console.log(`\n${tenants} tenants with a ledger each on SQLite; at most 64 are open at once`);
  printTable([["tenants used", "resident MB"], ...resident.map(([used, mb]) => [String(used), round(mb)] as const)]);
  printTable([
    ["", "ms"],
    ["first check of a tenant that is closed", round(firstMs)],
    ["its next check", round(nextMs)],
    ["p99 of one connection to a tenant, alone", round(p99(alone))],
    ["the same while another tenant has 64 connections", round(p99(beside))],
  ]);
  conclude("tenants", {
    memory_after_all_over_after_a_tenth: atMost(allMb / fewMb, 1.2),
    tenants_served: atLeast(all, tenants),
    failed: atMost(
      [...alone, ...beside].reduce((sum, found) => sum + found.failed, 0),
      0,
    ),
  });
}

async function makeKey({ url }: Server, tenant: string, operator: string): Promise<string> {
  const made = await fetch(`${url}/t/${tenant}/admin/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "agent", scopes: ["check"] }),
  });
  if (made.status !== 201) throw new Error(`a key of ${tenant} was not made: ${await made.text()}`);
  return ((await made.json()) as { readonly key: string }).key;
}

async function ask({ url }: Server, tenant: string, bearer: string, at: number): Promise<void> {
  const answer = await fetch(`${url}/t/${tenant}/check`, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
    body: paymentBody(at),
  });
  if (answer.status !== 200) throw new Error(`${tenant} was refused: ${await answer.text()}`);
  await answer.text();
}

async function timed(work: () => Promise<void>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}
