/**
 * Drives agent frameworks: a program with the framework runs all cases of a host in one process, because the start of some
 * takes seconds. It reads plans as lines of JSON on stdin, and says how each run ended in a line of its own on stdout.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { root } from "../../../test/support/gate.ts";
import type { Ended, Host, HostPlace, Plan } from "../case.ts";

const secondsMax = 60;
const printedMax = 4000;
const prefix = "kit ";

/**
 * Starts the program when the first plan comes.
 *
 * @param command the program and its first arguments; the folders of the adapters and of the clients come after them
 */
export function openWorker(command: readonly string[], { env, adapters, folder }: HostPlace): Host {
  const waiting = new Map<number, (ended: Ended) => void>();
  let printed = "";
  let child: ChildProcess | undefined;
  let count = 0;

  const start = (): ChildProcess => {
    const [name = "", ...words] = command;
    const all = [...words, adapters, join(root, "clients")];
    const started = spawn(name, all, { cwd: folder, env, stdio: "pipe", detached: true });
    const lose = (why: string): void => {
      for (const resolve of waiting.values()) resolve({ ended: "lost", detail: `${why}\n${printed}` });
      waiting.clear();
      child = undefined;
    };
    createInterface({ input: started.stdout }).on("line", (line) => {
      if (!line.startsWith(prefix)) return keep(line);
      const { run, ended, detail } = JSON.parse(line.slice(prefix.length));
      waiting.get(run)?.({ ended, detail: `${detail}\n${printed}` });
      waiting.delete(run);
    });
    started.stderr.on("data", (piece) => keep(String(piece)));
    started.stdin.on("error", () => undefined);
    started.on("error", (error) => lose(String(error)));
    started.on("close", (code, signal) => lose(`the program ended with ${code ?? signal}`));
    return started;
  };
  const keep = (text: string): void => {
    printed = `${printed}${text}\n`.slice(-printedMax);
  };
  const kill = (): void => {
    try {
      if (child?.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // The group has ended.
    }
  };
  return {
    run: (plan: Plan) =>
      new Promise((resolve) => {
        child ??= start();
        count += 1;
        const timer = setTimeout(kill, secondsMax * 1000);
        waiting.set(count, (ended) => {
          clearTimeout(timer);
          resolve(ended);
        });
        child.stdin?.write(`${JSON.stringify({ ...plan, run: count })}\n`);
      }),
    stop: async () => {
      const ended = new Promise<void>((resolve) =>
        child === undefined ? resolve() : child.once("close", () => resolve()),
      );
      kill();
      await ended;
    },
  };
}

/** Returns the path of a program beside this file. */
export function program(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
