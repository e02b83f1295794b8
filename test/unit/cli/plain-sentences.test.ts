/**
 * Goal: sentences that a first user had to read twice say plainly what happened, and leave out no amount. Method: the
 * functions that print them, with figures made for each case.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { analyze } from "../../../packages/workbench/src/analysis/mod.ts";
import { checkCommand } from "../../../packages/gate/src/cli/check.ts";
import { comparisonText } from "../../../packages/records/src/replay/print.ts";
import { VerdictChanges, type VerdictChange } from "../../../packages/records/src/replay/verdict-changes.ts";
import type { RuleExplained } from "../../../packages/records/src/explain/explanation.ts";
import { printRule } from "../../../packages/records/src/explain/print.ts";
import { testCommand } from "../../../packages/workbench/src/test/command.ts";
import { Timestamp } from "../../../packages/core/src/contract/ir.ts";
import { compile, conditionText, contractText, judge, snapshot } from "../../support/contract-kit.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

function written(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "sentences-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

suite("the sum of a replay", { tags: ["first-use-22"] }, () => {
  const sumLine = (...changes: readonly VerdictChange[]): string => {
    const counts = new VerdictChanges({ field: ["input", "eur"], examples: 0 });
    counts.decided = 10;
    for (const change of changes) counts.changes.set(`${change.was} ${change.wouldBe}`, change);
    const text = comparisonText({
      contract: "c",
      counts,
      field: "input.eur",
      skipped: { receipts: 0, reasons: new Map() },
    });
    return text.split("\n").find((line) => line.includes("newly")) ?? "";
  };
  const change = (was: VerdictChange["was"], wouldBe: VerdictChange["wouldBe"], sum: string): VerdictChange => ({
    was,
    wouldBe,
    receipts: 1,
    sum,
  });

  test("a BLOCK that becomes an ESCALATE is newly sent to a person", () => {
    says("newly-sent-to-a-person", sumLine(change("ESCALATE", "ALLOW", "1860"), change("BLOCK", "ESCALATE", "900")));
  });

  test("each change is added exactly to one of the three sums", () => {
    says(
      "each-change-in-one-sum",
      sumLine(
        change("BLOCK", "ALLOW", "0.1"),
        change("ESCALATE", "ALLOW", "0.2"),
        change("ALLOW", "ESCALATE", "1"),
        change("BLOCK", "ESCALATE", "2"),
        change("ALLOW", "BLOCK", "4"),
        change("ESCALATE", "BLOCK", "8"),
      ),
    );
  });
});

test(
  "a requirement of one tool is shown with that tool, and a requirement of all tools is not",
  { tags: ["first-use-19"] },
  async (t) => {
    const tool = (name: string): string => `  ${name}:
    input: { type: object, additionalProperties: false, required: [sum], properties: { sum: { type: number } } }
    requires: [{ when: input.sum > 0, reason: too little }]
    otherwise: ALLOW
`;
    const folder = written(t, {
      "c.yaml": `contract: c\nrequires: [session.present]\ntools:\n${tool("one")}${tool("two")}`,
      "c.test.yaml":
        "contract: c.yaml\nsession: s\ncases: [{ case: a, tool: one, input: { sum: 1 }, expect: ALLOW }]\n",
    });
    const options = { coverage: true, json: false, min: undefined, junit: undefined, filter: undefined, watch: false };
    const { text } = await testCommand([folder], options);
    assert.match(text, /coverage of/, text);
    const names = [...text.matchAll(/^ +(c\.\$requires\.\S+(?: \(\S+\))?) /gm)].map(([, name]) => name);
    assert.deepEqual(names, ["c.$requires.1", "c.$requires.2 (one)", "c.$requires.2 (two)"]);
    says("condition-never-reached", text.split("\n").findLast((line) => line.includes("c.$requires.2 (two)")) ?? "");
  },
);

test("the reason of an ALLOW says that no rule of the contract applies", { tags: ["first-use-18"] }, () => {
  const policySet = compile(contractText());
  says("allowed-by-no-rule", judge(policySet, { platform: snapshot }).reason);
});

test(
  "`check` ends with the number of errors, because it puts nothing in force",
  { tags: ["first-use-24"] },
  async (t) => {
    const folder = written(t, { "c.yaml": contractText().replace("otherwise: ALLOW", "otherwise: ALOW") });
    const { exitCode, text } = await checkCommand(join(folder, "c.yaml"), { json: false });
    assert.equal(exitCode, 2);
    assert.match(text, /\n\n1 error$/);
  },
);

test("[first-use, sentence 16] `analyze` names what the agent chooses in a counter's key", () => {
  const policySet = compile(
    contractText({
      counters: "{ trip_spend: { of: t, per: [key, input.s], within: 30d, counting: possible } }",
      rules: '[{ rule: r, on: t, when: "counters.trip_spend > 5", verdict: BLOCK, reason: x }]',
    }),
  );
  const found = analyze(policySet).find(({ code }) => code === "agent-controlled-key");
  says("agent-controlled-key", String(found?.message));
});

test("`explain` shows a moment with its date", { tags: ["first-use-24"] }, () => {
  const text = conditionText("now > timestamp(0)");
  const [rule] = compile(text).tools.get("t")?.routes[0]?.rules ?? [];
  assert.ok(rule?.when.op === "binary");
  const part = { span: rule.when.left.span, first: [{ value: new Timestamp(1_795_348_800) }], times: 1, parts: [] };
  const explained = {
    id: "c.r",
    kind: "rule",
    came: "true",
    speaks: null,
    condition: part,
  } as unknown as RuleExplained;
  assert.match(printRule(explained).join("\n"), /now +1795348800 \(2026-11-22T12:00:00Z\)$/);
});
