/**
 * Goal: docs/guides/testing.md shows real output. Method: its files are written, its commands run, and each block of
 * output is compared. UPDATE_GOLDEN=1 writes the blocks. Its list of members is compared with the reader's.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { explainCommand } from "../../../packages/svc-gate/src/cli/explain/command.ts";
import { testCommand, type TestOptions } from "../../../packages/svc-gate/src/cli/test/command.ts";
import { caseKeys, expectKeys, fileKeys, sessionKeys } from "../../../packages/svc-gate/src/cli/test/document.ts";
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
      [...new Set([...fileKeys, ...caseKeys, ...sessionKeys, ...expectKeys])].toSorted(),
    );
  });
});
