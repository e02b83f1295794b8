/**
 * Goal: deep verification and replay never call a ledger forged that only lawful erasures changed, and still find one that
 * somebody changed (finding P8). Method: random histories of approvals, in which parts of random rows are erased at any
 * time; then each ledger is verified and decided again. Positive controls: totals that somebody changed afterwards, and a
 * deep verification that does not know the contents of erased rows. ERASED_RUNS sets how many histories, ERASED_SEED which.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { promisify } from "node:util";
import { control } from "../../support/controls/control.ts";
import { temporaryFolder } from "../../support/gate.ts";
import { erasedHistory } from "../../support/model/approvals/erased.ts";
import { mutatedEnvironment, preload } from "../../support/mutation/sources.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const runs = Number(process.env["ERASED_RUNS"] ?? 60);
const seed = seedOf("ERASED_SEED");

suite("erased histories", () => {
  test(`[P8] ${runs} random histories with erasures verify and are decided again, from seed ${seed}`, async (t) => {
    printSeed(t, { cases: runs, seed, variable: "ERASED_SEED" });
    let all = 0;
    for (let each = seed; each < seed + runs; each += 1) {
      const { problem, skipped } = await erasedHistory(join(temporaryFolder(t), "data"), each);
      assert.equal(problem, undefined, `seed ${each}`);
      all += skipped;
    }
    t.diagnostic(`${all} rows could not be decided again`);
    assert.ok(all > 0);
  });

  control("positive control: totals that somebody changed are still found", async (t) => {
    for (let each = 1; each <= 10; each += 1) {
      const folder = join(temporaryFolder(t), "data");
      const { problem } = await erasedHistory(folder, each, () => {
        const database = new DatabaseSync(join(folder, "ledger.db"));
        database.exec("UPDATE effects SET total = CAST(CAST(total AS INTEGER) + 1000 AS TEXT)");
        database.close();
      });
      if (problem !== undefined) return;
    }
    assert.fail("no history notices it");
  });

  control(
    "positive control: a deep verification that does not know the contents of erased rows is noticed",
    async (t) => {
      const child = join(import.meta.dirname, "../../support/model/approvals/erased-child.ts");
      const defect = {
        within: "OpenApprovals.pass",
        find: 'judgement.how === "opened" || (isErased && leaf.answered === "ESCALATE")',
        put: 'judgement.how === "opened"',
      };
      const env = { ...process.env, ...mutatedEnvironment([defect]) };
      const args = ["--import", preload, child, "60"];
      const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 300_000 });
      t.diagnostic(stdout.slice(0, 160));
      assert.match(stdout, /^problem in history/);
    },
  );
});
