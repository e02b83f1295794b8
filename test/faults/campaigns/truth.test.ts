/**
 * Goal: what `analyze` says cannot be, is not; and where it says nothing of errors, there is none.
 * Method: random contracts are analysed, and random calls are decided by the engine with a probe around each condition. A
 * condition that is said never to be true must never be, a rule that is said never to decide must decide nothing, a
 * division or an index that is not said to fail must not. The same check on findings made up for the occasion must fail.
 * The seed of a failing case is printed.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { lies, locationText, run } from "../../support/seeded/truth.ts";

const scenarios = 150;

suite("the findings of `analyze`", () => {
  test(`the findings for ${scenarios} random mandates are true, and no error is missed`, (t) => {
    let told = 0;
    for (let seed = 1; seed <= scenarios; seed += 1) {
      const ran = run(seed);
      if (ran === undefined) continue;
      const { findings, policySet, seen } = ran;
      told += findings.length;
      assert.deepEqual(lies(findings, policySet, seen), [], `seed ${seed}`);
      const warned = new Set(findings.filter(({ code }) => code === "may-fail").map(({ span }) => locationText(span)));
      for (const [place, message] of seen.failures)
        assert.equal(warned.has(place), true, `seed ${seed}: ${place}: ${message}`);
    }
    t.diagnostic(`${told} findings`);
    assert.equal(told > scenarios, true);
  });

  test("positive control: false findings are noticed", () => {
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
