import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A running server of a peer. `roots` are the processes from which all its processes descend. */
export interface Server {
  readonly url: string;
  readonly roots: readonly number[];
  /** Its output if it ended unexpectedly; undefined while it runs. */
  readonly ended: () => string | undefined;
  /** The number of decisions in its log now. */
  readonly recorded: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Its working folder; its output goes to a file there. */
  readonly folder: string;
  readonly recorded: () => Promise<number>;
}

/** Starts a program that will listen on a port of this machine. It does not wait for an answer. */
export function launch({ command, args, environment, folder, recorded }: Program, port: number): Server {
  const said = join(folder, "said.log");
  const file = openSync(said, "a");
  const child = spawn(command, args, {
    cwd: folder,
    env: { ...process.env, ...environment },
    stdio: ["ignore", file, file],
  });
  closeSync(file);
  const abandon = (): void => void child.kill("SIGKILL"); // the run was stopped
  process.once("exit", abandon);
  let failure: string | undefined;
  child.once("error", (error) => (failure = error.message));
  child.once("exit", () => {
    process.removeListener("exit", abandon);
    failure ??= existsSync(said) ? readFileSync(said, "utf8").slice(-1000) : "";
  });
  return {
    url: `http://127.0.0.1:${port}`,
    roots: child.pid === undefined ? [] : [child.pid],
    ended: () => failure,
    recorded,
    stop: () => end(child),
  };
}

function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill("SIGKILL");
  });
}

/**
 * Returns the memory of these processes and their descendants in megabytes; a shared page is divided among its users.
 */
export function residentMb(roots: readonly number[]): number {
  const kilobytes = withChildren(roots).map((pid) => {
    try {
      return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0);
    } catch {
      return 0; // it has ended since it was listed
    }
  });
  return kilobytes.reduce((sum, each) => sum + each, 0) / 1024;
}

function withChildren(roots: readonly number[]): readonly number[] {
  const parents = new Map(
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((name) => [Number(name), parentOf(Number(name))] as const),
  );
  const found = new Set(roots);
  for (let before = 0; before < found.size;) {
    before = found.size;
    for (const [pid, parent] of parents) if (parent !== undefined && found.has(parent)) found.add(pid);
  }
  return [...found];
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[1]);
  } catch {
    return undefined;
  }
}
