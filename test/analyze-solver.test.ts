/**
 * Goal: where z3 is installed, `analyze` proves more with it, and nothing that is not so.
 * Method: conditions that cannot hold and that the own engine does not understand are asked of it; clean contracts keep having no
 * finding; random contracts and calls try what it says, as in analyze-truth.test.ts. Without z3 the tests are skipped.
 */
import assert from "node:assert/strict";
import { after, suite, test } from "node:test";
import { analyze, openSolver, solverOpinion } from "../src/analysis/mod.ts";
import { loadFunctions } from "../src/contract/mod.ts";
import { compile, conditionText } from "./contract-kit.ts";
import { bases } from "./seeded/bases.ts";
import { lies, run } from "./seeded/truth.ts";

const solver = await openSolver();
after(() => solver?.close());
/** What it does not know in this time (ms) it says nothing of: enough where nothing false is to be said. */
const second = solver === undefined ? undefined : solverOpinion(solver, 250);
/** Where something is to be proven: the bound is for what never ends, and no measure of time. */
const patient = solver === undefined ? undefined : solverOpinion(solver, 60_000);

async function codes(text: string, opinion: typeof second): Promise<string[]> {
  const force = compile(text);
  await loadFunctions(force);
  return (await analyze(force, opinion)).map(({ code }) => code);
}

suite("z3 proves more", { skip: second === undefined }, () => {
  for (const condition of [
    "input.n * input.n < 0",
    'input.s == input.kind && input.kind == "a" && input.s == "b"',
    'input.s.matches("^(?:[a-z]{3})$") && input.s.size() == 4',
    'input.list.size() == 0 && input.list.exists(x, x == "a")',
    'input.s.lowerAscii() == "ABC"',
  ]) {
    test(condition, async () => {
      const text = conditionText(condition, { input: allRequired });
      assert.equal((await codes(text, undefined)).includes("never-fires"), false);
      assert.equal((await codes(text, patient)).includes("never-fires"), true);
    });
  }

  test("and not what may be", async () => {
    const text = conditionText('input.s.matches("^(?:[a-z]{3})$") && input.s.size() == 3', { input: allRequired });
    assert.equal((await codes(text, second)).includes("never-fires"), false);
  });
});

const allRequired = `{ type: object, additionalProperties: false, required: ["n", s, kind, list], properties: {
      n: { type: number }, s: { type: string }, kind: { enum: [a, b] }, list: { type: array, maxItems: 5, items: { type: string } } } }`;

suite("clean contracts have no finding with it", { skip: second === undefined }, () => {
  for (const [name, text] of Object.entries(bases))
    if (name !== "shell") test(name, async () => assert.deepEqual(await codes(text, second), []));
});

test("what it says of 12 random mandates is true", { skip: second === undefined }, async () => {
  for (let seed = 1; seed <= 12; seed += 1) {
    const ran = await run(seed, second);
    if (ran !== undefined) assert.deepEqual(lies(ran.findings, ran.force, ran.seen), [], `seed ${seed}`);
  }
});
