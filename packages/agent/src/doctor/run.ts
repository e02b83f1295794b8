/** Starts the host with a home of its own. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { InputError } from "../bad-input.ts";
import { shellWord } from "../shell-word.ts";
import type { DoctorHost, StartContext, Start } from "./host.ts";

export interface InstalledHost {
  readonly program: string;
  readonly version: string;
}

/** Finds the host: the given program, or the one in PATH. */
export function findHost({ product, program: name }: DoctorHost, named: string | undefined): InstalledHost {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  const program = named ?? folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
  if (program === undefined) throw new InputError(`${product} is not in PATH: name its program with --host`);
  const { status, stdout } = spawnSync(program, ["--version"], { encoding: "utf8", timeout: 60_000 });
  const version = /\d+\.\d+\.\d+/.exec(stdout ?? "")?.[0];
  if (status !== 0 || version === undefined)
    throw new InputError(`${program} --version does not name a version of ${product}`);
  return { program, version };
}

const runMs = 120_000;
const sessionMs = 15_000;
const nowhere = "http://127.0.0.1:9";

/**
 * Waits for the host's end, and returns what it printed.
 *
 * @param inTerminal starts a session with a terminal of the command `script` (Linux), and ends it as soon as this is true
 */
export async function runHost(
  program: string,
  { home, workspace, temporary }: StartContext,
  { words, env, files }: Start,
  inTerminal?: () => boolean,
): Promise<string> {
  for (const each of [home, temporary, workspace]) mkdirSync(each, { recursive: true });
  for (const { path, text } of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  const session = join(temporary, "session");
  const inShell = `stty rows 40 cols 120; echo $$ > ${shellWord(session)}; exec ${[program, ...words].map(shellWord).join(" ")}`;
  const [first, ...others] = inTerminal === undefined ? [program, ...words] : ["script", "-qfec", inShell, "/dev/null"];
  const child = spawn(first, others, {
    cwd: workspace,
    stdio: [inTerminal === undefined ? "ignore" : "pipe", "pipe", "pipe"], // without input, `script` ends
    detached: true, // a group of its own, with everything that it starts
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      TMPDIR: temporary,
      HTTP_PROXY: nowhere,
      HTTPS_PROXY: nowhere,
      NO_PROXY: "127.0.0.1",
      ...(inTerminal === undefined ? {} : { TERM: "xterm-256color" }),
      ...env,
    },
  });
  const end = (): void => {
    endGroup(child.pid);
    if (existsSync(session)) endGroup(Number(readFileSync(session, "utf8"))); // `script` starts another group
  };
  const timer = setTimeout(end, inTerminal === undefined ? runMs : sessionMs);
  const watching = setInterval(() => inTerminal?.() === true && end(), 100);
  child.once("error", end);
  child.once("exit", end); // A program that the host left behind would keep its output open.
  process.once("exit", end);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece) => (output += String(piece)));
  await once(child, "close");
  clearTimeout(timer);
  clearInterval(watching);
  process.off("exit", end);
  return output;
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined || !(pid > 0)) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
