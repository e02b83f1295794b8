import { globSync } from "node:fs";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { pipeline } from "node:stream/promises";

// `npm test`: every test file, or those that argv names; the last line is `N passed, N failed, N skipped`.
const named = process.argv.slice(2);
const files = named.length > 0 ? named : globSync("test/**/*.test.ts").toSorted();
const counts = { passed: 0, failed: 0, skipped: 0 };

const events = run({ files, concurrency: 2, timeout: 1_800_000 });
events.on("test:pass", ({ details, skip, todo }) => {
  if (details.type === "suite") return;
  if (skip !== undefined || todo !== undefined) counts.skipped += 1;
  else counts.passed += 1;
});
events.on("test:fail", ({ details, todo }) => {
  if (details.type !== "suite" && todo === undefined) counts.failed += 1;
});
await pipeline(events, new spec(), process.stdout, { end: false });

if (counts.passed === 0) {
  console.log("no test ran");
  process.exitCode = 1;
}
if (counts.failed > 0) process.exitCode = 1;
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
