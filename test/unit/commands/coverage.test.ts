/**
 * Goal: `svc-gate test --coverage` shows which forms of a table no test fits. Method: a contract with three forms, and
 * tests that use two of them.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { execFileSync } from "node:child_process";

const contract = `contract: c
commands:
  forms:
    - { run: cat, words: reads FILE, does: reads }
    - { run: ls, does: reads }
    - { run: git push, does: sends, reason: sends commits }
let: { run: 'commands(input.command, ".")' }
tools:
  t:
    input: { type: object, additionalProperties: false, required: [command], properties: { command: { type: string } } }
    otherwise: { verdict: ESCALATE, reason: "{run.reason}" }
rules:
  - { rule: listed, on: t, when: run.verdict == "ALLOW", verdict: ALLOW, reason: "{run.reason}" }
`;
const tests = `tests: c
contract: c.yaml
cases:
  - { case: reading, tool: t, input: { command: cat a }, expect: ALLOW }
  - { case: sending, tool: t, input: { command: git push }, expect: ESCALATE }
`;

test("coverage names the forms that no test fits", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-forms-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "c.yaml"), contract);
  writeFileSync(join(folder, "c.test.yaml"), tests);
  const main = new URL("../../../packages/svc-gate/src/main.ts", import.meta.url).pathname;
  const args = ["--disable-warning=ExperimentalWarning", main, "test", "c.test.yaml", "--coverage"];
  const shown = execFileSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  assert.match(shown, /2 of 3 forms of commands fit a call of a test; none fits ls/);
});
