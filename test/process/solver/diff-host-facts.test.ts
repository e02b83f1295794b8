/**
 * Goal: `svc-gate diff` shows that the key of an agent's host may state other facts, and in which direction. Method: one
 * contract with several lists. Positive control: the plans alone are the same.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compareContracts } from "../../../packages/workbench/src/analysis/mod.ts";
import { samePlans } from "../../../packages/workbench/src/analysis/proof/same.ts";
import type { ToolPlan } from "../../../packages/core/src/contract/ir.ts";
import type { PolicySet } from "../../../packages/core/src/contract/mod.ts";
import { compile } from "../../support/contract-kit.ts";

function contractWith(hostFacts: string): PolicySet {
  return compile(`contract: c
platform: { type: object, properties: { cwd: { type: string }, wallet: { type: string } } }
${hostFacts}
tools:
  t: { input: { type: object, additionalProperties: false }, requires: platform.present, otherwise: ALLOW }
rules:
  - { rule: r, on: t, when: has(platform.wallet), verdict: ESCALATE, reason: a wallet }
`);
}

const planOf = ({ tools }: PolicySet): ToolPlan => tools.get("t") ?? assert.fail("no plan");

suite("facts of hosts, compared", () => {
  const cases = [
    ["", "host_facts: [cwd]", "weaker"],
    ["host_facts: [cwd, wallet]", "host_facts: [wallet]", "stricter"],
    ["host_facts: [cwd]", "host_facts: [wallet]", "changed"],
    ["host_facts: [cwd]", "host_facts: [cwd]", "equivalent"],
    ["", "host_facts: []", "equivalent"],
  ] as const;
  for (const [before, after, answer] of cases) {
    test(`from "${before}" to "${after}" the answer is "${answer}"`, async () => {
      const [one, other] = [contractWith(before), contractWith(after)];
      const [found] = await compareContracts(one, other, { solver: undefined, timeMs: 1000 });
      assert.equal(found?.answer, answer);
      assert.equal(found?.hostFacts === undefined, answer === "equivalent");
      assert.ok(samePlans(planOf(one), planOf(other)), "positive control: without the list nothing would be seen");
    });
  }
});
