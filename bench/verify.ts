import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { inspectLedger, openLedger } from "../packages/gate/src/ledger/mod.ts";
import { fillElsewhere } from "./fill.ts";
import { atLeast, atMost, conclude, median, printTable, round } from "./report.ts";

const rounds = 5;

/** Rows a second that a walk over the whole ledger verifies, and its effect on the thread that answers checks. */
export async function benchVerify(): Promise<void> {
  const rows = Number(process.env["BENCH_ROWS"] ?? 1_000_000);
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  try {
    const fillFrom = performance.now();
    fillElsewhere(folder, rows);
    console.log(`${rows} rows written in ${round((performance.now() - fillFrom) / 1000)} s`);
    const openFrom = performance.now();
    const ledger = await openLedger({ folder, engine: "svc-gate/bench" });
    const openMs = performance.now() - openFrom;
    const rates: number[] = [];
    const chainRates: number[] = [];
    const memory: number[] = [];
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    for (let transaction = 0; transaction < rounds; transaction += 1) {
      const from = performance.now();
      const check = await ledger.verify();
      rates.push(rows / ((performance.now() - from) / 1000));
      memory.push(process.memoryUsage.rss() / 2 ** 20);
      if (check.broken !== undefined || check.head.seq !== rows) throw new Error("the ledger did not verify");
    }
    delay.disable();
    for (let transaction = 0; transaction < rounds; transaction += 1) {
      const from = performance.now();
      const check = await inspectLedger({ folder, chainAlone: true });
      chainRates.push(rows / ((performance.now() - from) / 1000));
      if (check.broken !== undefined || check.head.seq !== rows) throw new Error("the chain did not verify");
    }
    await ledger.close();
    printTable([
      ["rows/s", "min", "median", "max"],
      ["chain and evidence", round(Math.min(...rates)), round(median(rates)), round(Math.max(...rates))],
      ["chain and tree", round(Math.min(...chainRates)), round(median(chainRates)), round(Math.max(...chainRates))],
    ]);
    conclude("verify", {
      rows_per_second: atLeast(median(rates), 100_000),
      chain_and_tree_rows_per_second: atLeast(median(chainRates), 150_000),
      memory_growth_mb: atMost(Math.max(...memory) - (memory[0] ?? 0), 30),
      event_loop_block_ms: atMost(delay.max / 1e6, 20),
      open_ms: atMost(openMs, 2000),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
