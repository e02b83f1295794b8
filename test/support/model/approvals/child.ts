/** Runs the kept histories and those of some seeds with the sources of this process, and prints the first difference. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./drive.ts";
import { kept } from "./kept.ts";
import { stepsOf } from "./steps.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-gate-model-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
const seeds = Array.from({ length: Number(process.argv[2]) }, (_, index) => index + 1);
const histories = [...kept.map(({ steps }) => steps), ...seeds.map((seed) => stepsOf(seed))];
for (const [index, steps] of histories.entries()) {
  const problem = await run(join(folder, String(index)), steps);
  if (problem === undefined) continue;
  console.log(`differs in history ${index + 1}: ${problem}`);
  break;
}
