/**
 * Goal: an answered check is durable, whatever happens to process, power and disk. The chain, the tree and the counters
 * are valid after each crash, and a replay agrees. Method: the gate, the ledger and SQLite itself run on a simulated
 * machine (`simulation/`); clock, disk, crashes and clients come from one seed. After each crash the test compares the
 * state with the outside observers' knowledge. A failing history is minimised and kept in `regressions/simulation`,
 * where every later run repeats it. SIMULATION_RUNS sets how many crashes, SIMULATION_SEED which.
 */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { control } from "../../support/controls/control.ts";
import { controls, type Control } from "../../support/simulation/controls.ts";
import { planOf, type Plan } from "../../support/simulation/plan.ts";
import { shrink } from "../../support/simulation/shrink.ts";
import { loadSources, type Sources } from "../../support/simulation/sources.ts";
import { live, type Came } from "../../support/simulation/world.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const regressions = fileURLToPath(new URL("../../support/simulation/regressions", import.meta.url));
const kept = readdirSync(regressions).map((name) => ({
  name,
  plan: JSON.parse(readFileSync(join(regressions, name), "utf8")) as Plan,
}));
const crashesWanted = Number(process.env["SIMULATION_RUNS"] ?? 250);
const seed = seedOf("SIMULATION_SEED");

/** The report over all histories. */
const counted = [
  "answers",
  "rows",
  "erased",
  "rotations",
  "decided",
  "used",
  "repeated",
  "refusals",
  "faults",
  "refusedStarts",
] as const;
const zeros = Object.fromEntries(counted.map((name) => [name, 0])) as Record<(typeof counted)[number], number>;

/** Minimises the history, keeps it, and fails. */
async function keep(sources: Sources, from: number, found: NonNullable<Came["problem"]>): Promise<never> {
  const smallest = await shrink(planOf(from), async (plan) => (await live(sources, plan)).problem !== undefined);
  const { problem } = await live(sources, smallest);
  mkdirSync(regressions, { recursive: true });
  const name = `seed-${from}.json`;
  writeFileSync(join(regressions, name), `${JSON.stringify(smallest, null, 1)}\n`);
  return assert.fail(
    `seed ${from}, after life ${found.life}: ${found.what}\nkept as regressions/simulation/${name}, which fails with: ${problem?.what}`,
  );
}

await suite("a gate on a simulated machine", async () => {
  const sources = await loadSources("right");

  for (const { name, plan } of kept) {
    test(`a gate survives the kept history ${name}`, async () => {
      assert.equal((await live(sources, plan)).problem?.what, undefined);
    });
  }

  test(`a gate loses nothing in ${crashesWanted} crashes from seed ${seed} (set SIMULATION_SEED to repeat)`, async (t) => {
    printSeed(t, { cases: crashesWanted, seed, variable: "SIMULATION_SEED" });
    const sum = { histories: 0, crashes: 0, ...zeros };
    const startedAt = performance.now();
    for (let each = seed; sum.crashes < crashesWanted; each += 1) {
      const came = await live(sources, planOf(each));
      if (came.problem !== undefined) await keep(sources, each, came.problem);
      sum.histories += 1;
      sum.crashes += came.crashes;
      for (const name of counted) sum[name] += came[name];
    }
    const seconds = (performance.now() - startedAt) / 1000;
    t.diagnostic(
      `${JSON.stringify(sum)} in ${seconds.toFixed(0)} s, ${(sum.crashes / seconds).toFixed(0)} crashes a second`,
    );
  });

  test("the simulated clients get more answers than there are crashes", async () => {
    let [answers, crashes] = [0, 0];
    for (let each = 1; each <= 10; each += 1) {
      const came = await live(sources, planOf(each));
      answers += came.answers;
      crashes += came.crashes;
    }
    assert.ok(answers > crashes, `${answers} answers and ${crashes} crashes`);
  });

  test("a seed always gives the same history", async () => {
    const [once, again] = [await live(sources, planOf(seed)), await live(sources, planOf(seed))];
    assert.deepEqual(again, once);
  });
});

/** The number of histories within which a planted mistake must show. */
const historiesMax = 400;

await suite("positive control: defects that the simulation notices", async () => {
  for (const [index, defect] of controls.entries()) {
    control(`positive control: the defect "${defect.name}" is noticed`, async (t) => {
      const sources = await loadSources(`wrong-${index}`, defect.mutations);
      t.diagnostic(await notice(sources, defect));
    });
  }
});

async function notice(sources: Sources, wrong: Control): Promise<string> {
  const { defect, noticed } = wrong;
  const others: string[] = [];
  let crashes = 0;
  for (let each = 1; each <= historiesMax; each += 1) {
    const came = await live(sources, planFor(wrong, each), defect);
    crashes += came.crashes;
    if (came.problem === undefined) continue;
    if (noticed.test(came.problem.what)) return `noticed after ${crashes} crashes: ${came.problem.what.slice(0, 120)}`;
    others.push(came.problem.what);
  }
  return assert.fail(`not noticed in ${crashes} crashes; others: ${others.slice(0, 5).join("\n")}`);
}

function planFor({ isOfErrands, isOfRepeats, isOfVotes, isRare }: Control, from: number): Plan {
  const plan = planOf(from, isRare === true ? 1 : 0);
  const more = {
    ...(isOfErrands === true && { errands: 3 }),
    ...(isOfRepeats === true && { repeats: 20 }),
    ...(isOfVotes === true && { votes: 25 }),
  };
  return { ...plan, lives: plan.lives.map((life) => ({ ...life, ...more })) };
}
