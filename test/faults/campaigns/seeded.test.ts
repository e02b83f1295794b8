/**
 * Goal: `analyze` finds 95 of 100 defects put into clean contracts, and none in the clean contracts. Method: every rule
 * of the published contracts and of those in test/support/seeded is broken in the same ways; the other parts of the
 * latter one by one. Each seed names the finding that it must raise; the contracts without seeds must raise none. The
 * test prints the missed seeds.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { analyze } from "../../../packages/workbench/src/analysis/mod.ts";
import { loadFunctions } from "../../../packages/core/src/contract/mod.ts";
import { compile } from "../../support/contract-kit.ts";
import { bases, published } from "../../support/seeded/bases.ts";
import { seeds } from "../../support/seeded/seeds.ts";

async function codes(text: string): Promise<string[]> {
  const policySet = compile(text);
  await loadFunctions(policySet);
  return analyze(policySet).map(({ code }) => code);
}

suite("contracts without a defect have no finding", () => {
  for (const [where, texts] of [
    ["contracts", published],
    ["test/support/seeded", bases],
  ] as const) {
    for (const [name, text] of Object.entries(texts))
      test(`analyze reports no finding in ${where}/${name}.yaml`, async () => assert.deepEqual(await codes(text), []));
  }
});

test("analyze finds at least 95 of 100 seeded defects", async (t) => {
  const all = seeds();
  assert.equal(all.length >= 100, true, `${all.length} seeds`);
  const missed: string[] = [];
  for (const { name, text, expected } of all) {
    const found = await codes(text);
    if (!expected.some((code) => found.includes(code)))
      missed.push(`${name}: no ${expected.join(" or ")}, but ${found.join(", ") || "nothing"}`);
  }
  t.diagnostic(`${all.length - missed.length} of ${all.length} found`);
  for (const miss of missed) t.diagnostic(`missed: ${miss}`);
  assert.equal(missed.length <= all.length * 0.05, true, missed.join("\n"));
});
