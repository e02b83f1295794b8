/**
 * Goal: `svc-gate diff` never calls two contracts equivalent that differ in `numbers: double`. Method: one contract with
 * and without the line, alone and together with a change of a rule. The positive control compares the plans without it.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { compareContracts, openSolver, type ToolDifference } from "../../../packages/workbench/src/analysis/mod.ts";
import { diffCommand } from "../../../packages/workbench/src/commands/diff.ts";
import type { PolicySet } from "../../../packages/core/src/contract/mod.ts";
import { compile } from "../../support/contract-kit.ts";
import { control } from "../../support/controls/control.ts";

interface Parts {
  readonly isDouble?: boolean;
  readonly most?: number;
  readonly type?: string;
}

function textOf({ isDouble = false, most = 100, type = "number" }: Parts, name = "c"): string {
  return `contract: ${name}
tools:
  t:
    input:
      type: object
      additionalProperties: false
      required: [usd]
      properties: { usd: { type: ${type}, minimum: 0 } }
${isDouble ? "    numbers: double\n" : ""}    otherwise: ALLOW
rules:
  - { rule: large, on: t, when: input.usd > ${most}, verdict: ESCALATE, reason: large }
`;
}

suite("numbers, compared", () => {
  const opened = openSolver();
  after(async () => (await opened)?.close());
  const compared = async (before: PolicySet, changed: PolicySet): Promise<ToolDifference> => {
    const solver = await opened;
    assert.ok(solver, "z3-solver is not installed");
    const [found] = await compareContracts(before, changed, { solver, timeMs: 60_000, guesses: 200 });
    assert.ok(found);
    assert.deepEqual(found.defects, []);
    return found;
  };
  const parts = async (before: Parts, changed: Parts): Promise<ToolDifference> =>
    compared(compile(textOf(before)), compile(textOf(changed)));

  const cases: readonly (readonly [what: string, before: Parts, after: Parts, answer: string, numbers: string])[] = [
    ["the line alone", {}, { isDouble: true }, "stricter", "any double stricter"],
    ["the line and a higher limit", {}, { isDouble: true, most: 200 }, "changed", "any double stricter"],
    ["the line and a lower limit", {}, { isDouble: true, most: 50 }, "stricter", "any double stricter"],
    [
      "the line where only whole numbers fit",
      { type: "integer" },
      { type: "integer", isDouble: true },
      "stricter",
      "any double stricter",
    ],
    ["nothing, with the line on both sides", { isDouble: true }, { isDouble: true }, "equivalent", ""],
    ["a higher limit, with the line on both sides", { isDouble: true }, { isDouble: true, most: 200 }, "weaker", ""],
  ];
  const opposite = new Map([
    ["stricter", "weaker"],
    ["weaker", "stricter"],
  ]);
  const numbersOf = ({ numbers }: ToolDifference): string =>
    numbers === undefined ? "" : `${numbers.before} ${numbers.after} ${numbers.direction}`;

  for (const [what, before, changed, answer, numbers] of cases) {
    test(`the comparison answers "${answer}" for ${what}, and the opposite in the other direction`, async () => {
      const found = await parts(before, changed);
      assert.deepEqual([found.answer, numbersOf(found)], [answer, numbers]);
      const back = await parts(changed, before);
      assert.equal(back.answer, opposite.get(answer) ?? answer);
      assert.equal(numbersOf(back), numbers === "" ? "" : "double any weaker");
    });
  }

  test("two contracts that route a tool have the line if one of them has it", async () => {
    const [none, first, second] = [
      [textOf({}), textOf({}, "d")],
      [textOf({ isDouble: true }), textOf({}, "d")],
      [textOf({}), textOf({ isDouble: true }, "d")],
    ].map((texts) => compile(...texts));
    assert.ok(none && first && second);
    assert.equal((await compared(none, first)).answer, "stricter");
    assert.equal((await compared(first, second)).answer, "equivalent");
  });

  test("a new tool with the line is weaker, because calls of it get through", async () => {
    const none = compile(textOf({}).replaceAll("  t:", "  u:").replace("on: t", "on: u"));
    const solver = await opened;
    const found = await compareContracts(none, compile(textOf({ isDouble: true })), { solver, timeMs: 60_000 });
    assert.deepEqual(
      found.map(({ tool, answer, numbers }) => [tool, answer, numbers]),
      [
        ["t", "weaker", undefined],
        ["u", "stricter", undefined],
      ],
    );
  });

  control(
    "positive control: without the line's part of the plan, the comparison calls the two equivalent",
    async () => {
      const blind = ({ tools, ...rest }: PolicySet): PolicySet => ({
        ...rest,
        tools: new Map(
          [...tools].map(([tool, plan]) => [
            tool,
            { ...plan, routes: plan.routes.map((route) => ({ ...route, onlyDoubles: false })) },
          ]),
        ),
      });
      const found = await compared(blind(compile(textOf({}))), blind(compile(textOf({ isDouble: true }))));
      assert.equal(found.answer, "equivalent");
    },
  );

  test("the command prints which numbers an input may have, and fails if more may pass", async (t) => {
    const fileOf = (context: TestContext, text: string): string => {
      const folder = mkdtempSync(join(tmpdir(), "svc-gate-diff-"));
      context.after(() => rmSync(folder, { recursive: true }));
      writeFileSync(join(folder, "c.yaml"), text);
      return join(folder, "c.yaml");
    };
    const options = { json: false, text: false, weaker: false, time: "30" };
    const [free, strict] = [fileOf(t, textOf({})), fileOf(t, textOf({ isDouble: true }))];
    const shown = await diffCommand(strict, free, options);
    assert.deepEqual(
      [shown.exitCode, shown.text],
      [1, "t: weaker\n  numbers: double -> any (weaker)\n\n1 tool: 1 weaker"],
    );
    const { exitCode, text } = await diffCommand(free, strict, { ...options, json: true });
    const { tools } = JSON.parse(text) as { tools: { numbers: unknown }[] };
    assert.deepEqual([exitCode, tools[0]?.numbers], [0, { direction: "stricter", before: "any", after: "double" }]);
  });
});
