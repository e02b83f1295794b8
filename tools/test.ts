import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { pipeline } from "node:stream/promises";
import { correctLocation, fileOf, folderVariable, freshReason } from "../test/support/controls/control.ts";
import { keyOf } from "../test/support/controls/lock.ts";
import { killOnInterrupt } from "../test/support/processes.ts";
import { fastFolder, offerPostgres } from "../test/support/shared-postgres.ts";
import { Batches } from "./testing/batches.ts";
import { judgeControls, prepareControls } from "./testing/controls.ts";
import { drawnIn, printLeft, printSeeds, printSlowest, writeSlowest, type Drawn } from "./testing/report.ts";
import { select } from "./testing/select.ts";

/**
 * `npm test [-- FILE...]`. With files, these run with all their rounds and controls. Otherwise:
 *
 *   (nothing)         each ring, without the files and rounds that are left to test:all
 *   --ring NAME       this ring only (may be repeated)
 *   --all             each file with all rounds and controls
 *   --rest            the files that `npm test` leaves out or reduces, with all rounds
 *   --stale           no test: it prints which controls are stale, and what changed
 *
 * A positive control that is fresh is skipped, but with --all or files. CONTROLS_SEED runs a random tenth of these too;
 * `.ci/run` sets it. The last lines say what was slow, which controls ran, and the seeds of random tests. The very last
 * is `N passed, N failed, N skipped`; fresh controls are not among the skipped.
 */
const counts = { passed: 0, failed: 0, skipped: 0 };
const selection = select(process.argv.slice(2), process.env);
for (const { variable, rounds } of selection.reduces) process.env[variable] ??= String(rounds);
// Otherwise each test process and each gate would compile the same sources again.
process.env["NODE_COMPILE_CACHE"] ??= resolve("node_modules/.cache/compiled");
const shared = mkdtempSync(join(fastFolder(), "svc-gate-test-"));
chmodSync(shared, 0o755); // PostgreSQL runs as another user if this one is root
process.env["TEST_POSTGRES_TEMPLATE"] = shared;
process.env[folderVariable] = shared;
process.on("exit", () => rmSync(shared, { recursive: true, force: true }));
const prepared = prepareControls(shared, {
  seed: process.env["CONTROLS_SEED"],
  files: selection.files,
  all: selection.allControls,
});

const endPostgres = await offerPostgres(shared);

const seconds = new Map<string, number>();
const seeds: Drawn[] = [];
const ends = { failed: new Set<string>(), skipped: new Set<string>(), passedFiles: new Set<string>() };
const execArgv = ["--disable-warning=ExperimentalWarning"]; // tags of tests
const interrupted = killOnInterrupt();
const files = selection.files.filter((file) => !prepared.leftOut.includes(file));
const batches = new Batches(selection, files, shared);
// Of a test, and of a file. The slowest file of agent hosts takes twenty minutes beside three others.
const timeout = 2_700_000;
const events = run({ files: [...batches.started], concurrency: 4, timeout, execArgv, signal: interrupted });
events.on("test:pass", (event) => {
  const { details, skip, todo, name } = event;
  if (details.type === "suite" || skip === freshReason) return;
  if (skip === undefined && todo === undefined) counts.passed += 1;
  else {
    counts.skipped += 1;
    ends.skipped.add(keyOf({ file: fileOf(event), title: name }));
  }
});
events.on("test:fail", (event) => {
  correctLocation(event);
  const { details, todo, name } = event;
  if (details.type === "suite" || todo !== undefined) return;
  counts.failed += 1;
  ends.failed.add(keyOf({ file: fileOf(event), title: name }));
});
events.on("test:summary", ({ file, duration_ms: milliseconds, success }) => {
  if (file === undefined) return;
  const ran = batches.filesOf(file);
  for (const each of ran) seconds.set(each, milliseconds / 1000 / ran.length);
  if (success) for (const each of ran) ends.passedFiles.add(each);
});
events.on("test:diagnostic", ({ message, file }) => {
  const drawn = drawnIn(message, file);
  if (drawn !== undefined) seeds.push(drawn);
});
await pipeline(events, new spec(), process.stdout, { end: false });
await endPostgres();

if (interrupted.aborted) process.exit(130);
if (selection.isWhole) writeSlowest(seconds);
const controls = judgeControls(prepared, ends);
printSlowest(seconds);
printLeft(selection);
printSeeds(seeds);
for (const line of controls.lines) console.log(line);
if (counts.passed === 0) console.log("no test ran");
if (counts.passed === 0 || counts.failed > 0 || controls.failed) process.exitCode = 1;
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
