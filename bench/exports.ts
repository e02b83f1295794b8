import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readLedger } from "../packages/gate/src/ledger/mod.ts";
import { verifyExport, writeExport } from "../packages/records/src/export/mod.ts";
import { parseVerifierKey } from "../packages/core/src/record/tree/mod.ts";
import { fillElsewhere } from "./fill.ts";
import { atLeast, atMost, conclude, median, printTable, round } from "./report.ts";

const rounds = 3;
const root = fileURLToPath(new URL("..", import.meta.url));

/** A verifier, and whether it leaves out the evidence. Its output has the number of verified rows. */
interface Verifier {
  readonly name: string;
  readonly verify: () => Promise<number>;
}

/** Rows a second for writing an export and for verifying it with each of the three verifiers, on one core each. */
export async function benchExports(): Promise<void> {
  const rows = Number(process.env["BENCH_ROWS"] ?? 1_000_000);
  const base = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  try {
    const [data, folder] = [join(base, "data"), join(base, "export")];
    fillElsewhere(data, rows);
    const from = performance.now();
    const vkey = await exportLedger(data, folder);
    const exportRate = rows / ((performance.now() - from) / 1000);
    const againFrom = performance.now();
    await exportLedger(data, folder);
    const againMs = performance.now() - againFrom;
    const rates = new Map<string, readonly number[]>();
    const memory: number[] = [];
    for (const { name, verify } of verifiersOf(folder, vkey)) {
      const each: number[] = [];
      for (let transaction = 0; transaction < rounds; transaction += 1) {
        const start = performance.now();
        if ((await verify()) !== rows) throw new Error(`${name} did not verify the export`);
        each.push(rows / ((performance.now() - start) / 1000));
        memory.push(process.memoryUsage.rss() / 2 ** 20);
      }
      rates.set(name, each);
    }
    printTable([
      ["rows/s", "min", "median", "max"],
      ["written, the first time", round(exportRate), round(exportRate), round(exportRate)],
      ...[...rates].map(([name, each]) => [
        name,
        round(Math.min(...each)),
        round(median(each)),
        round(Math.max(...each)),
      ]),
    ]);
    const rate = (name: string): number => median(rates.get(name) ?? [0]);
    conclude("exports", {
      chain_and_tree_rows_per_second: atLeast(rate(chainAndTree), 150_000),
      javascript_chain_and_tree_rows_per_second: atLeast(rate(`svc-verify.mjs, ${chainAndTree}`), 150_000),
      python_rows_per_second: atLeast(rate(`svc_verify.py, ${all}`), 20_000),
      nothing_new_ms: atMost(againMs, 1000),
      memory_growth_mb: atMost(Math.max(...memory) - (memory[0] ?? 0), 60),
    });
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

const chainAndTree = "chain and tree";
const all = "chain, tree and evidence";

async function exportLedger(data: string, folder: string): Promise<string> {
  const history = await readLedger(data);
  try {
    return (await writeExport({ history, note: history.checkpoints[0] ?? "" }, folder, () => undefined)).vkey;
  } finally {
    await history.close();
  }
}

function verifiersOf(folder: string, vkey: string): readonly Verifier[] {
  return [true, false].flatMap((chainAlone) => {
    const what = chainAlone ? chainAndTree : all;
    return [
      { name: what, verify: () => verifyHere(folder, vkey, chainAlone) },
      {
        name: `svc-verify.mjs, ${what}`,
        verify: () => verifyElsewhere(process.execPath, "svc-verify.mjs", [folder, "--key", vkey], chainAlone),
      },
      {
        name: `svc_verify.py, ${what}`,
        verify: () => verifyElsewhere("python3", "svc_verify.py", [folder, "--key", vkey], chainAlone),
      },
    ];
  });
}

async function verifyHere(folder: string, vkey: string, chainAlone: boolean): Promise<number> {
  const key = parseVerifierKey(vkey);
  if (!key.ok) throw new Error(key.problem);
  const { rows, problem } = await verifyExport({ folder, keys: [key.value], witnesses: [], chainAlone });
  return problem === undefined ? rows : 0;
}

/** Includes the start of its process, because an auditor waits for it too. */
async function verifyElsewhere(
  program: string,
  verifier: string,
  given: readonly string[],
  chainAlone: boolean,
): Promise<number> {
  const { status, stdout, error } = spawnSync(
    program,
    [join(root, "verify", verifier), ...given, ...(chainAlone ? ["--chain"] : [])],
    {
      encoding: "utf8",
    },
  );
  if (error !== undefined) throw error;
  return status === 0 ? (JSON.parse(stdout) as { readonly rows: number }).rows : 0;
}
