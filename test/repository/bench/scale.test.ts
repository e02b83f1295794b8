/**
 * Goal: the page on scale shows its program's output, and the program's arithmetic is correct in known cases. Method:
 * the page's block is compared; loads so simple that queueing theory gives the answer are simulated.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { scaleReport, shown } from "../../../bench/scale.ts";
import { makePlan, type Figures, type Question } from "../../../bench/scale/plan.ts";
import { simulate } from "../../../bench/scale/simulate.ts";
import { ShownPage } from "../../support/shown-page.ts";

suite("docs/evidence/scale.md", () => {
  test("docs/evidence/scale.md shows the output of `npm run bench -- scale`", () => {
    new ShownPage("evidence/scale.md", "scale").assertShown(
      "report",
      scaleReport(shown.question, shown.figures, shown.run).join("\n"),
    );
  });
});

const nothing: Figures = {
  gateMsPerCheck: 1e-9,
  cycleMs: 1e-9,
  cycleMsPerRow: 0,
  databaseMsPerBatch: 0,
  databaseMsPerRow: 0,
  coordinatorMsPerBatch: 0,
  coordinatorMsPerRow: 0,
  bytesPerCheck: 1,
};
const one: Question = {
  checksPerSecond: 600,
  tenants: 1,
  skew: 1,
  busiest: 0.9,
  fullest: 0.9,
  coresPerNode: 1,
  batchMax: 512,
  gatesPerLedger: 1,
};
const run = { seed: 7, seconds: 200, warmUpSeconds: 1 };

suite("the simulation", () => {
  test("the mean wait at a single gate follows the Pollaczek-Khinchine formula", () => {
    const figures = { ...nothing, gateMsPerCheck: 1 };
    const [met] = simulate(makePlan(one, figures), one, figures, run, [1]).classes;
    const busy = 0.6;
    assert.ok(met !== undefined && Math.abs(met.mean - (1 + busy / (2 * (1 - busy)))) < 0.05, `mean ${met?.mean} ms`);
  });

  test("under load, a batch contains the arrivals of one cycle, and a call waits 1.5 cycles", () => {
    const figures = { ...nothing, cycleMs: 20, cycleMsPerRow: 0.1 };
    const [met] = simulate(makePlan(one, figures), one, figures, run, [1]).classes;
    const rows = (0.6 * 20) / (1 - 0.6 * 0.1);
    const cycle = 20 + 0.1 * rows;
    assert.ok(
      met !== undefined && Math.abs(met.rowsPerBatch / rows - 1) < 0.05,
      `${met?.rowsPerBatch} rows, not ${rows}`,
    );
    assert.ok(Math.abs(met.mean / (1.5 * cycle) - 1) < 0.05, `mean ${met.mean} ms, not ${1.5 * cycle}`);
  });

  test("with n gates on one ledger, a call waits for n / 2 + 1 batches", () => {
    const figures = { ...nothing, cycleMs: 20 };
    for (const gatesPerLedger of [1, 2, 4]) {
      const question = { ...one, gatesPerLedger };
      const [met] = simulate({ ...makePlan(one, figures), gates: 4 }, question, figures, run, [1]).classes;
      const law = 20 * (gatesPerLedger / 2 + 1);
      assert.ok(met !== undefined && Math.abs(met.mean / law - 1) < 0.05, `${met?.mean} ms, not ${law}`);
    }
  });

  test("a plan splits each tenant that is too large into as few ledgers as it needs", () => {
    const figures = { ...nothing, cycleMs: 10, cycleMsPerRow: 0.1 };
    const plan = makePlan({ ...one, checksPerSecond: 30_000, tenants: 100, fullest: 0.5, coresPerNode: 16 }, figures);
    const bears = 1000 / (10 / 512 + 0.1);
    assert.ok(Math.abs(plan.ledgerBears / bears - 1) < 1e-9);
    for (const { checksPerSecond } of plan.ledgers) assert.ok(checksPerSecond <= bears / 2);
    for (const { checksPerSecond, ledgers } of plan.split) assert.ok(checksPerSecond / (ledgers - 1) > bears / 2);
    assert.ok(plan.split.length > 0);
    const total = plan.ledgers.reduce((sum, { checksPerSecond }) => sum + checksPerSecond, 0);
    assert.ok(Math.abs(total - 30_000) < 1e-6);
  });
});
