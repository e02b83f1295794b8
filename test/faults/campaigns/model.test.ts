/**
 * Goal: the engine decides and counts as the contract language says, whatever the contracts and the calls. Method:
 * random contracts, mandates and calls, as structure. The engine receives them as text; a naive model walks the
 * structure (`model/model.ts`). After each call the verdict, rule, fired rules, errors, and counters read and updated
 * must be the same. Wrong contracts must be refused. A scenario with a difference is minimised and kept in
 * `regressions/`, where every later run repeats it. `MODEL_RUNS` and `MODEL_SEED` set how many scenarios and which.
 */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { control } from "../../support/controls/control.ts";
import { differ, type Disagreement, type Witness } from "../../support/model/compare.ts";
import { Coverage } from "../../support/model/coverage.ts";
import { defects } from "../../support/model/defects.ts";
import { compile, type Defect } from "../../support/model/engine.ts";
import { spoil } from "../../support/model/generate-wrong.ts";
import { generateWhole } from "../../support/model/generate-rollout.ts";
import { generate } from "../../support/model/generate.ts";
import type { Scenario } from "../../support/model/language.ts";
import { minimise } from "../../support/model/minimise.ts";
import { printContract, printMandate } from "../../support/model/print.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const regressions = fileURLToPath(new URL("../../support/model/regressions", import.meta.url));
const names = readdirSync(regressions).filter((name) => name.endsWith(".json"));
const kept = names.map((name) => ({
  name,
  scenario: JSON.parse(readFileSync(join(regressions, name), "utf8")) as Scenario,
}));
const runs = Number(process.env["MODEL_RUNS"] ?? 300);
const seed = seedOf("MODEL_SEED");
const callsMax = 40;

/** Returns the difference between model and engine, or why the engine does not compile a valid contract. */
function problemOf(scenario: Scenario, defect: Defect = {}, witness?: Witness): Disagreement | undefined {
  const given = defect.scenario?.(scenario) ?? scenario;
  const policySet = compile(given);
  if (policySet.ok) return differ(scenario, policySet.value, defect, witness);
  const problems = policySet.problem.filter((each) => !isRedundantNullTest(each));
  return problems.length === 0
    ? undefined
    : { call: -1, about: "refused", model: "compiles", engine: (problems[0] ?? "").split("\n") };
}

/** After `!= null` the checker refuses another comparison with null, and the generator does not track this. */
function isRedundantNullTest(problem: string): boolean {
  return /^error\[type\]: .*\bnever equals null\b/.test(problem);
}

/** Minimises the scenario, keeps it, and fails. */
function keep(scenario: Scenario, from: number, found: Disagreement): never {
  const smallest = minimise(scenario, (smaller) => {
    const again = problemOf(smaller);
    return again?.about === found.about && (found.about !== "refused" || codeOf(again) === codeOf(found));
  });
  const name = `seed-${from}.json`;
  mkdirSync(regressions, { recursive: true });
  writeFileSync(join(regressions, name), `${JSON.stringify(smallest, null, 1)}\n`);
  const texts = [...smallest.contracts.map(printContract), printMandate(smallest), JSON.stringify(smallest.calls)];
  return assert.fail(
    `seed ${from}, kept as regressions/${name}: ${JSON.stringify(problemOf(smallest), null, 1)}\n${texts.join("\n")}`,
  );
}

function codeOf({ engine }: Disagreement): string | undefined {
  return Array.isArray(engine) ? /^error\[[a-z-]+\]/.exec(String(engine[0]))?.[0] : undefined;
}

suite("the engine and the model", () => {
  for (const { name, scenario } of kept) {
    test(`the engine and the model judge ${name} alike`, () => assert.equal(problemOf(scenario), undefined));
  }

  test(`the engine and the model judge ${runs} random scenarios alike (MODEL_SEED=${seed})`, (t) => {
    printSeed(t, { cases: runs, seed, variable: "MODEL_SEED" });
    const coverage = new Coverage();
    for (let each = seed; each < seed + runs; each += 1) {
      const scenario = generateWhole(each, 1 + (each % callsMax));
      coverage.scenario(scenario);
      const found = problemOf(scenario, {}, (...done) => coverage.call(...done));
      if (found !== undefined) keep(scenario, each, found);
    }
    if (runs > 5000) t.diagnostic(`coverage\n${coverage.toString()}`);
  });

  const skip = runs < 300 && "a short run leaves it out";
  test("scenarios of fixed seeds reach every verdict, every deciding step and every error", { skip }, () => {
    const coverage = new Coverage();
    for (let each = 1; each <= (runs < 2000 ? 300 : 2000); each += 1) {
      const scenario = generateWhole(each, 1 + (each % callsMax));
      coverage.scenario(scenario);
      assert.equal(
        problemOf(scenario, {}, (...done) => coverage.call(...done)),
        undefined,
      );
    }
    const missing = [...wanted, ...(runs < 2000 ? [] : rare)].filter((name) => coverage.of(name) === 0);
    assert.deepEqual(missing, []);
    assert.ok(coverage.of("counter read, more") > coverage.of("counter read, 0") / 10, coverage.toString());
  });

  test("the compiler refuses a contract with one fault and reports the code of that fault", (t) => {
    const faults = Math.ceil(runs / 10);
    printSeed(t, { cases: faults, seed, variable: "MODEL_SEED" });
    for (let each = seed; each < seed + faults; each += 1) {
      const { fault, code, scenario } = spoil(generate(each, 1), each);
      const policySet = compile(scenario);
      const codes = policySet.ok ? [] : policySet.problem.map((problem) => /^error\[([a-z-]+)\]/.exec(problem)?.[1]);
      assert.ok(
        codes.includes(code),
        `seed ${each}, ${fault}: ${codes.join()}\n${scenario.contracts.map(printContract).join("\n")}`,
      );
    }
  });
});

const wanted = [
  ...["ALLOW", "ESCALATE", "BLOCK"].map((verdict) => `verdict ${verdict}`),
  ...["a rule", "$route", "$input", "$platform", "$requires", "$otherwise", "an error in a rule"].map(
    (way) => `reached by ${way}`,
  ),
  "error: division by zero",
  "error: no such place in the list",
  "BLOCK answered ESCALATE",
  "BLOCK answered ALLOW",
  "ESCALATE answered ALLOW",
  "several rules fired",
  "a move by a fraction",
  "a value asked for, known",
  "a value asked for, unknown",
  "a rule that observes fired",
];

const rare = [
  "reached by an error in $counters",
  "error: since is in the future",
  "error: a key of over 16,384 bytes",
  "error: a value of over 4,096 bits",
];

suite("positive controls of the comparison", () => {
  for (const [fault, defectOf] of defects) {
    control(`positive control: an engine with this defect is noticed: ${fault}`, () => {
      if (kept.some(({ scenario }) => isNoticed(scenario, defectOf(scenario)))) return;
      for (let each = 1; each <= 1000; each += 1) {
        const scenario = generateWhole(each, 1 + (each % callsMax));
        if (isNoticed(scenario, defectOf(scenario))) return;
      }
      assert.fail("not noticed in 1000 scenarios");
    });
  }

  control("the comparison reports nothing if the engine has no defect", () => {
    for (let each = 1; each <= 100; each += 1) assert.equal(problemOf(generateWhole(each, 20)), undefined);
  });

  control("the comparison reduces a disagreement to its smallest scenario", () => {
    const defect = { isWithin: () => false };
    const isOne = (scenario: Scenario): boolean => problemOf(scenario, defect)?.about === "read";
    // A definition and the one rule that uses it could only go together, and the minimiser removes one thing at a time.
    const isSimple = (scenario: Scenario): boolean =>
      scenario.contracts.every(({ lets }) => lets.length === 0) && JSON.stringify(scenario).length < 12_000;
    let from = 1;
    while (!isSimple(generate(from, 4)) || !isOne(generate(from, 4))) from += 1;
    const { contracts, calls } = minimise(generate(from, 4), isOne);
    assert.deepEqual([contracts.length, contracts[0]?.rules.length, calls.length], [1, 1, 2]);
  });
});

/** A contract that the defect makes refused says nothing about the comparison. */
function isNoticed(scenario: Scenario, defect: Defect): boolean {
  const found = problemOf(scenario, defect);
  return found !== undefined && found.about !== "refused";
}
