import { spawnSync } from "node:child_process";
import { Inputs, keyOf, lockFile, readLock, type Lock, type Noticed } from "../../test/support/controls/lock.ts";

/** Says of each control of the lock that is stale what changed since the commit that has its line. */
export function explainStale(lock: Lock): readonly string[] {
  const inputs = new Inputs();
  const stale = [...lock.values()].filter((line) => !inputs.isFresh(line));
  const commits = commitsOfLines();
  const changes = new Map<string, ReadonlySet<string>>();
  const lines = stale.flatMap((line) => {
    const commit = commits.get(keyOf(line)) ?? "HEAD";
    const changed = changes.getOrInsertComputed(commit, changedSince);
    return [`${line.file}: ${line.title || "the whole file"}`, ...reasons(line, { inputs, commit, changed })];
  });
  return [...lines, `${stale.length} of ${lock.size} lines are stale; a control without a line in ${lockFile} is too`];
}

function reasons(
  line: Noticed,
  {
    inputs,
    commit,
    changed,
  }: { readonly inputs: Inputs; readonly commit: string; readonly changed: ReadonlySet<string> },
): readonly string[] {
  const found = [...new Set([...inputs.of(line), ...line.mutated])].filter((path) => changed.has(path));
  if (found.length > 0) return found.map((path) => `  ${path} changed since ${commit}`);
  return [`  something changed between its last run and ${commit}, or one of its files is gone`];
}

/** Returns the commit that wrote each line, by the control's key. */
function commitsOfLines(): ReadonlyMap<string, string> {
  const blamed = git("blame", "-s", "--", lockFile);
  const found = blamed.flatMap((line) => {
    const [, commit = "", own = ""] = /^\^?([0-9a-f]+) +\d+\) (.*)$/.exec(line) ?? [];
    // Git shows zeros for a line that is not committed.
    return /^0*$/.test(commit) ? [] : [...readLock(own).keys()].map((key) => [key, commit] as const);
  });
  return new Map(found);
}

function changedSince(commit: string): ReadonlySet<string> {
  const untracked = git("ls-files", "--others", "--exclude-standard");
  return new Set([...git("diff", "--name-only", commit), ...untracked]);
}

/** Returns the lines that git prints; none without git or a commit. */
function git(...words: readonly string[]): readonly string[] {
  const { stdout } = spawnSync("git", words, { encoding: "utf8", maxBuffer: 2 ** 26 });
  return (stdout ?? "").split("\n").filter(Boolean);
}
