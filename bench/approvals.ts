import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { measureCpu } from "./approvals/cpu.ts";
import { measureGrants } from "./approvals/grants.ts";
import { measureReservations } from "./approvals/holds.ts";
import { measureSteps } from "./approvals/steps.ts";
import { measureVerify } from "./approvals/verify.ts";
import { measureWaiters } from "./approvals/waiters.ts";
import { conclude, type Measures } from "./report.ts";

const sized = (name: string, fallback: number): number => Number(process.env[name] ?? fallback);

/** Each part has gates of its own. */
const parts: Readonly<Record<string, (folder: string) => Promise<Measures>>> = {
  steps: (folder) => measureSteps(folder, sized("BENCH_ROUNDS", 600)),
  holds: (folder) => measureReservations(folder, sized("BENCH_HOLDS", 10_000)),
  waiters: (folder) => measureWaiters(folder, sized("BENCH_WAITERS", 1000), 5),
  verify: (folder) => measureVerify(folder, sized("BENCH_ROWS", 16_000)),
  grants: (folder) => measureGrants(folder, sized("BENCH_USES", 10_000)),
  cpu: (folder) => measureCpu(folder, sized("BENCH_ROUNDS", 30)),
};

/**
 * Measures a gate whose calls wait for a person. The arguments after the benchmark's name choose parts; by default all
 * run that need no other checkout.
 */
export async function benchApprovals(): Promise<void> {
  const wanted = process.argv.slice(3);
  const names = wanted.length > 0 ? wanted : Object.keys(parts).filter((name) => name !== "cpu");
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  try {
    const measures: Record<string, Measures[string]> = {};
    for (const name of names) {
      const part = parts[name];
      if (part === undefined) throw new Error(`the parts are ${Object.keys(parts).join(", ")}`);
      Object.assign(measures, await part(join(folder, name)));
    }
    conclude("approvals", measures);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
