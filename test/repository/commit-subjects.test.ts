/**
 * Goal: a commit's subject says what changed, and names no path of one machine. Method: read the subjects of all commits
 * after the one that added this file. The rules are tried on examples, and the choice of commits on small repositories.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { pathToFileURL } from "node:url";
import { control } from "../support/controls/control.ts";
import { commitsAfter, type Commit } from "../support/history.ts";
import { environment, newFolder, SmallRepository } from "../support/small-repository.ts";
import { root } from "../support/tracked.ts";

const self = "test/repository/commit-subjects.test.ts";

const folders = String.raw`home|Users|root|tmp|var\/(?:tmp|folders)|private|work|workspaces?|builds|mnt|media|Volumes`;
const rules: readonly (readonly [fault: string, pattern: RegExp])[] = [
  ["names a merge from another place", /^Merge (?:remote-tracking )?branch(?:es)? .* of |^Merge remote-tracking /],
  ["names a path of one machine", new RegExp(String.raw`(?<![\w.~-])\/(?:${folders})\/[^\s/]`)],
  ["names a path of one machine", /\b[a-z]:[\\/](?:users|te?mp|work|workspace)[\\/]/i],
  // A hidden file in a home folder, such as a setting of a host, is the same on each machine.
  ["names a path of one machine", /(?<![\w.~/-])~\/[^\s.]/],
];

function faultsOf({ hash, subject }: Pick<Commit, "hash" | "subject">): readonly string[] {
  const commit = hash.slice(0, 10);
  const advice = `git commit --amend, or: git rebase -i --rebase-merges ${commit}^`;
  const fault = rules.find(([, pattern]) => pattern.test(subject))?.[0];
  return fault === undefined ? [] : [`${commit} "${subject}" ${fault}; write what changed: ${advice}`];
}

const slash = "/"; // No file may contain such a path.
const bad: readonly string[] = [
  `Merge branch 'main' of ${slash}work/main`,
  `Merge branch 'main' of ${slash}tmp/w/docs2`,
  "Merge branch 'main' of w3",
  "Merge branch 'main' of https://git.example/svc-gate",
  "Merge branches 'a' and 'b' of example:svc-gate",
  "Merge remote-tracking branch 'origin/main'",
  "Merge remote-tracking branches 'origin/a' and 'origin/b'",
  `docs: copy the page from ${slash}home/ada/notes.md`,
  `test: read ${slash}Users/ada/a.ts`,
  `test: read "${slash}root/a.ts"`,
  `tools: write to ${slash}tmp/bash.log`,
  `tools: write to ${slash}var/tmp/a and ${slash}var/folders/a/b`,
  `tools: write to ${slash}private${slash}tmp/a`,
  `ci: run in ${slash}workspace/svc-gate`,
  `ci: run in ${slash}workspaces/svc-gate`,
  `ci: run in ${slash}builds/svc-gate`,
  `ci: read (${slash}mnt/c/a)`,
  `ci: read ${slash}Volumes/disk/a`,
  `ci: read file://${slash}tmp/a`,
  String.raw`ci: read C:\Users\ada\a.ts`,
  `ci: read d:${slash}work/a.ts`,
  "docs: copy ~/notes/a.md",
];

const good: readonly string[] = [
  "gate: add POST /explain and GET /report, answered by the code of the commands",
  "verify: remove GET /ledger/verify?deep=1; verify --deep takes an export too",
  "contracts: folders under /srv",
  "tools: let schemathesis know what POST /explain and GET /report refuse",
  "Merge the guide on approvals",
  "Merge branch 'stop/pin'",
  "Merge: tests run in rings",
  "gate: route /admin/keys and GET /receipts/{seq}",
  "ledger: report a full disk with /dev/full",
  "paths: refuse /etc/passwd and /proc/self/root/a",
  "paths: /work does not match /work-evil",
  "http: add /workspace, /home and /media",
  "deploy: mount /tmp as a file system in memory",
  "hook: protect ~/.ssh and ~/.config/svc-gate",
  "docs: move docs/home/a.md to docs/work/a.md",
  "docs: link to https://example.com/home/a",
  "rates: about ~5/s for each key",
];

/** Returns the subjects of the commits after the one that added the file `check`. */
function subjectsOf({ folder }: SmallRepository): readonly string[] | string {
  const commits = commitsAfter(folder, "check", { environment });
  return typeof commits === "string" ? commits : commits.map(({ subject }) => subject).toSorted();
}

suite("the subjects of commits", () => {
  const commits = commitsAfter(root, self);
  const unknown = typeof commits === "string" && commits;

  test("no commit's subject names a path of one machine", { skip: unknown }, () => {
    assert.deepEqual(typeof commits === "string" ? commits : commits.flatMap(faultsOf), []);
  });

  control("positive control: each bad subject is noticed, each rule notices one, and good subjects pass", () => {
    const isBad = (subject: string): boolean => faultsOf({ hash: "a", subject }).length > 0;
    assert.deepEqual(
      bad.filter((subject) => !isBad(subject)),
      [],
    );
    assert.deepEqual(good.filter(isBad), []);
    for (const [fault, pattern] of rules)
      assert.ok(
        bad.some((subject) => pattern.test(subject)),
        fault,
      );
  });

  test("a fault names the commit, the reason and the next step", () => {
    const [fault] = faultsOf({ hash: "0123456789abcdef", subject: "Merge branch 'main' of w3" });
    assert.equal(
      fault,
      `0123456789 "Merge branch 'main' of w3" names a merge from another place; write what changed: ` +
        "git commit --amend, or: git rebase -i --rebase-merges 0123456789^",
    );
  });

  test("only commits after the one that added the file are read", (t) => {
    const repository = new SmallRepository(t);
    repository.commit("before");
    repository.commit("add the check", "check");
    assert.deepEqual(subjectsOf(repository), []);
    repository.commit("after");
    repository.commit("change the check", "check");
    assert.deepEqual(subjectsOf(repository), ["after", "change the check"]);
  });

  test("a file that was removed and came back is checked from its first commit", (t) => {
    const repository = new SmallRepository(t);
    repository.commit("add the check", "check");
    repository.git("rm", "--quiet", "check");
    repository.git("commit", "--quiet", "-m", "remove the check");
    repository.commit("bring it back", "check");
    assert.deepEqual(subjectsOf(repository), ["bring it back", "remove the check"]);
  });

  test("merges are read, whichever side added the file", (t) => {
    const repository = new SmallRepository(t);
    repository.commit("before");
    repository.branch("side", "main");
    repository.commit("add the check", "check");
    repository.commit("side");
    repository.git("switch", "--quiet", "main");
    repository.commit("beside");
    repository.merge("merge the check", "side");
    assert.deepEqual(subjectsOf(repository), ["beside", "merge the check", "side"]);
    repository.branch("late", "main~1");
    repository.commit("late");
    repository.git("switch", "--quiet", "main");
    repository.merge("merge late work", "late");
    assert.deepEqual(subjectsOf(repository), ["beside", "late", "merge late work", "merge the check", "side"]);
  });

  test("a commit that added the file before and after a rebase counts once for each line of history", (t) => {
    const repository = new SmallRepository(t);
    repository.commit("base");
    repository.branch("side", "main");
    repository.commit("add the check", "check");
    repository.git("switch", "--quiet", "main");
    repository.commit("older");
    repository.git("cherry-pick", "side");
    repository.commit("after");
    repository.merge("merge both", "side");
    assert.deepEqual(subjectsOf(repository), ["after", "merge both"]);
  });

  test("the check is skipped with its reason where the history is unknown", (t) => {
    const repository = new SmallRepository(t);
    assert.equal(subjectsOf(repository), "check is not committed yet");
    repository.commit("before");
    writeFileSync(join(repository.folder, "check"), "");
    assert.equal(subjectsOf(repository), "check is not committed yet");
    repository.commit("add the check", "check");
    repository.commit("after");

    const shallow = join(newFolder(t), "shallow");
    repository.git("clone", "--quiet", "--depth=1", pathToFileURL(repository.folder).href, shallow);
    assert.equal(commitsAfter(shallow, "check", { environment }), "the clone is shallow");
    assert.equal(commitsAfter(newFolder(t), "check", { environment }), "this folder is not a git checkout");
    const withoutGit = { ...environment, PATH: newFolder(t) };
    assert.equal(commitsAfter(repository.folder, "check", { environment: withoutGit }), "git is not installed");
    assert.deepEqual(subjectsOf(repository), ["after"]);
  });

  control("positive control: a bad subject is found in a repository, as it is or in a merge", (t) => {
    const repository = new SmallRepository(t);
    repository.commit("before");
    repository.commit("add the check", "check");
    repository.branch("side", "main");
    repository.commit(`read ${slash}tmp/a`, "a");
    repository.git("switch", "--quiet", "main");
    repository.merge("Merge branch 'main' of w3", "side");
    const found = commitsAfter(repository.folder, "check", { environment });
    assert.ok(typeof found !== "string");
    assert.equal(found.flatMap(faultsOf).length, 2);
  });
});
