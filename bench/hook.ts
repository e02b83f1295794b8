import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gateSettings, start } from "./check.ts";
import { atMost, conclude, medianInterval, printTable, shown } from "./report.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const pairs = Number(process.env["BENCH_PAIRS"] ?? 60);
const barMs = 60;

const input = JSON.stringify({
  hook_event_name: "PreToolUse",
  session_id: "bench",
  tool_name: "payment.send",
  tool_input: { amount: 1 },
});

/**
 * Measures a call of `svc-gate hook`, as the package has it, beside an empty process of the same Node, in alternating
 * turns. A host starts such a process before each tool call.
 */
export async function benchHook(): Promise<void> {
  execFileSync(process.execPath, ["--disable-warning=ExperimentalWarning", join(root, "tools", "build.ts")]);
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const settings = gateSettings(join(folder, "data"));
  const gate = await start(["bin/svc-gate.mjs", "serve"], settings);
  try {
    writeFileSync(join(folder, "key"), settings["SVC_API_KEY"] ?? "", { mode: 0o600 });
    writeFileSync(join(folder, "empty.mjs"), "");
    const program = join(root, "dist", "agent", "bin", "svc-gate.mjs");
    const words = ["hook", "--agent", "claude-code", "--url", gate.url, "--key-file", join(folder, "key")];
    const empty: number[] = [];
    const hook: number[] = [];
    for (let pair = 0; pair <= pairs; pair += 1) {
      const times = { empty: timed([join(folder, "empty.mjs")], ""), hook: timed([program, ...words], input) };
      if (pair === 0) continue; // the first turn warms the files up
      empty.push(times.empty);
      hook.push(times.hook);
    }
    const more = medianInterval(hook.map((time, index) => time - (empty[index] ?? 0)));
    printTable([
      ["a process", "ms, median of pairs"],
      ["empty", shown(medianInterval(empty))],
      ["svc-gate hook", shown(medianInterval(hook))],
      ["more", shown(more)],
    ]);
    conclude("hook", { "ms above an empty process, median": atMost(more.median, barMs) });
  } finally {
    gate.child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

function timed(words: readonly string[], stdin: string): number {
  const startedAt = performance.now();
  const { status, stderr } = spawnSync(process.execPath, words, { input: stdin, encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return performance.now() - startedAt;
}
