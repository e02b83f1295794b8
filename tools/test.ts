import { chmodSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import { allFiles, left, ringOf, rings, samples, type Ring } from "../test/support/rings.ts";

/**
 * `npm test [-- FILE...]`. With files, these run with all their rounds. Otherwise:
 *
 *   (nothing)         each ring, without the files and rounds that are left to test:all
 *   --ring NAME       this ring only (may be repeated)
 *   --all             each file with all rounds
 *   --rest            the files that `npm test` leaves out or reduces, with all rounds
 *
 * The ten slowest files are printed at the end. The last line is `N passed, N failed, N skipped`.
 */
interface Selection {
  readonly files: readonly string[];
  readonly leavesOut: readonly string[];
  readonly reduces: typeof samples;
}

const counts = { passed: 0, failed: 0, skipped: 0 };
const selection = select();
for (const { variable, rounds } of selection.reduces) process.env[variable] ??= String(rounds);
// Otherwise each test process and each gate would compile the same sources again.
process.env["NODE_COMPILE_CACHE"] ??= resolve("node_modules/.cache/compiled");
const template = mkdtempSync(join(tmpdir(), "svc-gate-test-"));
chmodSync(template, 0o755); // PostgreSQL runs as another user if this one is root
process.env["TEST_POSTGRES_TEMPLATE"] = template;
process.on("exit", () => rmSync(template, { recursive: true, force: true }));

const seconds = new Map<string, number>();
const execArgv = ["--disable-warning=ExperimentalWarning"]; // tags of tests
const events = run({ files: [...selection.files], concurrency: 3, timeout: 900_000, execArgv });
events.on("test:pass", ({ details, skip, todo }) => {
  if (details.type === "suite") return;
  if (skip !== undefined || todo !== undefined) counts.skipped += 1;
  else counts.passed += 1;
});
events.on("test:fail", ({ details, todo }) => {
  if (details.type !== "suite" && todo === undefined) counts.failed += 1;
});
events.on("test:summary", ({ file, duration_ms: milliseconds }) => {
  if (file !== undefined) seconds.set(relative(".", file), milliseconds / 1000);
});
await pipeline(events, new spec(), process.stdout, { end: false });

printSlowest();
printLeft();
if (counts.passed === 0) {
  console.log("no test ran");
  process.exitCode = 1;
}
if (counts.failed > 0) process.exitCode = 1;
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);

function select(): Selection {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ring: { type: "string", multiple: true },
      all: { type: "boolean", default: false },
      rest: { type: "boolean", default: false },
    },
  });
  if (positionals.length > 0) return { files: positionals.flatMap(expand), leavesOut: [], reduces: [] };
  const asked = (values.ring ?? rings).map(ringNamed);
  const files = allFiles().filter((path) => asked.includes(ringOf(path)));
  if (values.all) return { files, leavesOut: [], reduces: [] };
  const isLeft = (path: string): boolean => left.includes(path);
  const sampleOf = (path: string) => samples.filter(({ file }) => file === path);
  if (values.rest) {
    const rest = files.filter((path) => isLeft(path) || sampleOf(path).length > 0);
    return { files: rest, leavesOut: [], reduces: [] };
  }
  return {
    files: files.filter((path) => !isLeft(path)),
    leavesOut: files.filter(isLeft),
    reduces: files.flatMap(sampleOf),
  };
}

/** Returns the tests in a folder, or the file itself. */
function expand(path: string): readonly string[] {
  return path.endsWith(".ts") ? [path] : globSync(`${path}/**/*.test.ts`).toSorted();
}

function ringNamed(name: string): Ring {
  const ring = rings.find((each) => each === name);
  if (ring !== undefined) return ring;
  console.error(`the ring "${name}" of tests does not exist: use one of ${rings.join(", ")}`);
  return process.exit(2);
}

function printSlowest(): void {
  if (seconds.size < 2) return;
  console.log("\nthe slowest files, in seconds:");
  const slowest = [...seconds].toSorted(([, one], [, other]) => other - one).slice(0, 10);
  for (const [path, time] of slowest) console.log(`${time.toFixed(1).padStart(7)}  ${path}`);
}

function printLeft(): void {
  const { leavesOut, reduces } = selection;
  if (leavesOut.length + reduces.length === 0) return;
  console.log("\nleft to `npm run test:all`:");
  for (const path of leavesOut) console.log(`  ${path}`);
  for (const { file, variable, whole } of reduces)
    console.log(`  ${file}: ${variable}=${whole} (here ${process.env[variable]})`);
  console.log("");
}
