import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Kept, Sink } from "./sinks.ts";

const gitTimeoutMs = 10_000;

/** Whatever the user's own settings are: no hook, no signing, no work that goes on behind, and who it is. */
const settled = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.fsync=committed",
  "commit.gpgSign=false",
  "gc.auto=0",
  "maintenance.auto=false",
  "user.name=svc-gate",
  "user.email=svc-gate@localhost",
].flatMap((setting) => ["-c", setting]);

/**
 * A repository with files, in which the file `checkpoint` (a tenant's is `checkpoint.TENANT`) is committed. What else
 * lies there is left alone.
 */
export function gitSink(folder: string): Sink {
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = <Value>(job: () => Promise<Value>): Promise<Value> => {
    const done = turn.then(job, job);
    turn = done.catch(() => undefined);
    return done;
  };
  return {
    by: "git sink",
    place: folder,
    write: (tenant, note, signal) => inTurn(() => commit(folder, fileOf(tenant), note, signal)),
    read: (tenant, _origin, signal) => inTurn(() => committed(folder, fileOf(tenant), signal)),
  };
}

function fileOf(tenant: string | null): string {
  return tenant === null ? "checkpoint" : `checkpoint.${tenant}`;
}

async function commit(folder: string, file: string, note: string, signal: AbortSignal): Promise<void> {
  if ((await committed(folder, file, signal))?.note === note) return;
  const [origin = "", size = ""] = note.split("\n");
  await writeFile(join(folder, file), note, { signal });
  await git(folder, ["add", "--force", "--", file], signal);
  await git(folder, ["commit", "--quiet", "--no-verify", "-m", `${origin}: ${size} rows`, "--", file], signal);
}

async function committed(folder: string, file: string, signal: AbortSignal): Promise<Kept | undefined> {
  const listed = await git(folder, ["rev-parse", "--quiet", "--verify", `HEAD:${file}`], signal, [0, 1]);
  const blob = listed.trim();
  if (blob === "") return undefined;
  const seconds = await git(folder, ["log", "-1", "--format=%ct", "--", file], signal);
  return { note: await git(folder, ["cat-file", "blob", blob], signal), at: Number(seconds) * 1000 };
}

/** Runs git in a repository, and in none around it. @returns what it says */
function git(
  folder: string,
  args: readonly string[],
  signal: AbortSignal,
  codes: readonly number[] = [0],
): Promise<string> {
  const { PATH = "", HOME = folder } = process.env;
  const env = { PATH, HOME, LC_ALL: "C", GIT_TERMINAL_PROMPT: "0" };
  const place = ["--git-dir", join(folder, ".git"), "--work-tree", folder];
  const options = { cwd: folder, env, signal, timeout: gitTimeoutMs, maxBuffer: 64 * 1024, windowsHide: true };
  return new Promise((resolve, reject) => {
    execFile("git", [...place, ...settled, ...args], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code === "number" && codes.includes(code)) return resolve(stdout);
      const said = stderr.trim().split("\n").at(-1) ?? "";
      reject(new Error(`git ${args[0]} failed (${said === "" ? (code ?? "it took too long") : said})`));
    });
  });
}
