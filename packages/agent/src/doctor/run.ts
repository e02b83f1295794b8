/** Starts the host with a home of its own. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { BadInput } from "../bad-input.ts";
import type { DoctorHost, Place, Start } from "./hosts.ts";

/** The installed host. */
export interface Installed {
  readonly program: string;
  readonly version: string;
}

/** Finds the host: the given program, or the one in PATH. */
export function findHost({ product, program: name }: DoctorHost, named: string | undefined): Installed {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  const program = named ?? folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
  if (program === undefined) throw new BadInput(`${product} is not in PATH: name its program with --host`);
  const { status, stdout } = spawnSync(program, ["--version"], { encoding: "utf8", timeout: 60_000 });
  const version = /\d+\.\d+\.\d+/.exec(stdout ?? "")?.[0];
  if (status !== 0 || version === undefined)
    throw new BadInput(`${program} --version does not name a version of ${product}`);
  return { program, version };
}

const runMs = 120_000;
const nowhere = "http://127.0.0.1:9";

/** Waits for the host's end. */
export async function runHost(
  program: string,
  { home, workspace, temporary }: Place,
  { words, env, files }: Start,
): Promise<string> {
  for (const each of [home, temporary, workspace]) mkdirSync(each, { recursive: true });
  for (const { path, text } of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  const child = spawn(program, words, {
    cwd: workspace,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // a group of its own, with everything that it starts
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      TMPDIR: temporary,
      HTTP_PROXY: nowhere,
      HTTPS_PROXY: nowhere,
      NO_PROXY: "127.0.0.1",
      ...env,
    },
  });
  const end = (): void => endGroup(child.pid);
  const timer = setTimeout(end, runMs);
  child.once("exit", end); // A program that the host left behind would keep its output open.
  process.once("exit", end);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (output += String(piece)));
  await once(child, "close");
  clearTimeout(timer);
  process.off("exit", end);
  return output;
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
