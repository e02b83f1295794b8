import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { replayCommand } from "../packages/records/src/replay/command.ts";
import { compileMandate } from "../packages/readers/src/contract.ts";
import { Clock } from "../packages/gate/src/server/policy/clock.ts";
import { openGate } from "../packages/gate/src/server/service/gate.ts";
import { openLedger } from "../packages/gate/src/ledger/mod.ts";
import { good, parseCheckRequest } from "../packages/core/src/wire/mod.ts";
import { atMost, conclude, printTable, round } from "./report.ts";
import { paymentBody } from "./requests.ts";

const contract = fileURLToPath(new URL("../contracts/payments.yaml", import.meta.url));
/** Limits under which most calls of a long load are allowed, as in production. */
const mandate = `mandate: bench
contracts: [payments.yaml]
limits: { payments: { monthly_budget_usd: 1000000000, payments_per_minute: 1000000000 } }
`;
const perBatch = 250;

/** Seconds to decide recorded payments again, with sessions and counters, and the memory for it. */
export async function benchReplay(): Promise<void> {
  const rows = Number(process.env["BENCH_ROWS"] ?? 1_000_000);
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  try {
    inChild("fill", folder, rows);
    const itself = inChild("itself", folder, rows);
    const other = inChild("other", folder, rows);
    const tenth =
      inChild("fill", join(folder, "tenth"), rows / 10) && inChild("itself", join(folder, "tenth"), rows / 10);
    printTable([
      ["replay", "receipts", "seconds", "receipts/s", "resident MB"],
      ["against itself", rows, round(itself.seconds), round(rows / itself.seconds), round(itself.residentMb)],
      ["under another contract", rows, round(other.seconds), round(rows / other.seconds), round(other.residentMb)],
      ["against itself", rows / 10, round(tenth.seconds), round(rows / 10 / tenth.seconds), round(tenth.residentMb)],
    ]);
    conclude("replay", {
      seconds_against_itself: atMost(itself.seconds, 60),
      seconds_under_another: atMost(other.seconds, 60),
      memory_growth_mb_from_a_tenth: atMost(itself.residentMb - tenth.residentMb, 100),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Measured {
  readonly seconds: number;
  readonly residentMb: number;
}

/** Runs in another process, so that its memory is only that of the replay. */
function inChild(what: string, folder: string, rows: number): Measured {
  const output = execFileSync(process.execPath, [import.meta.filename, what, folder, String(rows)], {
    encoding: "utf8",
  });
  return JSON.parse(output) as Measured;
}

async function fill(folder: string, rows: number): Promise<void> {
  const compiled = compileMandate({ name: "mandate.yaml", text: mandate }, (name) =>
    good({ name, text: readFileSync(contract, "utf8") }),
  );
  if (!compiled.ok) throw new Error("the payments contract does not compile");
  const ledger = await openLedger({ folder, engine: "svc-gate/bench" });
  let now = Date.parse("2026-01-01T00:00:00Z");
  const opened = await openGate({
    policySet: compiled.value,
    ledger,
    clock: new Clock({ wall: () => now, monotonic: () => now }),
    mode: "enforce",
    onDefect: ({ defect }) => {
      throw defect;
    },
  });
  if (!opened.ok) throw new Error(opened.problem.detail);
  const { gate } = opened.value;
  for (let done = 0; done < rows; done += perBatch) {
    now += 2000;
    const checks = Array.from({ length: perBatch }, (_, at) => {
      const parsed = parseCheckRequest(paymentBody(done + at));
      if (!parsed.ok) throw new Error(parsed.problem.detail);
      return gate.check(parsed.value, { keyName: "default", bytes: 0, digest: "" });
    });
    await Promise.all(checks);
  }
  await gate.drain();
  await ledger.close();
}

async function replay(folder: string, rows: number, options: { readonly contract?: string }): Promise<void> {
  const { text } = await replayCommand(folder, { ...options, examples: "3", json: true });
  const { agreed, decided } = JSON.parse(text) as { readonly agreed?: number; readonly decided?: number };
  if ((agreed ?? decided) !== rows) throw new Error(`not all were decided again: ${text.slice(0, 500)}`);
}

if (import.meta.main) {
  const [what, folder = "", rows] = process.argv.slice(2);
  const from = performance.now();
  if (what === "fill") await fill(folder, Number(rows));
  else await replay(folder, Number(rows), what === "other" ? { contract } : {});
  const seconds = (performance.now() - from) / 1000;
  console.log(JSON.stringify({ seconds, residentMb: process.resourceUsage().maxRSS / 1024 }));
}
