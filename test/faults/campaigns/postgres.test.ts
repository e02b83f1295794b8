/**
 * Goal: no failure of gate, server, standby or network loses an answered check or writes it twice, at whatever moment.
 * Method: gates with wrong clocks run on a replicated PostgreSQL under load, with one failure after another, some
 * together. Independent code then sums the ledger again and compares it with each client's answers. `npm run campaign
 * -- --failures 500` is the long form. The campaign must find planted bugs.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bug } from "../../support/campaign/bugs.ts";
import { runCampaign } from "../../support/campaign/campaign.ts";
import type { FailureName } from "../../support/campaign/failures.ts";
import { control } from "../../support/controls/control.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const seed = seedOf("CAMPAIGN_SEED");
const ordinary = { seed, clients: 8, pauseMs: 60, bounds: "short" } as const;

const list: readonly FailureName[] = [
  "network: cut after the COMMIT, before its answer",
  "replica: frozen while it holds the head, longer than it may",
  "network: the COMMIT arrives late",
  "standby: kill -9",
  "replica: kill -9 after its COMMIT is sent",
  "server: kill -9",
  "network: cut after the COMMIT, before its answer",
  "standby promoted: the server still has sessions of gates",
  "sessions: ended by the server",
  "network: cut before the server has the COMMIT",
  "network: dark for a while between server and standby",
  "standby promoted: the server is dead",
  "network: all lines of all gates cut",
  "replica: kill -9",
];

test(
  `${list.length} failures lose no answered check and write none twice`,
  { tags: ["service.every-check-receipt"] },
  async (t) => {
    printSeed(t, { cases: list.length, seed, variable: "CAMPAIGN_SEED" });
    const report = await runCampaign({ ...ordinary, failures: list, replicas: 3 });
    if (typeof report === "string") return t.skip(report);
    const { lost, twice, keptThoughRefused, problems, happened, answered, rows, verified, after, ends } = report;
    const failures = [...happened.values()].reduce((sum, times) => sum + times, 0);
    t.diagnostic(`${failures} failures, ${answered} answered, ${rows} rows, ${report.unanswered} unanswered`);
    assert.deepEqual(
      { lost, twice, keptThoughRefused, problems },
      { lost: [], twice: [], keptThoughRefused: [], problems: [] },
    );
    assert.deepEqual([verified.ok, verified.rows], [true, rows]);
    assert.ok(failures >= list.length - 4, `moments to fail at came: ${failures}`);
    assert.ok(answered >= 100 && after >= 20, `it was a load, and the gates serve after it: ${answered}, ${after}`);
    assert.deepEqual(
      ends.filter(({ exitCode }) => exitCode !== 1),
      [],
      "a gate that ends by itself says so",
    );
  },
);

const controls: Readonly<Partial<Record<Bug, FailureName>>> = {
  "writes-again": "network: cut after the COMMIT, before its answer",
  "answers-before-commit": "network: cut before the server has the COMMIT",
  "believes-in-the-best": "network: cut in the midst of the COMMIT",
};

/** What a gate says that has answered for a row that was lost, if it starts again before the campaign compares answers. */
const pinSaw = /its head pin has seen/;

for (const [bug, failure] of Object.entries(controls)) {
  control(`positive control: a gate that ${bug.replaceAll("-", " ")} is noticed`, async (t) => {
    const failures = [failure, failure, failure];
    const running = runCampaign({ ...ordinary, failures, replicas: 2, bug: bug as Bug });
    const report = await running.catch((error: unknown) => {
      if (bug !== "writes-again" && pinSaw.test(String(error))) return undefined;
      throw error;
    });
    if (report === undefined) return undefined;
    if (typeof report === "string") return t.skip(report);
    const { lost, twice } = report;
    assert.ok((bug === "writes-again" ? twice : lost).length > 0, JSON.stringify(report));
  });
}
