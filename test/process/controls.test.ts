/**
 * Goal: no control is skipped that could have lost its fault. A run writes a digest only for a control that it saw notice
 * its fault, and skips it only while nothing has changed on which it depends. Method: the runner of the tests runs in a
 * small repository with a control whose fault, support file and product are changed one after another.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { temporaryFolder } from "../support/ledger-fixture.ts";
import { root } from "../support/gate.ts";

const support = pathToFileURL(join(root, "test", "support", "controls", "control.ts")).href;

const files = {
  "test/unit/a.test.ts": `import assert from "node:assert/strict";
import { control, noteMutated } from "${support}";
import { limit } from "../support/limit.ts";
const data = "test/support/data.json";
control("positive control: a wrong sum is noticed", { skip: process.env["SKIPS"] }, () => {
  noteMutated("packages/gate/src/money/sum.ts");
  assert.notEqual(process.env["FAULT"], "missed", data + limit);
});
`,
  "test/unit/b.test.ts": 'import { test } from "node:test";\ntest("plain", () => {});\n',
  "test/support/limit.ts": "export const limit = 1;\n",
  "test/support/data.json": "{}\n",
  "packages/gate/src/money/sum.ts": 'import { add } from "./add.ts";\nimport "../other/far.ts";\nvoid add;\n',
  "packages/gate/src/money/add.ts": "export const add = 1;\n",
  "packages/gate/src/other/far.ts": "export {};\n",
} as const;

type File = keyof typeof files;

class Repository {
  readonly folder: string;

  constructor(t: TestContext) {
    this.folder = temporaryFolder(t);
    for (const [path, text] of Object.entries(files)) this.write(path, text);
    // The files are older than each run.
    for (const path of Object.keys(files)) utimesSync(join(this.folder, path), 1_790_000_000, 1_790_000_000);
  }

  write(path: string, text: string): void {
    const target = join(this.folder, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  }

  change(path: File): void {
    appendFileSync(join(this.folder, path), path.endsWith(".json") ? "\n" : "// changed\n");
  }

  get lock(): string {
    const target = join(this.folder, "test", "controls.lock");
    return existsSync(target) ? readFileSync(target, "utf8") : "";
  }

  set lock(text: string) {
    this.write("test/controls.lock", text);
  }

  /** Runs the tests, and returns the exit code, the line about controls and the whole output. */
  run(env: Readonly<Record<string, string>> = {}, words: readonly string[] = []): Run {
    const { NODE_TEST_CONTEXT: _, CONTROLS_SEED: __, ...inherited } = process.env;
    const command = ["--disable-warning=ExperimentalWarning", join(root, "tools", "test.ts"), ...words];
    const { status, stdout } = spawnSync(process.execPath, command, {
      cwd: this.folder,
      env: { ...inherited, ...env },
      encoding: "utf8",
    });
    const [, fresh, stale, again, left] =
      /^controls: (\d+) fresh, (\d+) stale .* fault, (\d+) .* again.*, (\d+) stale/m.exec(stdout) ?? [];
    return { status, stdout, controls: [fresh, stale, again, left].map(Number) };
  }
}

interface Run {
  readonly status: number | null;
  readonly stdout: string;
  /** Fresh and skipped; stale and noticed; fresh and noticed; stale and not run. */
  readonly controls: readonly number[];
}

suite("the lock of controls", { concurrency: 2 }, () => {
  test("a control runs once, and then not until something changes on which it depends", (t) => {
    const repository = new Repository(t);
    assert.deepEqual(repository.run().controls, [0, 1, 0, 0]);
    const before = repository.lock;
    assert.match(before, /^\["test\/unit\/a.test.ts","positive control.*","packages.*sum.ts"\] [0-9a-f]{32}\n$/);
    const again = repository.run();
    assert.deepEqual([again.status, again.controls], [0, [1, 0, 0, 0]]);
    assert.match(again.stdout, /^1 passed, 0 failed, 0 skipped$/m);
    repository.change("packages/gate/src/other/far.ts");
    assert.deepEqual(repository.run().controls, [1, 0, 0, 0], "another module");
    for (const path of [
      "test/unit/a.test.ts",
      "test/support/limit.ts",
      "test/support/data.json",
      "packages/gate/src/money/sum.ts",
      "packages/gate/src/money/add.ts",
    ] as const) {
      repository.change(path);
      const { lock } = repository;
      assert.deepEqual(repository.run().controls, [0, 1, 0, 0], path);
      assert.notEqual(repository.lock, lock, path);
    }
  });

  test("a control that changes no file depends on the whole product", (t) => {
    const repository = new Repository(t);
    const path = "test/unit/a.test.ts";
    repository.write(path, files[path].replace(/^ {2}noteMutated.*$/m, ""));
    assert.deepEqual(repository.run().controls, [0, 1, 0, 0]);
    assert.deepEqual(repository.run().controls, [1, 0, 0, 0]);
    repository.change("packages/gate/src/other/far.ts");
    assert.deepEqual(repository.run().controls, [0, 1, 0, 0]);
  });

  test("a fault that is planted outside a control counts only for the controls of its own file", (t) => {
    const repository = new Repository(t);
    const planted = `import "../support/mutation/plant.ts";\nimport { control } from "${support}";\ncontrol("c", () => {});\n`;
    const plant = `import { noteMutated } from "${support}";\nnoteMutated("packages/gate/src/other/far.ts");\n`;
    repository.write("test/unit/c.test.ts", planted);
    repository.write("test/support/mutation/plant.ts", plant);
    assert.equal(repository.run().status, 0);
    const [ofA = "", ofC = ""] = repository.lock.split("\n");
    assert.match(ofA, /^\["test\/unit\/a.test.ts","positive control.*","packages\/gate\/src\/money\/sum.ts"\] /);
    assert.match(ofC, /^\["test\/unit\/c.test.ts","c","packages\/gate\/src\/other\/far.ts"\] /);
  });

  test("a digest is written only if the control noticed its fault", (t) => {
    const repository = new Repository(t);
    assert.equal(repository.run({ FAULT: "missed" }).status, 1);
    assert.equal(repository.lock, "");
    assert.deepEqual(repository.run({ SKIPS: "no tool" }).controls, [0, 0, 0, 1]);
    assert.equal(repository.lock, "");
    repository.run();
    assert.notEqual(repository.lock, "");
    const named = repository.run({ FAULT: "missed" }, ["test/unit/a.test.ts"]);
    assert.equal(named.status, 1, "a named file runs all its controls");
    assert.equal(repository.lock, "", "a control that missed its fault is not fresh");
  });

  test("a digest that no run wrote does not count", (t) => {
    const repository = new Repository(t);
    repository.run();
    const right = repository.lock;
    repository.lock = right.replace(/[0-9a-f]{32}$/m, "0".repeat(32));
    assert.deepEqual(repository.run().controls, [0, 1, 0, 0]);
    assert.equal(repository.lock, right);
    repository.lock = "not a lock\n";
    assert.deepEqual(repository.run().controls, [0, 1, 0, 0]);
    assert.equal(repository.lock, right);
  });

  test("with a seed, a stale control that cannot run fails the run and is named", (t) => {
    const repository = new Repository(t);
    const { status, stdout } = repository.run({ SKIPS: "no tool", CONTROLS_SEED: "7" });
    assert.equal(status, 1);
    assert.match(stdout, /never ran as they are now.*\n {2}test\/unit\/a.test.ts: positive control: a wrong sum/);
    assert.equal(repository.run({ SKIPS: "no tool" }).status, 0, "without a seed it is only said");
    assert.equal(repository.run({ CONTROLS_SEED: "7" }).status, 0);
    assert.equal(repository.run({ SKIPS: "no tool", CONTROLS_SEED: "7" }).status, 0, "it ran before, as it is now");
  });

  test("a seed draws about a tenth of the fresh controls, and always the same ones", (t) => {
    const repository = new Repository(t);
    const many = `import { control } from "${support}";
for (let each = 0; each < 200; each += 1) control("control " + each, () => { if (process.env["FAULT"]) throw new Error(); });\n`;
    repository.write("test/unit/many.test.ts", many);
    assert.deepEqual(repository.run({ CONTROLS_SEED: "7" }).controls, [0, 201, 0, 0]);
    const [fresh = 0, , drawn = 0] = repository.run({ CONTROLS_SEED: "7" }).controls;
    assert.ok(fresh + drawn === 201 && drawn > 5 && drawn < 50, `${drawn} of 201`);
    const failed = repository.run({ CONTROLS_SEED: "7", FAULT: "missed" });
    assert.equal(failed.controls[0], fresh);
    assert.match(failed.stdout, new RegExp(`, ${drawn} failed,`));
    assert.equal(repository.lock.split("\n").length - 1, fresh, "a drawn control that missed its fault is stale");
  });

  test("a file of document tests is left out until a document changes, if all its tests ran", (t) => {
    const repository = new Repository(t);
    const path = "test/repository/docs/page.test.ts";
    repository.write("docs/page.md", "a page\n");
    repository.write(
      path,
      'import { test } from "node:test";\ntest("page", { skip: process.env["SKIPS"] }, () => {});\n',
    );
    const ran = (env: Readonly<Record<string, string>> = {}): boolean =>
      /^[✔﹣] page /m.test(repository.run(env).stdout);
    assert.ok(ran({ SKIPS: "no tool" }));
    assert.ok(ran(), "a skipped test proves nothing");
    assert.match(repository.lock, /^\["test\/repository\/docs\/page.test.ts",""\] [0-9a-f]{32}$/m);
    assert.ok(!ran());
    repository.write("docs/page.md", "another page\n");
    assert.ok(ran());
    assert.ok(!ran());
    repository.change("packages/gate/src/other/far.ts");
    assert.ok(ran());
  });

  test("the line of a control that is gone goes too", (t) => {
    const repository = new Repository(t);
    repository.run();
    repository.write("test/unit/a.test.ts", 'import { test } from "node:test";\ntest("plain", () => {});\n');
    assert.deepEqual(repository.run().controls, [0, 0, 0, 0]);
    assert.equal(repository.lock, "");
  });

  const noGit = spawnSync("git", ["--version"]).error === undefined ? false : "git is not installed";
  test("--stale says what changed since the commit of a control's line", { skip: noGit }, (t) => {
    const repository = new Repository(t);
    repository.run();
    const git = (...words: readonly string[]): void => {
      const named = ["-c", "user.name=tester", "-c", "user.email=tester@example.com", ...words];
      const { status, stderr } = spawnSync("git", named, { cwd: repository.folder, encoding: "utf8" });
      assert.equal(status, 0, stderr);
    };
    git("init", "--quiet");
    git("add", ".");
    git("commit", "--quiet", "--no-gpg-sign", "--message=test: all");
    assert.match(repository.run({}, ["--stale"]).stdout, /^0 of 1 lines are stale/);
    repository.change("packages/gate/src/money/add.ts");
    repository.change("packages/gate/src/other/far.ts");
    const { stdout } = repository.run({}, ["--stale"]);
    assert.match(
      stdout,
      /^test\/unit\/a.test.ts: positive control: .*\n {2}packages\/gate\/src\/money\/add.ts changed since/,
    );
    assert.doesNotMatch(stdout, /far.ts/);
  });

  test("no digest is written for what changed during the run", (t) => {
    const repository = new Repository(t);
    const path = "test/unit/a.test.ts";
    const touched = 'import { appendFileSync } from "node:fs";\nappendFileSync("test/support/limit.ts", "//\\n");\n';
    repository.write(path, touched + files[path]);
    assert.equal(repository.run().status, 0);
    assert.equal(repository.lock, "");
  });
});
