import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

export interface Commit {
  readonly hash: string;
  readonly subject: string;
  readonly body: string;
  readonly parents: readonly string[];
}

interface Choice {
  /** Only the commits that change this file. */
  readonly changing?: string;
  readonly environment?: NodeJS.ProcessEnv;
}

/**
 * Returns the commits, merges too, that came after a file was added: those that its first commit does not contain. The
 * newest comes first.
 *
 * @param path the file's path in the repository
 * @returns the reason if the history is unknown here
 */
export function commitsAfter(
  folder: string,
  path: string,
  { changing, environment = process.env }: Choice = {},
): readonly Commit[] | string {
  const unknown = unknownHistory(folder, environment);
  if (unknown !== undefined) return unknown;
  const git = (...given: string[]): string => runGit(folder, given, environment);
  if (git("rev-list", "--all", "--max-count=1") === "") return `${path} is not committed yet`;
  // A merge can be shown as adding the file too, and so can a commit that brings it back.
  const adding = (to: string): readonly string[] => [
    ...new Set(lines(git("log", "-m", "--full-history", "--diff-filter=A", "--format=%H", to, "--", path))),
  ];
  const first = adding("HEAD").filter((hash, _, all) => all.length === 1 || adding(hash).length === 1);
  if (first.length === 0) return `${path} is not committed yet`;
  const range = ["HEAD", "--not", ...first, ...(changing === undefined ? [] : ["--", changing])];
  const records = git("log", "-z", "--full-history", "--format=%H%n%P%n%s%n%b", ...range).split("\0");
  return records.filter((record) => record !== "").map(commitOf);
}

/** Returns why a folder's history cannot be read; undefined if it can. */
export function unknownHistory(folder: string, environment = process.env): string | undefined {
  if (!existsSync(join(folder, ".git"))) return "this folder is not a git checkout";
  const result = spawnSync("git", ["rev-parse", "--is-shallow-repository"], { cwd: folder, env: environment });
  if (result.error !== undefined) return "git is not installed";
  return String(result.stdout).trim() === "true" ? "the clone is shallow" : undefined;
}

function commitOf(record: string): Commit {
  const [hash = "", parents = "", subject = "", ...body] = record.split("\n");
  return { hash, parents: parents.split(" ").filter((parent) => parent !== ""), subject, body: body.join("\n") };
}

/** Returns a file's text at a commit; undefined if the commit does not have the file. */
export function fileAt(folder: string, hash: string, path: string, environment = process.env): string | undefined {
  const listed = runGit(folder, ["ls-tree", hash, "--", path], environment);
  return listed === "" ? undefined : runGit(folder, ["show", `${hash}:${path}`], environment);
}

/** @throws if git fails */
export function runGit(folder: string, given: readonly string[], environment = process.env): string {
  const { status, stdout, stderr } = spawnSync("git", given, {
    cwd: folder,
    env: environment,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  if (status === 0) return stdout;
  throw new Error(`git ${given.join(" ")} failed in ${folder}: ${stderr}`);
}

function lines(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "");
}
