/**
 * Goal: a disk that other programs fill stops answers in time and loses none, and the gate serves again once there is
 * room. Method: the gate's data folder is on its own small file system. Under load, the test fills the remaining
 * space to the last block, kills the gate, restarts it on the full disk, and then frees space. A gate that does not
 * check for room must be noticed.
 */
import assert from "node:assert/strict";
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { control } from "../support/controls/control.ts";
import { Load, type Refused } from "../support/faults/load.ts";
import { examine, setupIn } from "../support/faults/setup.ts";
import { smallDisk } from "../support/faults/small-disk.ts";
import { temporaryFolder } from "../support/ledger-fixture.ts";
import { runGate, startGate, type Ended, type Exit } from "../support/gate-process.ts";
import type { Mutation } from "../support/mutation/mutate.ts";

const clients = 4;
const fillMebibytes = 4;
/** The load's answers before the disk fills, however slow the machine. */
const answersBefore = 6 * clients;
/** Longer than the head pin and the checkpoint may trail, so that they meet the full disk too. */
const trailMs = 2500;

interface Outcome {
  /** The refusals that the load's clients received; fewer than the clients if the gate ended. */
  readonly refusals: readonly Refused[];
  /** The answer to a call on the full disk. */
  readonly later: readonly Refused[];
  /** The answers after room was made. */
  readonly again: number;
  /** How the gate ended; undefined if it served again. */
  readonly end: Exit | undefined;
  /** The result of a start on the full disk, after a kill. */
  readonly restart: Ended | "served";
  readonly answered: number;
  readonly lost: number;
}

/** Fills the disk in small steps, as another program's log would. */
async function fill(filler: string): Promise<void> {
  const handle = openSync(filler, "w");
  const piece = Buffer.alloc(fillMebibytes * 2 ** 20, 1);
  try {
    for (;;) {
      if (writeSync(handle, piece) < piece.length) continue;
      await wait(1);
    }
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
  } finally {
    fsyncSync(handle);
    closeSync(handle);
  }
}

async function filled(t: TestContext, disk: string, changes: readonly Mutation[] = []): Promise<Outcome> {
  const filler = join(disk, "filler");
  const setup = setupIn(temporaryFolder(t), { data: join(disk, "data"), changes });
  const load = new Load();
  const gate = await startGate({ settings: setup.settings });
  t.after(() => gate.kill());
  const working = load.run(gate.url, clients);
  await load.reaches(answersBefore, working);
  await fill(filler);
  await working;
  const refusals = [...load.refusals];
  await load.run(gate.url, 1, 1);
  const later = load.refusals.slice(refusals.length);
  await wait(trailMs);
  rmSync(filler);
  const before = load.answers.length;
  await load.run(gate.url, clients, 5);
  const again = load.answers.length - before;
  await fill(filler);
  const end = again === 0 ? await gate.ended : undefined;
  await gate.kill();
  const restart = await runGate(["serve"], { settings: setup.settings });
  rmSync(filler);
  const answered = load.answers.length;
  const { lost } = await examine(setupIn(temporaryFolder(t), { data: setup.data }), [...load.answers], load);
  return { refusals, later, again, end, restart, answered, lost: lost.length };
}

const refused: Refused = { status: 503, code: "ledger-unavailable" };

for (const [kind, mebibytes] of [
  ["tmpfs", 112],
  ["ext4", 160],
] as const) {
  test(
    `the gate answers 503 on a full ${kind} and verdicts when there is room again`,
    { tags: ["service.every-check-receipt"] },
    async (t) => {
      const disk = smallDisk(t, mebibytes, kind);
      if (disk === undefined) return t.skip("this user may not mount a file system");
      const { refusals, later, again, restart, answered, lost } = await filled(t, disk);
      console.log(`  ${kind}: ${answered} answered, ${lost} lost; a start on the full disk: ${said(restart)}`);
      assert.deepEqual(
        refusals,
        Array.from({ length: clients }, () => refused),
        "each client of the load was refused, in time",
      );
      assert.deepEqual(later, [refused]);
      assert.equal(again, 5 * clients, "it goes on");
      assert.equal(lost, 0);
      assert.ok(answered > 5 * clients);
      if (restart !== "served") assert.match(restart.stderr, /\bfull\b|\bwritten\b|\broom\b/);
    },
  );
}

function said(restart: Outcome["restart"]): string {
  return restart === "served" ? restart : `refused, ${restart.stderr.trim()}`;
}

control("positive control: a gate that does not check for free space is noticed", async (t) => {
  const disk = smallDisk(t, 112);
  if (disk === undefined) return t.skip("this user may not mount a file system");
  const blind: Mutation = { within: "Writer.#requireRoom", find: "bavail * bsize >= reserveBytes", put: "true" };
  const { refusals, end, lost } = await filled(t, disk, [blind]);
  console.log(`  refusals: ${refusals.length}, its end: ${JSON.stringify(end)}, lost: ${lost}`);
  assert.equal(refusals.length, 0, "nothing was refused in time");
  assert.equal(end?.code, 1, "a fault");
  assert.equal(lost, 0, "even so");
});
