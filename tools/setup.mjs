// Installs what a lock file names, once: run by npm before `start`, `test` and `check`, so that a fresh clone needs
// nothing but Node 20 or later and npm. No package's install script is run. argv: folders, this repository by default.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folders = process.argv.length > 2 ? process.argv.slice(2) : ["."];

const stuckMs = 15 * 60_000;
const turns = [];
process.on("exit", () => turns.forEach((turn) => rmdirSync(turn)));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));

/** Two commands started at once must not install over each other: one waits until the other's folder is gone. */
async function takeTurn(turn) {
  for (let said = false; ; said = true) {
    try {
      mkdirSync(turn);
      turns.push(turn);
      return;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
      if (!said)
        console.error(`svc-gate: another command is installing; waiting for it (if none is, remove ${turn}) ...`);
      const age = Date.now() - (statSync(turn, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age > stuckMs) rmdirSync(turn);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

/** npm would install a runtime for glibc, which does not start on musl: the next command would only say "node: not found". */
function refuseMusl() {
  if (process.platform !== "linux" || process.report.getReport().header.glibcVersionRuntime) return;
  console.error(
    "svc-gate: this Linux has no glibc (Alpine has musl), so the Node 26 that npm installs does not run here: " +
      "use the container image (docs/deploy.md), or a Linux with glibc",
  );
  process.exit(1);
}

for (const folder of folders.map((name) => join(root, name))) {
  const lock = readFileSync(join(folder, "package-lock.json"), "utf8");
  const stamp = join(folder, "node_modules", ".svc-gate-lock");
  const isDone = () => existsSync(stamp) && readFileSync(stamp, "utf8") === lock;
  if (isDone()) continue;
  refuseMusl();
  await takeTurn(join(folder, ".installing"));
  if (isDone()) continue;
  console.error(`svc-gate: installing what ${join(folder, "package-lock.json")} names (once, takes a minute) ...`);
  const npm = process.env.npm_execpath;
  const [command, first] = npm ? [process.execPath, [npm]] : ["npm", []];
  const { status } = spawnSync(
    command,
    [...first, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
    {
      cwd: folder,
      stdio: ["ignore", "ignore", "inherit"],
      shell: !npm && process.platform === "win32",
    },
  );
  if (status !== 0) {
    console.error("svc-gate: the installation failed; read the lines above, then run the command again");
    process.exit(status ?? 1);
  }
  writeFileSync(stamp, lock);
}
