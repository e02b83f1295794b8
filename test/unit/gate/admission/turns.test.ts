/**
 * Goal: while checks wait, reads rest; and no load stops them for good. Method: slices on turns whose checks the test
 * starts and ends, on a clock that stands still.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Turns } from "../../../../packages/gate/src/server/admission/turns.ts";
import { ReadAdmission } from "../../../../packages/gate/src/server/admission/reads.ts";
import { eventually } from "../../../support/patience.ts";
import { standingClock } from "../../../support/standing-clock.ts";

/** Lets everything happen that needs no time. */
async function settle(): Promise<void> {
  for (let n = 0; n < 20; n += 1) await setImmediate();
}

interface Rig {
  readonly turns: Turns;
  readonly load: { isWaiting: boolean };
  readonly pass: (ms: number) => void;
  /** Lets the turns look three times whether checks wait. */
  readonly looks: () => Promise<unknown>;
}

/** Turns on a clock that only the test moves. */
function rigOf(t: TestContext): Rig {
  const { pass } = standingClock(t);
  const load = { isWaiting: false };
  let left = 0;
  const turns = new Turns(() => {
    left -= 1;
    return load.isWaiting;
  });
  const looks = (): Promise<boolean> => {
    left = 3;
    return eventually("three looks", () => left <= 0);
  };
  return { turns, load, pass, looks };
}

/** Claims a turn. Returns a function that says if it has come. */
function claim(turns: Turns): () => boolean {
  let hasStarted = false;
  void turns.start().then(() => (hasStarted = true));
  return () => hasStarted;
}

/** Ends a slice of so many milliseconds while a check waits, and claims the next turn. Returns whether that has come. */
async function claimAfter({ turns, load, looks, pass }: Rig, workedMs: number): Promise<() => boolean> {
  const first = await turns.start();
  pass(workedMs);
  load.isWaiting = true;
  first.end();
  const hasStarted = claim(turns);
  await looks();
  return hasStarted;
}

suite("turns", () => {
  test("one slice runs at a time, in the order of their claims", async () => {
    const turns = new Turns(() => false);
    const [log, running] = [[] as number[], new Set<number>()];
    const slices = Array.from({ length: 6 }, async (_, number) => {
      const turn = await turns.start();
      running.add(number);
      log.push(number);
      assert.equal(running.size, 1);
      await setImmediate();
      running.delete(number);
      turn.end();
    });
    await Promise.all(slices);
    assert.deepEqual([log, turns.started], [[0, 1, 2, 3, 4, 5], 6]);
  });

  test("after a slice the gate takes what has come, so no slice starts before a check that came meanwhile", async (t) => {
    const { turns, load, looks, pass } = rigOf(t);
    const first = await turns.start();
    pass(5);
    const arrives = setImmediate().then(() => (load.isWaiting = true));
    first.end();
    const hasStarted = claim(turns);
    await arrives;
    await looks();
    assert.equal(hasStarted(), false);
    load.isWaiting = false;
    await eventually("the next slice", hasStarted);
  });

  test("while a check waits, the next slice waits: four times as long as the one before at most", async (t) => {
    const rig = rigOf(t);
    const hasStarted = await claimAfter(rig, 5);
    rig.pass(19);
    await rig.looks();
    assert.equal(hasStarted(), false);
    rig.pass(1);
    await eventually("the next slice, because reads go on under any load", hasStarted);
  });

  test("a slice that took long has mostly waited, so the next one waits at most 80 milliseconds", async (t) => {
    const rig = rigOf(t);
    const hasStarted = await claimAfter(rig, 30_000);
    rig.pass(79);
    await rig.looks();
    assert.equal(hasStarted(), false);
    rig.pass(1);
    await eventually("the next slice", hasStarted);
  });

  test("the next slice starts as soon as no check waits", async (t) => {
    const rig = rigOf(t);
    const hasStarted = await claimAfter(rig, 5);
    assert.equal(hasStarted(), false);
    rig.load.isWaiting = false;
    await eventually("the next slice", hasStarted);
  });

  test("a slice is over after a millisecond, and without checks the next one starts at once", async (t) => {
    const { turns, pass } = rigOf(t);
    const turn = await turns.start();
    assert.equal(turn.isOver, false);
    pass(1);
    assert.equal(turn.isOver, true);
    turn.end();
    const hasStarted = claim(turns);
    await settle();
    assert.equal(hasStarted(), true);
  });
});

test("a processor stays free of explanations", async () => {
  const running = async (processors: number): Promise<number> => {
    const reads = new ReadAdmission(() => false, processors);
    let count = 0;
    for (let n = 0; n < 10; n += 1)
      void reads.enter("explanation", { tenant: `t${n}`, id: "k" }, new AbortController()).then(() => (count += 1));
    await settle();
    return count;
  };
  assert.deepEqual(await Promise.all([1, 2, 3, 4, 64].map(running)), [1, 1, 2, 3, 4]);
});
