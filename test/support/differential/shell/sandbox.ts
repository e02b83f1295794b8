import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { lineOf, type Order, type Reply } from "./runner.ts";

const runner = fileURLToPath(new URL("runner.ts", import.meta.url));

/**
 * Mounts an empty file system at $1, makes all others read-only, gives up every privilege and starts the command.
 * It exits with 9 if the folder of temporary files, which is outside $1, is still writable.
 */
const seal = `
set -e
area=$1
shift
mount -t tmpfs -o size=32m,mode=755 tmpfs "$area"
mount -t proc proc /proc || true
while read -r _ _ _ _ point _; do
  [ "$point" = "$area" ] || mount -o remount,bind,ro "$point" 2> /dev/null || true
done < /proc/self/mountinfo
if touch "$area.probe" 2> /dev/null; then exit 9; fi
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
`;

const namespaces = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount", "--net"];

/** A folder to run texts in. */
export interface Sandbox {
  /** An absolute path. The texts' working folder is `app` in it. */
  readonly area: string;
  /** Whether the texts run in separate namespaces and cannot write anywhere else. */
  readonly isSealed: boolean;
  readonly run: (order: Omit<Order, "id">) => Promise<Reply>;
  readonly close: () => Promise<void>;
}

/** Returns the path of a shell, if it is installed. */
export function shellPath(name: string): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

export function canSeal(): boolean {
  const area = mkdtempSync(join(tmpdir(), "svc-shell-"));
  const { status } = spawnSync("unshare", [...namespaces, "sh", "-c", seal, "sh", area, "true"]);
  rmSync(area, { recursive: true, force: true });
  rmSync(`${area}.probe`, { force: true });
  return status === 0;
}

/**
 * Starts runners that share one path: each has its own file system there if they are sealed. Without namespaces there
 * is one runner in an ordinary folder, because two would see the effects of each other.
 */
export function openSandbox({
  isSealed,
  runners,
  programs = [],
}: {
  readonly isSealed: boolean;
  readonly runners: number;
  /** Programs besides the usual ones. With some, the working folder is a project with a repository. */
  readonly programs?: readonly string[];
}): Sandbox {
  const area = mkdtempSync(join(tmpdir(), "svc-shell-"));
  const command = [process.execPath, "--disable-warning=ExperimentalWarning", runner, area, ...programs];
  const started = Array.from({ length: isSealed ? runners : 1 }, () =>
    connect(
      isSealed
        ? spawn("unshare", [...namespaces, "sh", "-c", seal, "sh", area, ...command], {
            stdio: ["pipe", "pipe", "inherit"],
          })
        : spawn(command[0] ?? "", command.slice(1), { stdio: ["pipe", "pipe", "inherit"] }),
    ),
  );
  return {
    area,
    isSealed,
    run: (order) => {
      const [first] = started.toSorted((a, b) => a.waiting() - b.waiting());
      if (first === undefined) throw new Error("every runner has ended");
      return first.run(order);
    },
    close: async () => {
      await Promise.all(started.map(({ close }) => close()));
      rmSync(area, { recursive: true, force: true });
    },
  };
}

interface Runner {
  readonly waiting: () => number;
  readonly run: Sandbox["run"];
  readonly close: () => Promise<void>;
}

function connect(child: ChildProcess): Runner {
  const waiting = new Map<number, { resolve: (reply: Reply) => void; reject: (error: Error) => void }>();
  let orders = 0;
  let ended: Error | undefined;
  if (child.stdout === null || child.stdin === null) throw new Error("the runner has no pipes");
  const { stdin } = child;
  stdin.on("error", () => undefined);
  createInterface({ input: child.stdout }).on("line", (line) => {
    const reply = JSON.parse(line) as Reply;
    waiting.get(reply.id)?.resolve(reply);
    waiting.delete(reply.id);
  });
  const fail = (why: string): void => {
    ended ??= new Error(`the runner of shell texts ended: ${why}`);
    for (const { reject } of waiting.values()) reject(ended);
    waiting.clear();
  };
  child.once("error", (error) => fail(error.message));
  const exited = new Promise<void>((resolve) => {
    child.once("exit", (code, signal) => {
      fail(`exit code ${code}, signal ${signal}`);
      resolve();
    });
  });
  return {
    waiting: () => waiting.size,
    run: (order) =>
      new Promise((resolve, reject) => {
        if (ended !== undefined) return reject(ended);
        orders += 1;
        waiting.set(orders, { resolve, reject });
        stdin.write(`${lineOf({ id: orders, ...order })}\n`);
      }),
    close: () => {
      stdin.end();
      return exited;
    },
  };
}
