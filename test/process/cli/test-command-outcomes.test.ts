/**
 * Goal: `svc-gate test` shows what outcomes do to a contract's calls, as POST /outcomes does it. Method: cases for each
 * rule about outcomes pass. Positive controls: each case fails if the gate has a planted defect, or if the case expects
 * something else.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { contract, fileText, run, testCases, type Case, type Output } from "../../support/case-files.ts";
import { temporaryFolder } from "../../support/gate.ts";

const cases: readonly Case[] = [
  {
    name: "a failed call gives its amount back",
    steps: [
      "{ like: other, as: first, expect: ALLOW }",
      "{ like: other, after: 1s, repeat: 2, expect: ALLOW }",
      "{ like: other, expect: { verdict: BLOCK, counters: { spent: 2700 } } }",
      "{ outcome: failed, call: first, after: 1m }",
      "{ like: other, expect: { verdict: ALLOW, counters: { spent: 1800 } } }",
      "{ outcome: failed, call: first }",
      "{ like: other, expect: BLOCK }",
    ],
    wrong: [["spent: 1800", "spent: 2700"]],
    defect: [{ within: "CounterTables.add", find: "effect.takenBy !== undefined", put: "false" }],
  },
  {
    name: "the key that asked lowers no budget, and the bookkeeping corrects its report",
    steps: [
      "{ like: other, as: first, expect: ALLOW }",
      "{ outcome: failed, key: agent }",
      "{ like: other, input: { usd: 1 }, expect: { verdict: ALLOW, counters: { spent: 900 } } }",
      "{ outcome: done, key: agent, call: first, expect: outcome-refused }",
      "{ outcome: done, amount: 850.5, call: first }",
      "{ like: other, input: { usd: 1 }, expect: { verdict: ALLOW, counters: { spent: 851.5 } } }",
      "{ outcome: failed, call: first }",
      "{ like: other, input: { usd: 1 }, expect: { verdict: ALLOW, counters: { spent: 2 } } }",
    ],
    wrong: [
      ["failed, key: agent", "failed"],
      ["spent: 851.5", "spent: 901"],
      ["{ outcome: failed, call: first }", "{ outcome: unknown, call: first }"],
    ],
    defect: [
      { within: "CaseGate.report", find: "key === undefined", put: "true" },
      { within: "OutcomeDesk.#reportIn", find: "reporter.mayLower && leaf.key !== reporter.name", put: "true" },
    ],
  },
  {
    name: "an amount of the key that asked can only raise what counts",
    steps: [
      "{ like: other, as: first, expect: ALLOW }",
      "{ outcome: done, amount: 1, key: agent }",
      "{ like: other, input: { usd: 100 }, expect: { verdict: ALLOW, counters: { spent: 900 } } }",
      "{ outcome: done, amount: 150, key: agent }",
      "{ like: other, input: { usd: 1 }, expect: { verdict: ALLOW, counters: { spent: 1050 } } }",
    ],
    wrong: [["spent: 900", "spent: 1"]],
    defect: [{ within: "amountAfter", find: "isAbove(each, most)", put: "true" }],
  },
  {
    name: "only a call that was let through has an outcome",
    steps: [
      "{ like: large, expect: ESCALATE }",
      "{ outcome: done, expect: outcome-refused }",
      "{ approve: anna }",
      "{ like: large, approval: last, expect: ALLOW }",
      "{ outcome: failed }",
      "{ like: other, expect: { verdict: ALLOW, counters: { spent: 0 } } }",
    ],
    wrong: [["done, expect: outcome-refused", "done"]],
    defect: [{ within: "hasOutcome", find: 'answered === "ALLOW"', put: "true" }],
  },
  {
    name: "another key that asks may not report, and the same outcome again is accepted",
    steps: [
      "{ like: other, expect: ALLOW }",
      "{ outcome: failed, key: robot, expect: forbidden }",
      "{ outcome: unknown }",
      "{ outcome: done, after: 23h }",
      "{ outcome: done }",
    ],
    wrong: [["key: robot, expect: forbidden", "key: robot"]],
    defect: [
      { within: "OutcomeDesk.#reportIn", find: "!reporter.mayLower && leaf.key !== reporter.name", put: "false" },
    ],
  },
  {
    name: "an outcome is taken for a day",
    steps: ["{ like: other, expect: ALLOW }", "{ outcome: failed, after: 24h1ms, expect: outcome-refused }"],
    wrong: [["after: 24h1ms", "after: 24h"]],
    defect: [{ within: "OutcomeDesk.#reportIn", find: "at > leaf.at + outcomeWithinMs", put: "false" }],
  },
];

testCases("cases in which a key reports an outcome", cases, { tags: ["outcomes"], counts: [6, 0, 2] });

test("the report for a person and the one for programs name the outcome, the call and the refusal", async (t) => {
  const early: Case = {
    name: "an outcome too early",
    steps: [
      "{ like: large, as: first, expect: ESCALATE }",
      "{ outcome: done, amount: 40.50, call: first, key: agent }",
    ],
    wrong: [],
  };
  const accepted: Case = {
    name: "an outcome that is accepted after all",
    steps: ["{ like: other, expect: ALLOW }", "{ outcome: failed, expect: outcome-refused }"],
    wrong: [],
  };

  const exponent: Case = {
    name: "an amount that POST /outcomes does not take",
    steps: ["{ like: other, expect: ALLOW }", "{ outcome: done, amount: 1e2 }"],
    wrong: [],
  };
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "pay.yaml"), contract);
  writeFileSync(join(folder, "pay.test.yaml"), fileText([early, accepted, exponent]));
  const text = await run(folder, [], "pay.test.yaml");
  const file = join(import.meta.dirname, "golden", "test-outcomes.golden");
  if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, text);
  assert.equal(text, readFileSync(file, "utf8"));
  const json = JSON.parse(await run(folder, [], "--json", "pay.test.yaml")) as Output;
  const failures = json.files.flatMap(({ cases: all }) => all.map(({ failure }) => failure));
  assert.deepEqual(
    failures.map((failure) => ["call", "outcome", "of", "key"].map((name) => failure?.[name])),
    [
      [2, "done", "first", "agent"],
      [2, "failed", "last", null],
      [2, "done", "last", null],
    ],
  );
});
