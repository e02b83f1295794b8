import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { built, findProgram, programs, versionOf, type Program } from "../test/support/third-party/programs.ts";

// `npm run third-party`: other projects' programs check this ledger: Tessera's fsck, witnesses, Go's libraries. They
// are built once if Go is installed; missing ones are reported and skipped. The last line is `N passed, N failed, N
// skipped`.
const root = join(import.meta.dirname, "..");
const tests = ["outsider", "fsck", "witness", "gate", "cosigned", "exports"].map((name) =>
  join("test", "third-party", `${name}.ts`),
);

/** Builds a missing program, or prints why it cannot. */
function build({ name, module, source }: Program): string | undefined {
  if (module === undefined && source === undefined) return "not on the PATH";
  const args = source === undefined ? ["install", module ?? ""] : ["build", "-C", source, "-o", join(built, name), "."];
  const { status, error, stderr } = spawnSync("go", args, {
    env: { ...process.env, GOBIN: built, GOFLAGS: "-mod=mod -buildvcs=false" },
    encoding: "utf8",
    timeout: 600_000,
  });
  if (error !== undefined) return "Go is not on this machine";
  return status === 0
    ? undefined
    : `Go could not build it: ${stderr
        .trim()
        .split(/\s*\n\s*/)
        .slice(-2)
        .join("; ")}`;
}

/** @returns whether the program is installed */
function prepare(program: Program): boolean {
  // Our own source is built each time, because Go knows whether it has changed.
  const problem = program.source === undefined && findProgram(program) ? undefined : build(program);
  const file = findProgram(program);
  const found = file === undefined || problem !== undefined ? `skipped: ${problem}` : versionOf(file);
  console.log(`  ${program.name} (${program.what})\n    ${found}`);
  return file !== undefined;
}

mkdirSync(built, { recursive: true });
console.log(`programs are built in ${built}`);
const isThere = new Map(Object.values(programs).map((program) => [program, prepare(program)]));
const { outsider, fsck, omniwitness, litewitness } = programs;
if ([outsider, fsck, omniwitness, litewitness].some((program) => isThere.get(program))) {
  const { status } = spawnSync(process.execPath, ["tools/test.ts", ...tests], { cwd: root, stdio: "inherit" });
  process.exitCode = status ?? 1;
} else console.log("0 passed, 0 failed, 1 skipped");
