/**
 * Goal: an impossibility that `analyze` reports is real, and an error that it does not report cannot occur. Method:
 * random contracts are analysed, and the engine decides random calls with a probe around each condition. A condition
 * reported as never true must never be true, and a rule reported as never deciding must decide nothing. A division or
 * an index without a report must not fail. The same check must fail for false findings. ANALYZE_SEED sets
 * the first scenario.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { control } from "../../support/controls/control.ts";
import { lies, locationText, run } from "../../support/seeded/truth.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const scenarios = 150;
const from = seedOf("ANALYZE_SEED", 1);

suite("the findings of `analyze`", () => {
  test(`the findings for ${scenarios} random mandates are true, and no error is missed`, (t) => {
    printSeed(t, { cases: scenarios, seed: from, variable: "ANALYZE_SEED" });
    let told = 0;
    for (let seed = from; seed < from + scenarios; seed += 1) {
      const ran = run(seed);
      if (ran === undefined) continue;
      const { findings, policySet, seen } = ran;
      told += findings.length;
      assert.deepEqual(lies(findings, policySet, seen), [], `seed ${seed}`);
      const warned = new Set(findings.filter(({ code }) => code === "may-fail").map(({ span }) => locationText(span)));
      for (const [location, message] of seen.failures)
        assert.equal(warned.has(location), true, `seed ${seed}: ${location}: ${message}`);
    }
    t.diagnostic(`${told} findings`);
    assert.equal(told > scenarios, true);
  });

  control("positive control: false findings are noticed", () => {
    const found: string[] = [];
    for (let seed = 1; seed <= 10; seed += 1) {
      const ran = run(seed);
      if (ran === undefined) continue;
      const { policySet, seen } = ran;
      const rules = [...policySet.tools.values()].flatMap(({ routes }) => routes.flatMap((route) => route.rules));
      const madeUp = rules.flatMap(({ when }) =>
        (["never-fires", "always-fires", "shadowed"] as const).map((code) => ({
          code,
          span: when.span,
          message: "",
          hint: "",
        })),
      );
      found.push(...lies(madeUp, policySet, seen).map((lie) => lie.split(" ")[0] ?? ""));
    }
    assert.deepEqual([...new Set(found)].toSorted(), ["always-fires", "never-fires", "shadowed"]);
  });
});
