/**
 * Goal: a mistake in a decision or an outcome of a test file is an error that says what is wrong, where, and what to do. Method: each
 * file has one mistake; the texts are golden (UPDATE_GOLDEN=1 writes them). Positive control: the file without a mistake
 * is read.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { readTests } from "../../../packages/workbench/src/test/read.ts";
import { renderDiagnostic } from "../../../packages/core/src/contract/mod.ts";
import { control } from "../../support/controls/control.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** A file with a call that waits, and one more step. */
function withStep(step: string): string {
  return `persons: { anna: finance, ben: [] }
cases:
  - case: a
    calls:
      - { tool: look, as: first, expect: ESCALATE }
      - ${step}
`;
}

const onlyStep = (step: string): string =>
  withStep(step).replace("      - { tool: look, as: first, expect: ESCALATE }\n", "");

const mistakes: readonly (readonly [name: string, text: string])[] = [
  ["a person without a list of groups", withStep("{ approve: anna }").replace("ben: []", "ben: null")],
  ["an unknown person", withStep("{ approve: zoe }")],
  ["a misspelt person", withStep("{ deny: ana }")],
  ["two decisions in one", withStep("{ approve: anna, deny: ben }")],
  ["a decision with the key of a call", withStep("{ approve: anna, tool: look }")],
  ["a scope without a denial", withStep("{ approve: anna, scope: tool }")],
  ["an unknown scope", withStep("{ deny: anna, scope: session }")],
  ["an unknown result", withStep("{ approve: anna, expect: approve }")],
  ["a decision before the call", withStep('{ approve: anna, at: "2026-01-15T11:59:59Z" }')],
  ["a decision with two moments", withStep('{ approve: anna, at: "2026-01-15T12:00:00Z", after: 1s }')],
  ["a decision before any call", onlyStep("{ approve: anna, expect: approved }")],
  ["an approval that no call names", withStep("{ approve: anna, approval: second }")],
  ["a misspelt approval", withStep("{ tool: look, approval: firs }")],
  ["an approval before any call", onlyStep("{ tool: look, approval: last, expect: ALLOW }")],
  ["a name that means the latest approval", withStep("{ tool: look, as: last }")],
  ["an unknown status", withStep("{ tool: look, expect: { approval: waiting } }")],
  ["an approval without members", withStep("{ tool: look, expect: { approval: {} } }")],
  ["an unknown member of an approval", withStep("{ tool: look, expect: { approval: { id: apr_1 } } }")],
  ["a number of people that is a word", withStep("{ tool: look, expect: { approval: { has: one } } }")],
  ["an unknown status of an outcome", withStep("{ outcome: donne }")],
  ["an outcome with the key of a call", withStep("{ outcome: done, tool: look }")],
  ["an outcome and a decision in one", withStep("{ outcome: done, approve: anna }")],
  ["an outcome before any call", onlyStep("{ outcome: done }")],
  ["an outcome of a name before any call", onlyStep("{ outcome: done, call: first }")],
  ["an outcome of a call that no call names", withStep("{ outcome: done, call: second }")],
  ["an amount of a call that failed", withStep("{ outcome: failed, amount: 5 }")],
  ["an amount below zero", withStep("{ outcome: done, amount: -5 }")],
  ["an amount that is a list", withStep("{ outcome: done, amount: [5] }")],
  ["an outcome before the call", withStep('{ outcome: done, at: "2026-01-15T11:59:59Z" }')],
  ["an unknown refusal of an outcome", withStep("{ outcome: done, expect: done }")],
  ["an unknown next step", withStep("{ tool: look, expect: { approval: { next: stop } } }")],
];

suite("errors in the decisions and outcomes of a test file", () => {
  for (const [name, text] of mistakes)
    test(`a file with the mistake "${name}" is refused, with its position`, () => {
      const read = readTests({ name: "shop.test.yaml", text });
      assert.ok(!read.ok, "it was read");
      const shown = read.problem.map(renderDiagnostic).join("\n");
      assert.match(shown, /shop\.test\.yaml:[156]:[0-9]+\n/);
      const lines = shown.match(/^error\[.*$|^ +=.*$/gm) ?? [];
      says(name, lines.map((line) => line.trim()).join(" "));
    });

  control("positive control: a file without a mistake is read", () => {
    const steps = [
      "{ approve: anna }",
      "{ deny: ben, scope: tool, comment: too dear, approval: first, after: 1m, expect: denied }",
    ];
    const outcomes = [
      "{ outcome: done, amount: 40.5, call: first, after: 1m }",
      "{ outcome: failed, key: agent, expect: outcome-refused }",
      "{ outcome: unknown, expect: forbidden }",
    ];
    for (const step of [
      ...steps,
      ...outcomes,
      "{ cancel: default }",
      "{ tool: look, approval: first, expect: { approval: null } }",
    ])
      assert.ok(readTests({ name: "shop.test.yaml", text: withStep(step) }).ok, step);
  });
});
