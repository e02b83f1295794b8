import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { InputError } from "../bad-input.ts";

/** Set inside the namespaces, so that the doctor does not enter them again. */
const insideVariable = "SVC_DOCTOR_INSIDE";

/** True inside the namespaces. The variable alone proves nothing: root with it would replace the machine's own files. */
export function isInside(): boolean {
  if (process.env[insideVariable] !== "1" || process.platform !== "linux") return false;
  return /^\s*0\s+[1-9]\d*\s+1\s*$/.test(readFileSync("/proc/self/uid_map", "utf8"));
}

const namespaces = ["--user", "--map-root-user", "--mount", "--net"];
const upThenRun = 'ip link set lo up && exec "$0" "$@"';
const path = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;

/** True if the operating system lets this user cut the network of a process. */
export function canCutNetwork(): boolean {
  if (process.platform !== "linux") return false;
  const words = [...namespaces, "sh", "-c", upThenRun, "true"];
  return (
    spawnSync("unshare", words, { stdio: "ignore", env: { ...process.env, PATH: path }, timeout: 10_000 }).status === 0
  );
}

/** Runs this command again where only loopback exists, and files can be replaced for its processes alone. */
export async function runInside(words: readonly string[]): Promise<number> {
  const own = [process.execPath, ...process.execArgv, process.argv[1] ?? "", "doctor", ...words];
  const child = spawn("unshare", [...namespaces, "sh", "-c", upThenRun, ...own], {
    stdio: "inherit",
    env: { ...process.env, PATH: path, [insideVariable]: "1" },
  });
  const [code] = (await once(child, "close")) as [number | null];
  return code ?? 1;
}

/** A folder that has another content for the doctor's processes alone. */
export interface ReplacedFolder {
  /** Writes a file, by its path in the folder. */
  readonly write: (path: string, text: string) => void;
  readonly end: () => void;
}

/** Puts an empty folder over a folder. It works only inside the namespaces. */
export function replaceFolder(folder: string, copy: string): ReplacedFolder {
  mkdirSync(copy);
  const options = { stdio: "ignore", env: { ...process.env, PATH: path } } as const;
  if (spawnSync("mount", ["--bind", copy, folder], options).status !== 0)
    throw new InputError(`${folder} cannot be replaced for the doctor's processes`);
  return {
    write: (name, text) => {
      const file = join(copy, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    },
    end: () => void spawnSync("umount", [folder], options),
  };
}
