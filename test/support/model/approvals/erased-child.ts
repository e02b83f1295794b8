/** Runs erased histories of some seeds with the sources of this process, and prints the first problem. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { erasedHistory } from "./erased.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-gate-model-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
for (let seed = 1; seed <= Number(process.argv[2]); seed += 1) {
  const { problem } = await erasedHistory(join(folder, String(seed)), seed);
  if (problem === undefined) continue;
  console.log(`problem in history ${seed}: ${problem}`);
  break;
}
