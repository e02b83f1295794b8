/**
 * Goal: `git blame` skips the commits that only moved code. Method: each commit that `.git-blame-ignore-revs` names is
 * one that this history has. A rebase gives a commit another hash, so that git would ignore the file.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../support/controls/control.ts";
import { runGit, unknownHistory } from "../support/history.ts";
import { environment, SmallRepository } from "../support/small-repository.ts";
import { root } from "../support/tracked.ts";

/** Returns the commits of a file for `blame.ignoreRevsFile`, each with the line before it, a comment. */
function ignoredIn(text: string): readonly { readonly hash: string; readonly reason: string }[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.flatMap((hash, index) => (hash.startsWith("#") ? [] : [{ hash, reason: lines[index - 1] ?? "" }]));
}

function strangers(folder: string, text: string, given = process.env): readonly string[] {
  const history = new Set(runGit(folder, ["rev-list", "HEAD"], given).split("\n"));
  return ignoredIn(text)
    .map(({ hash }) => hash)
    .filter((hash) => !history.has(hash));
}

suite("commits that git blame skips", () => {
  const text = readFileSync(join(root, ".git-blame-ignore-revs"), "utf8");

  test("each ignored commit is an ancestor of this one", { skip: unknownHistory(root) }, () => {
    assert.ok(ignoredIn(text).length > 0);
    assert.deepEqual(strangers(root, text), []);
  });

  test("each ignored commit has a reason before it", () => {
    for (const { hash, reason } of ignoredIn(text)) {
      assert.match(hash, /^[0-9a-f]{40}$/);
      assert.match(reason, /^# \w/, hash);
    }
  });

  control("positive control: a commit that a rebase replaced is noticed", (t) => {
    const repository = new SmallRepository(t);
    repository.commit("first");
    repository.commit("moved");
    const before = repository.git("rev-parse", "HEAD").trim();
    assert.deepEqual(strangers(repository.folder, `# moves\n${before}\n`, environment), []);
    repository.git("commit", "--quiet", "--amend", "-m", "moved again");
    assert.deepEqual(strangers(repository.folder, `# moves\n${before}\n`, environment), [before]);
  });
});
