/**
 * Goal: a random test can be repeated, prints its seed, and ends although it fails. Method: the helper with variables,
 * properties that are true or fail, and minimisers on cases that always fail.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import fc from "fast-check";
import { control } from "../../support/controls/control.ts";
import { minimise } from "../../support/model/minimise.ts";
import { generate } from "../../support/model/generate.ts";
import { shrink } from "../../support/model/approvals/steps.ts";
import { patience, printSeed, randomRuns, seedOf } from "../../support/random-test.ts";
import { planOf } from "../../support/simulation/plan.ts";
import { shrink as shrinkPlan } from "../../support/simulation/shrink.ts";

const variable = "SVC_TEST_OF_SEEDS_SEED";

function listening(): { readonly t: Pick<TestContext, "diagnostic" | "name">; readonly lines: string[] } {
  const lines: string[] = [];
  return { t: { name: "a test", diagnostic: (line) => void lines.push(line) }, lines };
}

suite("seeds", () => {
  test("a seed comes from its variable, or is fixed, or differs in each run", (t) => {
    t.after(() => delete process.env[variable]);
    assert.equal(seedOf(variable, 7), 7);
    assert.notEqual(seedOf(variable), seedOf(variable));
    for (const text of ["0", "12", "-3"]) {
      process.env[variable] = text;
      assert.equal(seedOf(variable, 7), Number(text));
    }
    for (const text of ["", "1.5", "x", "1e3"]) {
      process.env[variable] = text;
      assert.throws(() => seedOf(variable), /is not a whole number/);
    }
  });

  test("a random test prints its name, cases, seed and variable, and takes the seed", () => {
    const { t, lines } = listening();
    printSeed(t, { cases: 3, seed: 5, variable });
    const { seed, numRuns } = randomRuns(t, 1.2);
    assert.equal(numRuns, 2);
    assert.deepEqual(lines, [
      `random: a test, 3 cases, seed 5 (${variable}=5 repeats them)`,
      `random: a test, 2 cases, seed ${seed} (RANDOM_SEED=${seed} repeats them)`,
    ]);
    assert.deepEqual(
      fc.sample(fc.nat(), { ...randomRuns(t), numRuns: 9 }),
      fc.sample(fc.nat(), { seed: seed ?? 0, numRuns: 9 }),
    );
  });
});

suite("the end of a minimiser", () => {
  const { t } = listening();
  const slowly = (ms: number): void => {
    for (const end = performance.now() + ms; performance.now() < end;);
  };

  test("a failing property reports the smallest case found in time, with its seed", () => {
    const never = fc.property(fc.array(fc.nat(), { minLength: 50 }), () => {
      slowly(5);
      return false;
    });
    const { failed, counterexample, numShrinks, seed } = fc.check(never, randomRuns(t, 100, 200));
    assert.ok(failed && counterexample !== null && numShrinks > 0);
    assert.throws(() => fc.assert(never, randomRuns(t, 100, 50)), new RegExp(`seed: ${seed}[^]*Counterexample:`));
  });

  control("positive control: a run that time cuts short before its last case fails", () => {
    const isTrue = fc.property(fc.nat(), () => slowly(5));
    fc.assert(isTrue, randomRuns(t, 3));
    assert.throws(() => fc.assert(isTrue, randomRuns(t, 100_000, 50)), /interrupted/i);
  });

  test("patience ends after its tries, or after its time", () => {
    const mayTry = patience(2);
    assert.deepEqual([mayTry(), mayTry(), mayTry()], [true, true, false]);
    const short = patience(1e9, 5);
    while (short());
    assert.equal(short(), false);
  });

  test("each own minimiser ends with the smallest case that fails", async () => {
    assert.deepEqual(await shrink([1, 2, 3, 4, 5], async (fewer) => fewer.includes(4)), [4]);
    assert.deepEqual((await shrinkPlan(planOf(1), async ({ lives }) => lives.length > 1)).lives.length, 2);
    const smallest = minimise(generate(1, 4), ({ calls }) => calls.length > 1);
    assert.equal(smallest.calls.length, 2);
  });

  test("an own minimiser whose candidates always fail ends", async () => {
    let tries = 0;
    const always = async (): Promise<boolean> => (tries += 1) > 0;
    const steps = Array.from({ length: 50_000 }, (_, at) => at);
    const never = async (): Promise<boolean> => (tries += 1) < 0;
    assert.deepEqual(await shrink(steps, always), []);
    assert.equal((await shrink(steps, never)).length, steps.length);
    assert.ok(tries < 3000, `${tries} tries`);
  });
});
