/**
 * Goal: docs/guides/testing.md shows real output. Method: its files are written, its commands run, and each block of
 * output is compared. UPDATE_GOLDEN=1 writes the blocks. Its list of members is compared with the reader's. The tests of
 * a contract in docs/guides/approvals.md run in the same way.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { explainCommand } from "../../../packages/records/src/explain/command.ts";
import type { Outcome } from "../../../packages/gate/src/cli/outcome.ts";
import { testCommand, type TestOptions } from "../../../packages/workbench/src/test/command.ts";
import {
  approvalKeys,
  approvalStatuses,
  callKeys,
  caseKeys,
  decisionKeys,
  decisionResults,
  expectKeys,
  fileKeys,
  outcomeKeys,
  outcomeRefusals,
  sessionKeys,
} from "../../../packages/workbench/src/test/document.ts";
import { control } from "../../support/controls/control.ts";
import { temporaryFolder } from "../../support/gate.ts";
import { ShownPage } from "../../support/shown-page.ts";

const page = new ShownPage("guides/testing.md", "testing");
const block = (name: string): string => page.block(name);
const assertShown = (name: string, text: string): void => page.assertShown(name, text);

const plain: TestOptions = {
  json: false,
  junit: undefined,
  coverage: false,
  min: undefined,
  filter: undefined,
  watch: false,
};

suite("docs/guides/testing.md", () => {
  test("the page's tests print the text that is shown, and more cases reach full coverage", async (t) => {
    const folder = temporaryFolder(t);
    const shown = (text: string): string => text.replaceAll(join(folder, "/"), "");
    const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
    const tests = [join(folder, "shop.test.yaml")];
    write("shop.yaml", block("shop.yaml"));
    write("shop.test.yaml", block("shop.test.yaml"));

    const first = await testCommand(tests, { ...plain, coverage: true });
    assert.equal(first.exitCode, 0);
    assertShown("passing", shown(first.text));
    assert.equal((await testCommand(tests, { ...plain, min: "100" })).exitCode, 1);

    write("shop.test.yaml", `${block("shop.test.yaml")}\n${block("more.yaml")}`);
    assert.equal((await testCommand(tests, { ...plain, min: "100" })).exitCode, 0);

    const people = `${block("anna.yaml")}${block("shop.test.yaml")}\n${block("persons.yaml")}`;
    write("shop.test.yaml", people);
    const decided = await testCommand(tests, plain);
    assert.equal(decided.exitCode, 0, decided.text);
    write("shop.test.yaml", people.replace("approve: anna, after: 1m", "deny: anna, after: 1m"));
    assert.equal((await testCommand(tests, plain)).exitCode, 1, "positive control: a denied call does not run");

    write("shop.test.yaml", block("shop.test.yaml"));
    write("shop.yaml", block("shop.yaml").replace("usd: 50", "usd: 30"));
    const failing = await testCommand(tests, { ...plain, filter: "over the budget" });
    assert.equal(failing.exitCode, 1);
    assertShown("failing", shown(failing.text));
  });

  test("explain prints the text that the page shows", async (t) => {
    const folder = temporaryFolder(t);
    for (const name of ["shop.yaml", "call.json"]) writeFileSync(join(folder, name), block(name));
    const { exitCode, text } = await explainCommand(join(folder, "call.json"), {
      contract: join(folder, "shop.yaml"),
      counters: '{"tries": 2}',
      now: "2026-01-15T12:00:00Z",
      key: "default",
      mode: "enforce",
      dataDir: "",
      json: false,
    });
    assert.equal(exitCode, 0);
    assertShown("explained", text.replaceAll(join(folder, "/"), ""));
  });

  test("the page names every part of a test file and no other", () => {
    const cells = Array.from(page.text.matchAll(/^\| (`[^|]*) \|/gm), ([, cell = ""]) => cell);
    const named = new Set(
      cells.flatMap((cell) => Array.from(cell.matchAll(/`([a-z]+)[`:]/g), ([, name = ""]) => name)),
    );
    assert.deepEqual(
      [...named].toSorted(),
      [
        ...new Set([
          ...fileKeys,
          ...caseKeys,
          ...sessionKeys,
          ...callKeys,
          ...decisionKeys,
          ...outcomeKeys,
          ...expectKeys,
          ...approvalKeys,
        ]),
      ].toSorted(),
    );
  });

  test("the page names every status of an approval, and every result of a decision and of an outcome", () => {
    for (const word of [...approvalStatuses, ...decisionResults, ...outcomeRefusals])
      assert.ok(page.text.includes(`\`${word}\``), word);
  });
});

suite("docs/guides/approvals.md", () => {
  const guide = new ShownPage("guides/approvals.md", "approvals");
  const run = async (folder: string, tests: string): Promise<Outcome> => {
    writeFileSync(join(folder, "refunds.yaml"), guide.block("refunds.yaml"));
    writeFileSync(join(folder, "refunds.test.yaml"), tests);
    return testCommand([folder], { ...plain, min: "0" });
  };

  test("the guide's tests print the text that is shown", async (t) => {
    const folder = temporaryFolder(t);
    const { exitCode, text } = await run(folder, guide.block("refunds.test.yaml"));
    assert.equal(exitCode, 0, text);
    guide.assertShown("tested", text.replaceAll(folder, "refunds"));
  });

  const wrong: readonly (readonly [from: string, to: string])[] = [
    ["approval: last, after: 2m", "approval: last, after: 11m"],
    ["counters: { today: 80 } } }\n\n", "counters: { today: 160 } } }\n\n"],
    ["deny: ben, ", "approve: ben, "],
    ["after: 11m", "after: 9m"],
    ["approve: lee, expect: not-an-approver", "approve: lee"],
    ["key: anna #", "key: agent #"],
  ];
  for (const [from, to] of wrong)
    control(`positive control: the change to ${to.trim()} fails a case of the guide`, async (t) => {
      const tests = guide.block("refunds.test.yaml");
      assert.ok(tests.includes(from), from);
      assert.equal((await run(temporaryFolder(t), tests.replace(from, to))).exitCode, 1);
    });
});
