// Installs the packages of the lock file, once. npm runs it before `start`, `test` and others, so that a new clone
// needs only Node 20 or later and npm. No package's install script runs. argv: `serve` (packages for the gate),
// `workbench` (also for the authors' commands), `all` (also for tests; the default), or a folder: then those of each
// lock file in it or below it, two folders at a time. If there is a requirements.txt, its Python packages go to `.venv`
// there.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const packages = { serve: ["svc-gate"], workbench: ["svc-gate", "workbench"], all: ["svc-gate", "workbench"] };
const groups = Object.keys(packages);

/** Installs Node 26 if the present one is older; a Node that npm installed here stays. */
const needsRuntime = Number(process.versions.node.split(".")[0]) < 26 || process.execPath.startsWith(root);

const stuckMs = 15 * 60_000;
const turns = [];
process.on("exit", () => turns.forEach((turn) => rmdirSync(turn)));

/** Two commands started at once must not install at the same time: one waits until the other's folder is gone. */
async function takeTurn(turn) {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, exit);
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

const exit = () => process.exit(1);

function endTurn() {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.off(signal, exit);
  rmdirSync(turns.pop());
}

/**
 * npm would install a runtime for glibc, which does not start on musl: the next command would only say "node: not
 * found".
 */
function refuseMusl() {
  if (!needsRuntime || process.platform !== "linux" || process.report.getReport().header.glibcVersionRuntime) return;
  console.error(
    "svc-gate: this Linux has no glibc (Alpine has musl), so the Node 26 that npm installs does not run here: " +
      "install Node 26 yourself, use the container image (docs/guides/deploy.md), or a Linux with glibc",
  );
  process.exit(1);
}

function npm(folder, ...words) {
  const path = process.env.npm_execpath;
  const [command, first] = path ? [process.execPath, [path]] : ["npm", []];
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const { status } = spawnSync(command, [...first, ...words, ...flags], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
    shell: !path && process.platform === "win32",
  });
  if (status === 0) return;
  console.error("svc-gate: the installation failed; read the lines above, then run the command again");
  process.exit(status ?? 1);
}

/** Installed packages stay, because a gate may use them. The optional packages of `packages/` are the runtimes. */
function install(group) {
  const names = packages[group].map((name) => `--workspace=packages/${name}`);
  npm(root, "install", "--no-save", ...names, ...(needsRuntime ? [] : ["--omit=optional"]));
  if (group === "all") npm(root, "install", "--no-save", "--no-workspaces", "--include=dev", "--include=optional");
}

/** Python packages are wheels, so no code of theirs runs now. Without Python, the tests that need them are skipped. */
function installPython(folder) {
  if (!existsSync(join(folder, "requirements.txt"))) return;
  const venv = join(folder, ".venv");
  rmSync(venv, { recursive: true, force: true });
  const python = join(venv, process.platform === "win32" ? "Scripts" : "bin", "python");
  const flags = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"];
  const steps = [
    ["python3", "-m", "venv", venv],
    [python, "-m", "pip", "install", ...flags, "-r", join(folder, "requirements.txt")],
  ];
  for (const [command, ...words] of steps) {
    const { status } = spawnSync(command, words, { stdio: ["ignore", "ignore", "inherit"] });
    if (status === 0) continue;
    rmSync(venv, { recursive: true, force: true });
    console.error(`svc-gate: ${folder} has no Python packages: it needs python3 3.10 or later with venv and pip`);
    return;
  }
}

/** What a group, or a folder that has a lock file, needs, and whether it has that. */
function readState(name) {
  const isGroup = groups.includes(name);
  const folder = isGroup ? root : join(root, name);
  const locks = locksIn(folder);
  const lock = locks.map((each) => readFileSync(each, "utf8")).join("");
  // A larger group contains the smaller ones; the group with the runtime is enough if the runtime is not needed.
  const larger = isGroup ? groups.slice(groups.indexOf(name)) : ["lock"];
  const installed = join(folder, existsSync(join(folder, "package-lock.json")) ? "node_modules" : ".venv");
  const stampOf = (each) => join(installed, `.svc-gate-${each}`);
  const texts = [`with a runtime\n${lock}`, ...(needsRuntime ? [] : [`without a runtime\n${lock}`])];
  const isDone = () =>
    larger.some((each) => existsSync(stampOf(each)) && texts.includes(readFileSync(stampOf(each), "utf8")));
  return { isGroup, folder, locks, installed, stamp: stampOf(larger[0]), text: texts.at(-1), isDone };
}

/** @param name a group, or a folder that has a lock file */
export async function setUp(name) {
  const { isGroup, folder, locks, installed, stamp, text, isDone } = readState(name);
  if (isDone()) return;
  refuseMusl();
  await takeTurn(join(folder, ".installing"));
  if (!isDone()) {
    console.error(`svc-gate: installing the packages of ${locks.join(" and ")} (once, takes a minute) ...`);
    if (isGroup) install(name);
    else {
      if (existsSync(join(folder, "package-lock.json"))) npm(folder, "ci");
      installPython(folder);
    }
    mkdirSync(installed, { recursive: true }); // also without Python
    writeFileSync(stamp, text);
  }
  endTurn();
}

function locksIn(folder) {
  return ["package-lock.json", "requirements.txt"].map((each) => join(folder, each)).filter(existsSync);
}

/** The folder, or those below it that have a lock file. */
function lockedFolders(name) {
  if (locksIn(join(root, name)).length > 0) return [name];
  const entries = readdirSync(join(root, name), { withFileTypes: true });
  const inner = entries.filter((each) => each.isDirectory() && !/^(?:\.|node_modules$)/.test(each.name));
  return inner.flatMap((each) => lockedFolders(`${name}/${each.name}`));
}

/** Installs folders in processes of their own, since an installation keeps one processor busy. */
async function setUpFolders(folders) {
  const waiting = folders.filter((each) => !readState(each).isDone());
  if (waiting.length === 1) return setUp(waiting[0]);
  const started = new Set();
  process.on("exit", () => started.forEach((child) => child.kill()));
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const child = spawn(process.execPath, [process.argv[1], next], { stdio: ["ignore", "ignore", "inherit"] });
      started.add(child);
      const [status] = await once(child, "exit");
      started.delete(child);
      if (status !== 0) process.exit(status ?? 1);
    }
  };
  await Promise.all([work(), work()]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.length > 2 ? process.argv.slice(2) : ["all"];
  for (const group of names.filter((each) => groups.includes(each))) await setUp(group);
  await setUpFolders(names.filter((each) => !groups.includes(each)).flatMap(lockedFolders));
}
