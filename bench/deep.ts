import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { load, residentMb, start, type Load } from "./check.ts";
import { atLeast, conclude, median, printTable, round } from "./report.ts";

const key = "bench-key-bench-key-bench-key";
const rounds = 3;
const connections = 4;
const seconds = 4;

/**
 * Checks over HTTP while `nice svc-gate verify --deep` reads their ledger, compared with checks without it, in turn.
 */
export async function benchDeep(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const gate = await start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], {
    SVC_MODE: "enforce",
    SVC_API_KEY: key,
    SVC_MANDATE: "bench/mandate.yaml",
    SVC_PORT: "0",
    SVC_DATA_DIR: folder,
    SVC_LOG: "warn",
  });
  const pairs: { readonly alone: Load; readonly beside: Load }[] = [];
  const rates: number[] = [];
  let [rows, whole] = [0, 0];
  try {
    await load(gate, 64, Number(process.env["BENCH_SECONDS"] ?? 30));
    for (let transaction = 0; transaction < rounds; transaction += 1) {
      const alone = await load(gate, connections, seconds);
      const startedAt = performance.now();
      const command = ["-n", "19", process.execPath, "bin/svc-gate.mjs", "verify", "--deep", "--json", folder];
      let isOver = false;
      const found = promisify(execFile)("nice", command).then(({ stdout }) => {
        isOver = true;
        return JSON.parse(stdout) as { readonly ok: boolean; readonly deep: { readonly rows: number } };
      });
      const beside = await load(gate, connections, seconds);
      // A walk that ends before the load does would measure only a part of the checks.
      if (!isOver) whole += 1;
      const { ok, deep } = await found;
      if (!ok) throw new Error("the ledger did not verify");
      rows = deep.rows;
      rates.push(rows / ((performance.now() - startedAt) / 1000));
      pairs.push({ alone, beside });
    }
    const ratio = (of: (pair: Load) => number): number =>
      median(pairs.map(({ alone, beside }) => of(beside) / of(alone)));
    const row = (
      name: string,
      of: (pair: { readonly alone: Load; readonly beside: Load }) => Load,
    ): readonly (string | number)[] => {
      const loads = pairs.map(of);
      return [
        name,
        ...(["perSecond", "p50", "p99"] as const).map((what) => round(median(loads.map((each) => each[what])))),
      ];
    };
    printTable([
      [`${connections} connections, ${rows} rows`, "checks/s", "p50 ms", "p99 ms"],
      row("alone", ({ alone }) => alone),
      row("beside a deep verification", ({ beside }) => beside),
    ]);
    console.log(
      `beside / alone: checks ${ratio(({ perSecond }) => perSecond).toFixed(2)}, p99 ${ratio(({ p99 }) => p99).toFixed(2)}; ` +
        `${whole} of ${rounds} loads were over before the verification; ${round(residentMb(gate))} MB`,
    );
    conclude("deep", {
      rows_per_second: atLeast(median(rates), 2000),
      checks_beside_alone: atLeast(
        ratio(({ perSecond }) => perSecond),
        0.5,
      ),
    });
  } finally {
    gate.child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}
