import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The gate as a separate process, on a free port of this machine. */

export const root: string = fileURLToPath(new URL("../..", import.meta.url));
export const apiKey = "a-key-of-the-tests-0123456789";

export interface GateProcess {
  /** The URL where it listens. */
  readonly url: string;
  /** Kills it at once, without cleanup, and waits until it has ended. */
  kill(): Promise<void>;
  /** Asks it to stop, and resolves with its exit code. */
  stop(): Promise<number | null>;
  /** Returns its log. */
  stderr(): string;
  /** Resolves when it has ended, for whatever reason. */
  readonly ended: Promise<Exit>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Ended {
  readonly code: number | null;
  readonly stderr: string;
}

export interface StartOptions {
  readonly settings: Readonly<Record<string, string>>;
  /** A copy of the repository's sources; this repository by default. */
  readonly sources?: string;
  /** A command that runs the gate, with its arguments, such as `strace -D`. */
  readonly prefix?: readonly string[];
}

/** Runs a command of the gate, without this process's own settings. */
export function spawnGate(
  args: readonly string[],
  { settings, sources = root, prefix = [] }: StartOptions,
): ChildProcess {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_")));
  const env = { ...inherited, SVC_API_KEY: apiKey, SVC_LOG: "silent", SVC_PORT: "0", NO_COLOR: "1", ...settings };
  const [command, ...rest] = [
    ...prefix,
    process.execPath,
    join(sources, "packages", "svc-gate", "src", "main.ts"),
    ...args,
  ];
  return spawn(command ?? process.execPath, rest, { env, stdio: ["ignore", "pipe", "pipe"] });
}

/** Starts a gate. @throws an error with its output if it ends before it listens */
export async function startGate(options: StartOptions): Promise<GateProcess> {
  const child = spawnGate(["serve"], options);
  const ended = once(child, "close").then(() => ({ code: child.exitCode, signal: child.signalCode }));
  let logged = "";
  child.stderr?.on("data", (piece: Buffer) => (logged += piece.toString()));
  const url = await listening(child);
  child.stdout?.resume();
  return {
    stderr: () => logged,
    url,
    ended,
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
    },
    stop: async () => {
      child.kill("SIGTERM");
      await ended;
      return child.exitCode;
    },
  };
}

function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    let complained = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      const url = /listens on (\S+)\n/.exec(said)?.[1];
      if (url !== undefined) resolve(url);
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      complained += chunk.toString();
    });
    child.once("close", (code) => reject(new Error(`the gate ended with ${code}: ${complained}`)));
  });
}

/** Runs a command until it ends; a serving one is stopped after a while and counts as served. */
export async function runGate(args: readonly string[], options: StartOptions): Promise<Ended | "served"> {
  const child = spawnGate(args, options);
  // At `exit` the pipe may still contain data.
  const ended = once(child, "close");
  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  let served = false;
  child.stdout?.on("data", (chunk: Buffer) => {
    if (!chunk.toString().includes("listens on")) return;
    served = true;
    child.kill("SIGTERM");
  });
  await ended;
  return served ? "served" : { code: child.exitCode, stderr };
}
