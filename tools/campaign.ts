import { parseArgs } from "node:util";
import type { Bug } from "../test/support/campaign/bugs.ts";
import { runCampaign, type Report } from "../test/support/campaign/campaign.ts";
import { weights, type FailureName } from "../test/support/campaign/failures.ts";
import { Dice } from "../test/support/campaign/random.ts";

// `npm run campaign -- --failures 500 --seed 7`: runs gates over PostgreSQL with failures under load, and checks the
// ledger.
const { values } = parseArgs({
  options: {
    failures: { type: "string", default: "100" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    replicas: { type: "string", default: "3" },
    bounds: { type: "string", default: "short" },
    bug: { type: "string" },
    only: { type: "string", default: "" },
    quiet: { type: "boolean", default: false },
  },
});
const seed = Number(values.seed);
const dice = new Dice(seed);
const drawn = Object.fromEntries(Object.entries(weights).filter(([name]) => name.includes(values.only)));
const names = Array.from({ length: Number(values.failures) }, () => dice.weighted(drawn) as FailureName);
console.log(`seed ${seed}: ${names.length} failures, ${values.replicas} replicas, ${values.bounds} bounds`);
const stopped = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopped.abort());
const report = await runCampaign({
  enough: stopped.signal,
  seed,
  failures: names,
  replicas: Number(values.replicas),
  clients: 12,
  pauseMs: 100,
  bounds: values.bounds === "whole" ? "whole" : "short",
  ...(values.bug === undefined ? {} : { bug: values.bug as Bug }),
  ...(values.quiet ? {} : { say: console.log }),
});
if (typeof report === "string") console.log(`skipped: ${report}`);
else print(report);

function print({ happened, refused, ends, problems, ...counts }: Report): void {
  console.log("\n| failure | times |\n|---|---|");
  for (const [name, times] of [...happened].toSorted(([one], [other]) => one.localeCompare(other)))
    console.log(`| ${name} | ${times} |`);
  console.log(`| all | ${[...happened.values()].reduce((sum, times) => sum + times, 0)} |\n`);
  console.log("gates that ended by themselves, and were started again:");
  for (const [said, all] of Map.groupBy(ends, (end) => end.said.split("\n")[0])) {
    console.log(`  ${all.length} x exit code ${all[0]?.exitCode}: ${said}`);
    if (said?.includes("a fault")) console.log(all[0]?.said.split("\n").slice(1, 8).join("\n"));
  }
  console.log("refused:", Object.fromEntries(refused));
  console.log(JSON.stringify({ ...counts, problems }, undefined, 2));
  const isRight = [counts.lost, counts.twice, counts.keptThoughRefused, problems].every((found) => found.length === 0);
  if (!isRight || !counts.verified.ok) process.exitCode = 1;
}
