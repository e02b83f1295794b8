import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Driver, HostCase, Plan } from "../adapters/conformance/case.ts";
import { drivers } from "../adapters/conformance/drivers/all.ts";
import type { ScriptedCall } from "../packages/agent/src/model/script.ts";
import { startModel } from "../packages/agent/src/model/server.ts";
import { atMost, conclude, medianInterval, printTable, shown } from "./report.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 15);
const calls = 100;
const barMs = 1;

/**
 * Measures what the adapter of each framework adds to a call: a run with one batch of calls, with the adapter and without, in
 * alternating turns. The adapter's client answers at once, so the check itself is not in the difference.
 */
export async function benchAdapters(): Promise<void> {
  const rows: (readonly [name: string, ms: string])[] = [];
  const medians: Record<string, ReturnType<typeof atMost>> = {};
  const isLibrary = ({ hasPermissions, excuse }: Driver): boolean =>
    !hasPermissions && excuse(caseWith("ours")) === undefined;
  for (const driver of drivers.filter(isLibrary)) {
    const missing = driver.missing();
    if (missing !== undefined) {
      rows.push([driver.name, missing]);
      continue;
    }
    try {
      const added = await measured(driver);
      rows.push([`${driver.name} ${driver.version()}`, shown(added)]);
      medians[driver.name] = atMost(added.median, barMs);
    } catch (error) {
      rows.push([driver.name, String(error).slice(0, 200)]);
      process.exitCode = 1;
    }
  }
  printTable([["framework", "ms more for each call"], ...rows]);
  conclude("adapters", medians);
}

async function measured(driver: Driver): Promise<ReturnType<typeof medianInterval>> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const pay = (amount: number): ScriptedCall => {
    const input = `{"amount":${amount}}`;
    return { tool: driver.tools.pay.host, arguments: driver.inputOf?.("pay", input) ?? input };
  };
  const model = await startModel({
    bench: [Array.from({ length: calls }, (_, index) => pay(index + 1)), "The work is done."],
  });
  const env = { PATH: process.env["PATH"] ?? "", HOME: folder, TMPDIR: folder, NO_PROXY: "127.0.0.1" };
  const host = driver.open({ folder, env, adapters: join(root, "adapters") });
  let run = 0;
  const timed = async (hook: "ours" | "absent"): Promise<number> => {
    run += 1;
    const startedAt = performance.now();
    const { ended, detail } = await host.run(planOf(join(folder, String(run)), { hook, model: model.url, env }));
    if (ended !== "done") throw new Error(`${driver.name}: the run ended as ${ended}: ${detail}`);
    return performance.now() - startedAt;
  };
  try {
    for (const hook of ["ours", "absent"] as const) await timed(hook); // these load the framework
    const differences: number[] = [];
    for (let round = 0; round < rounds; round += 1)
      differences.push(((await timed("ours")) - (await timed("absent"))) / calls);
    return medianInterval(differences);
  } finally {
    await host.stop?.();
    await model.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function caseWith(hook: "ours" | "absent"): HostCase {
  return { id: "bench", title: "", turns: [], hook, variant: "instant-client", expect: { ran: [] } };
}

function planOf(
  folder: string,
  { hook, model, env }: Pick<Plan, "model" | "env"> & { readonly hook: "ours" | "absent" },
): Plan {
  const project = join(folder, "project");
  mkdirSync(project, { recursive: true });
  return {
    case: caseWith(hook),
    prompt: "Please work on [[bench]]",
    isResumed: false,
    folder,
    session: folder.slice(-200),
    model,
    gate: "http://127.0.0.1:4",
    key: "not-a-key",
    env,
    payServer: ["", join(project, "witness.txt")],
    secondsForHook: 2,
  };
}
