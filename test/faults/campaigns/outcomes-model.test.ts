/**
 * Goal: whatever is sent, decided, used, expired and reported in which order, the counters are what a plain recount
 * finds (rules R 15 and R 16), and the rows alone give the same. Method: random histories through a gate on SQLite.
 * After each step the counters are compared with a list. At the end the ledger is verified, and decided again in two
 * ways. Positive controls: lists that do not know one rule. OUTCOME_RUNS sets how many histories, OUTCOME_SEED which.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { control } from "../../support/controls/control.ts";
import { temporaryFolder } from "../../support/gate.ts";
import { runOutcomes, type Ignored } from "../../support/model/outcomes/run.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const runs = Number(process.env["OUTCOME_RUNS"] ?? 20);
const seed = seedOf("OUTCOME_SEED");

const once = (t: TestContext, each: number, ignored?: Ignored): Promise<string | undefined> =>
  runOutcomes(join(temporaryFolder(t), "data"), each, ignored);

suite("outcomes and a plain recount agree", () => {
  test(`[issue 17] gate and recount agree on ${runs} random histories from seed ${seed}`, async (t) => {
    printSeed(t, { cases: runs, seed, variable: "OUTCOME_SEED" });
    for (let each = seed; each < seed + runs; each += 1) assert.equal(await once(t, each), undefined, `seed ${each}`);
  });

  for (const ignored of [
    "asker raises only",
    "claims",
    "corrections",
    "failed",
    "hold",
    "left out",
    "own time",
  ] as const)
    control(`positive control: a recount that ignores the rule "${ignored}" is noticed`, async (t) => {
      for (let each = 1; each <= 100; each += 1) {
        const problem = await once(t, each, ignored).catch(String);
        if (problem !== undefined) return;
      }
      assert.fail("no history notices it");
    });
});
