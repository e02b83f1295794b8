/**
 * `npm run hosts [-- --newest]`: runs the conformance kit against the agent hosts of the lock file, and writes README.md and
 * results.md of docs/hosts. With `--newest` it installs the newest versions into a temporary folder, and prints what it found.
 * It exits with 1 if a case fails that is not listed as open.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { folders, installed } from "../adapters/conformance/hosts.ts";
import { runHost } from "../adapters/conformance/kit.ts";
import { pages, surprises, type HostRun } from "../adapters/conformance/page.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values } = parseArgs({ options: { newest: { type: "boolean", default: false } } });
const ends: (() => Promise<void>)[] = [];
const end = { after: (each: () => Promise<void>): void => void ends.push(each) };

try {
  if (values.newest) installNewest();
  const { drivers } = await import("../adapters/conformance/drivers/all.ts"); // some read where hosts are installed
  const found: HostRun[] = [];
  for (const driver of drivers) {
    const missing = driver.missing();
    if (missing !== undefined) throw new Error(`${driver.name}: ${missing}`);
    const started = performance.now();
    const runs = await runHost(end, driver, { atOnce: driver.hasPermissions ? 2 : 4 });
    found.push({ driver, version: driver.version(), runs });
    console.error(`${driver.name} ${driver.version()}: ${((performance.now() - started) / 1000).toFixed(0)} s`);
  }
  const problems = found.flatMap(surprises);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
  for (const [name, pageOf] of Object.entries(pages))
    if (values.newest) console.log(pageOf(found));
    else writeFileSync(join(root, "docs", "hosts", name), pageOf(found));
} finally {
  for (const each of ends) await each();
}

/** Installs the newest versions of the named packages, without the dependencies' locked versions. */
function installNewest(): void {
  const scratch = mkdtempSync(join(tmpdir(), "svc-gate-hosts-"));
  end.after(async () => rmSync(scratch, { recursive: true, force: true }));
  for (const name of folders) {
    const [own, folder] = [installed(name), join(scratch, name)];
    mkdirSync(folder, { recursive: true });
    for (const file of ["package.json", "requirements.in"])
      if (existsSync(join(own, file))) cpSync(join(own, file), join(folder, file));
    if (existsSync(join(folder, "package.json"))) {
      const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      const names = Object.entries<string>({ ...dependencies, ...optionalDependencies }).map(
        ([key, version]) => `${key}@${newestOf(version)}`,
      );
      run(folder, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", ...names);
    }
    if (!existsSync(join(folder, "requirements.in"))) continue;
    run(folder, "python3", "-m", "venv", ".venv");
    const words = ["install", "--quiet", "--only-binary=:all:", "-r", "requirements.in"];
    run(folder, join(folder, ".venv", "bin", "pip"), ...words);
  }
  process.env["SVC_TEST_HOSTS"] = scratch;
}

/** A package under another name is an older major version, which stays. */
function newestOf(version: string): string {
  const [, name, major] = /^npm:(.+)@(\d+)\./.exec(version) ?? [];
  return name === undefined ? "latest" : `npm:${name}@${major}`;
}

function run(cwd: string, command: string, ...words: readonly string[]): void {
  const { status } = spawnSync(command, words, { cwd, stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error(`${command} ${words[0]} failed`);
}
