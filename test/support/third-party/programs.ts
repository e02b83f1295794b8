import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { TestContext } from "node:test";
import { root } from "../gate-process.ts";

/** A program of another project: built once at its pinned version if Go is installed, or found on the PATH. */
export interface Program {
  readonly name: string;
  /** The argument of `go install`; undefined for a program that is only looked for. */
  readonly module?: string;
  /** A folder with a module of our own, which is built in place. */
  readonly source?: string;
  readonly what: string;
}

const here = join(root, "tools", "third-party");
/** The folder of built programs; Git ignores it. */
export const built: string = join(here, ".cache");

const outsider: Program = {
  name: "outsider",
  source: join(here, "outsider"),
  what: "our own few lines over golang.org/x/mod/sumdb, transparency-dev/formats and merkle, json-canonicalization",
};
const fsck: Program = {
  name: "fsck",
  module: "github.com/transparency-dev/tessera/cmd/fsck@v1.0.4",
  what: "Tessera's check of a whole tlog-tiles log",
};
const omniwitness: Program = {
  name: "omniwitness",
  module: "github.com/transparency-dev/witness/cmd/omniwitness@v0.0.0-20260720115447-2e1c6971d19e",
  what: "the witness of transparency.dev",
};
const litewitness: Program = { name: "litewitness", what: "the witness of filippo.io/torchwood" };
const witnessctl: Program = { name: "witnessctl", what: "which tells litewitness of a log" };
const sshAgent: Program = { name: "ssh-agent", what: "which holds litewitness's key" };
const sshAdd: Program = { name: "ssh-add", what: "which gives it that key" };
const sshKeygen: Program = { name: "ssh-keygen", what: "which makes that key" };

export const programs = { outsider, fsck, omniwitness, litewitness, witnessctl, sshAgent, sshAdd, sshKeygen } as const;

/**
 * Returns a program's path. A program that can be built is only taken from the folder of built programs, because
 * systems have an `fsck` of their own; the rest come from the PATH.
 */
export function findProgram({ name, module, source }: Program): string | undefined {
  const isBuilt = module !== undefined || source !== undefined;
  const folders = isBuilt ? [built] : (process.env["PATH"] ?? "").split(delimiter);
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

/** Returns the programs that a test needs; if one is missing, the test is skipped with a message. */
export function needPrograms<Name extends keyof typeof programs>(
  t: TestContext,
  ...names: readonly Name[]
): Readonly<Record<Name, string>> | undefined {
  const found = names.map((name) => [name, findProgram(programs[name])] as const);
  const missing = found.filter(([, file]) => file === undefined).map(([name]) => programs[name].name);
  if (missing.length === 0) return Object.fromEntries(found) as Record<Name, string>;
  t.skip(`not here: ${missing.join(", ")}`);
  return undefined;
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end, for at most a minute, without our environment. */
export function runProgram(
  file: string,
  args: readonly string[],
  { input = "", env = {} }: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Ended> {
  const child = spawn(file, args, { env: { PATH: process.env["PATH"], ...env }, timeout: 60_000 });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (piece) => (stdout += String(piece)));
  child.stderr.on("data", (piece) => (stderr += String(piece)));
  // A program that ends without reading its input prints the reason itself.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

/** Starts a server and waits for the output that shows that it serves; it ends with the test. @returns its output */
export async function startProgram(
  t: TestContext,
  file: string,
  args: readonly string[],
  ready: RegExp,
): Promise<string> {
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "pipe"], env: { PATH: process.env["PATH"] } });
  let said = "";
  const ended = new Promise<void>((resolve) => child.on("close", () => resolve()));
  t.after(() => {
    child.kill("SIGTERM");
    const last = setTimeout(() => child.kill("SIGKILL"), 5000);
    return ended.then(() => clearTimeout(last));
  });
  await new Promise<void>((resolve, reject) => {
    const listen = (piece: unknown): void => {
      said += String(piece);
      if (ready.test(said)) resolve();
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.on("error", reject);
    void ended.then(() => reject(new Error(`${file} ended:\n${said}`)));
  });
  return said;
}

/**
 * Returns the version from which Go built a program, as the program says itself, or its path if it was found elsewhere.
 */
export function versionOf(file: string): string {
  const { stdout } = spawnSync("go", ["version", "-m", file], { encoding: "utf8" });
  const [, path, version] = /^\s*mod\s+(\S+)\s+(\S+)/m.exec(stdout ?? "") ?? [];
  return path === undefined ? file : `${path} ${version}`;
}
