/**
 * Goal: an answered check survives a power cut, whatever the disk did with unflushed data. Method: the gate's data
 * folder is on a file system whose disk logs each write and each flush. A cut anywhere in the log is mounted as after a
 * reboot, a gate starts on it, and the test looks for every answer that a client had before that moment. A store that
 * does not flush, and a file system that does not pass flushes on, must be noticed. POWER_CUTS and POWER_CUT_SEED set
 * how many cuts and which; POWER_CUT_FILE_SYSTEMS names more than ext4, such as `ext4 xfs btrfs`.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Dice } from "../support/campaign/random.ts";
import { control } from "../support/controls/control.ts";
import { flushesNever } from "../support/faults/setup.ts";
import { cutPower, noPowerCut, type FileSystem, type PowerCuts } from "../support/faults/power-cut.ts";
import { temporaryFolder } from "../support/ledger-fixture.ts";
import { printSeed, seedOf } from "../support/random-test.ts";

const cuts = Number(process.env["POWER_CUTS"] ?? 4);
const seed = seedOf("POWER_CUT_SEED");
const fileSystems = (process.env["POWER_CUT_FILE_SYSTEMS"] ?? "ext4").split(" ") as FileSystem[];
const cutsOfSession = 10;

function told(fileSystem: string, report: PowerCuts): void {
  const { cuts: happened, required, lost, writes, flushes, unflushed, problems } = report;
  const fates = Object.entries(unflushed).map(([fate, times]) => `${fate} ${times}`);
  console.log(
    `  ${fileSystem}: ${happened} cuts (unflushed ${fates.join(", ")}) in ${writes} writes and ${flushes} flushes: ` +
      `${required} answers before them, ${lost} lost, ${problems.length} not served`,
  );
}

for (const fileSystem of fileSystems) {
  const skip = noPowerCut(fileSystem) ?? false;
  test(
    `${cuts} power cuts on ${fileSystem} lose no answered check`,
    { tags: ["service.every-check-receipt"], skip },
    async (t) => {
      printSeed(t, { cases: cuts, seed, variable: "POWER_CUT_SEED" });
      const report = await cutPower({
        folder: temporaryFolder(t),
        fileSystem,
        dice: new Dice(seed),
        cuts,
        cutsOfSession,
        loadMs: 1500,
      });
      told(fileSystem, report);
      assert.deepEqual({ lost: report.lost, problems: report.problems }, { lost: 0, problems: [] });
      assert.equal(report.cuts, cuts);
      assert.ok(report.required > 10 * report.cuts, `it was a load: ${report.required} answers`);
    },
  );
}

const controls = {
  "a store that does not flush": { changes: flushesNever },
  "a file system that does not pass flushes on": { mountOptions: "barrier=0" },
} as const;

for (const [title, broken] of Object.entries(controls)) {
  control(`positive control: ${title} is noticed`, { skip: noPowerCut("ext4") ?? false }, async (t) => {
    const report = await cutPower({
      folder: temporaryFolder(t),
      fileSystem: "ext4",
      dice: new Dice(seed),
      cuts: 4,
      cutsOfSession: 4,
      fates: ["dropped"],
      loadMs: 1000,
      ...broken,
    });
    told("ext4", report);
    assert.ok(report.lost > 0 || report.problems.length > 0);
  });
}
