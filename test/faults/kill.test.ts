/**
 * Goal: an answered check and its counters survive the sudden end of the gate. Method: the real gate under load is
 * killed (SIGKILL) at random moments, sometimes during its start, and started again at once. The test looks for each
 * received answer in the file, walks the chain, and sums the counters with independent code. A gate that answers before
 * it commits must be caught. The same happens to parked calls, decisions and uses of approvals. KILL_RUNS and KILL_SEED
 * set the number of kills and the seed; a new ledger starts after 100 kills, so that a thousand end in time.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { Dice } from "../support/campaign/random.ts";
import { control } from "../support/controls/control.ts";
import { temporaryFolder } from "../support/ledger-fixture.ts";
import { ApprovalLoad, setupOfApprovals } from "../support/faults/approval-load.ts";
import { Load, type Answered } from "../support/faults/load.ts";
import { answersEarly, decidesEarly, setupIn, verifies, type Setup } from "../support/faults/setup.ts";
import { LedgerComparison } from "../support/faults/ledger-comparison.ts";
import { spawnGate, startGate, type GateProcess } from "../support/gate-process.ts";
import { printSeed, seedOf } from "../support/random-test.ts";

const runs = Number(process.env["KILL_RUNS"] ?? 8);
const seed = seedOf("KILL_SEED");
const clients = 4;
const runsOfHistory = 100;

interface Outcome {
  readonly answered: number;
  readonly rows: number;
  readonly lost: readonly Answered[];
  readonly twice: number;
  /** Kills before the gate listened. */
  readonly inStart: number;
}

/** Starts, loads and kills again and again; inspects everything after each start. */
async function killLoop({ data, settings }: Setup, count: number, dice: Dice): Promise<Outcome> {
  const load = new Load();
  const comparison = new LedgerComparison();
  const lost: Answered[] = [];
  let looked = 0;
  let inStart = 0;
  for (let run = 0; run <= count; run += 1) {
    const gate = await startGate({ settings });
    try {
      comparison.follow(join(data, "ledger.db"));
      lost.push(...load.answers.slice(looked).filter((answer) => !comparison.isKept(answer)));
      looked = load.answers.length;
      if (run % 10 === 0 || run === count) await verifies(gate, comparison.rows);
      if (run < count) await loadAndKill(gate, load, dice.between(20, 420));
    } finally {
      await gate.kill();
    }
    if (run + 1 < count && dice.roll() < 0.2) {
      await killInStart(settings, dice.between(50, 700));
      inStart += 1;
      run += 1;
    }
  }
  const distinct = new Set(load.answers.map(({ seq }) => seq));
  const answered = load.answers.length;
  return { answered, rows: comparison.rows, lost, twice: answered - distinct.size, inStart };
}

/** Waits for some answers, however slow the machine: a gate that has answered nobody can lose nothing. */
async function loadAndKill(gate: GateProcess, load: Load, afterMs: number): Promise<void> {
  const wanted = load.answers.length + clients;
  const working = load.run(gate.url, clients);
  await load.reaches(wanted, working);
  await wait(afterMs);
  await gate.kill();
  await working;
}

/** It may already listen, but it has received no call. */
async function killInStart(settings: Setup["settings"], afterMs: number): Promise<void> {
  const gate = spawnGate(["serve"], { settings });
  const ended = once(gate, "exit");
  await wait(afterMs);
  gate.kill("SIGKILL");
  await ended;
}

test(
  `${runs} kills under load lose no answered check`,
  { tags: ["service.every-check-receipt", "receipt.one-row", "receipt.chain-hashes"] },
  async (t) => {
    printSeed(t, { cases: runs, seed, variable: "KILL_SEED" });
    const dice = new Dice(seed);
    const outcomes: Outcome[] = [];
    for (let done = 0; done < runs; done += runsOfHistory) {
      const folder = temporaryFolder(t);
      const setup = setupIn(folder);
      const settings = { ...setup.settings, SVC_PIN: join(folder, "pin") };
      outcomes.push(await killLoop({ ...setup, settings }, Math.min(runsOfHistory, runs - done), dice));
    }
    const sum = (of: (outcome: Outcome) => number): number => outcomes.reduce((total, each) => total + of(each), 0);
    const [answered, rows, twice] = [sum((each) => each.answered), sum((each) => each.rows), sum((each) => each.twice)];
    const inStart = sum((each) => each.inStart);
    const lost = outcomes.flatMap((each) => each.lost);
    console.log(
      `  ${runs} kills (${inStart} in the start), ${answered} answered, ${rows} rows, ` +
        `${lost.length} lost, ${twice} answered twice`,
    );
    assert.deepEqual(lost, []);
    assert.equal(twice, 0);
    assert.ok(answered >= (runs - inStart) * clients, `the load was a load: ${answered} answers`);
    assert.ok(rows >= answered);
  },
);

/** Kills a gate under a load of approvals again and again. @returns the first broken promise */
async function killApprovals(setup: Setup, count: number, dice: Dice): Promise<[string | undefined, ApprovalLoad]> {
  const load = new ApprovalLoad(setup.data, dice);
  for (let run = 0; run <= count; run += 1) {
    const gate = await startGate({ settings: setup.settings });
    try {
      if (run === 0) await load.prepare(gate.url);
      const problem = await load.problem(gate.url);
      if (problem !== undefined || run === count) return [problem, load];
      const working = load.run(gate.url, clients);
      const before = load.counts.used;
      const over = new AbortController();
      working.catch(() => undefined).finally(() => over.abort());
      while (!over.signal.aborted && load.counts.used < before + 2) await wait(5);
      await wait(dice.between(20, 420));
      await gate.kill();
      await working;
    } finally {
      await gate.kill();
    }
  }
  return [undefined, load];
}

test(`${runs} kills lose no decision, and no approval is used twice`, async (t) => {
  printSeed(t, { cases: runs, seed, variable: "KILL_SEED" });
  const dice = new Dice(seed);
  const sum = { answers: 0, decided: 0, used: 0 };
  for (let done = 0; done < runs; done += 20) {
    const kills = Math.min(20, runs - done);
    const [problem, load] = await killApprovals(setupOfApprovals(temporaryFolder(t)), kills, dice);
    assert.equal(problem, undefined, `seed ${seed}`);
    for (const name of ["answers", "decided", "used"] as const) sum[name] += load.counts[name];
  }
  t.diagnostic(JSON.stringify(sum));
  assert.ok(sum.used >= 2 * runs && sum.decided > 0, "the load was a load");
});

control("positive control: decisions that are answered before they are committed are noticed", async (t) => {
  const [problem] = await killApprovals(setupOfApprovals(temporaryFolder(t), decidesEarly), 12, new Dice(seed));
  assert.match(problem ?? "", /^LOST/);
});

control("positive control: a gate that answers before it commits is noticed", async (t) => {
  const setup = setupIn(temporaryFolder(t), { changes: [answersEarly] });
  const caught = await killLoop(setup, 5, new Dice(seed)).then(
    ({ lost }) => lost.length > 0,
    (error: Error) => /head pin|read its counters|without a gap/.test(error.message),
  );
  assert.ok(caught, "the loss was seen");
});
