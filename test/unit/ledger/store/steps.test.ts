/**
 * Goal: work in steps gives the result of the work, and does nothing between two steps. Method: work that pauses, on a clock
 * that stands still. Work without time between its pauses takes one step.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { inSteps, Steps, type Pause } from "../../../../packages/gate/src/ledger/store/steps.ts";
import { standingClock } from "../../../support/standing-clock.ts";

suite("work in steps", () => {
  test("pauses when a step has worked for five milliseconds, and does nothing until the next", async (t) => {
    const { pass } = standingClock(t);
    const log: string[] = [];
    const steps = new Steps(async (pause) => {
      for (const name of ["a", "b", "c"]) {
        log.push(name);
        pass(5);
        await pause();
      }
      return "done";
    });
    assert.deepEqual(log, [], "it starts with the first step");
    for (const expected of ["a", "b", "c"]) {
      assert.equal(await steps.next(), undefined);
      for (let n = 0; n < 10; n += 1) await setImmediate();
      assert.equal(log.at(-1), expected);
    }
    assert.deepEqual(await steps.next(), { result: "done" });
  });

  test("does not pause if it is quick", async (t) => {
    standingClock(t);
    const steps = new Steps(async (pause) => {
      for (let n = 0; n < 100; n += 1) await pause();
      return 100;
    });
    assert.deepEqual(await steps.next(), { result: 100 });
  });

  test("rejects with the error of the work, at once and after a pause", async (t) => {
    const { pass } = standingClock(t);
    const failing = (after: number) => async (pause: Pause) => {
      for (let n = 0; n < after; n += 1) {
        pass(5);
        await pause();
      }
      throw new Error("the disk failed");
    };
    for (const after of [0, 1, 3]) {
      const steps = new Steps<string>(failing(after));
      await assert.rejects(
        inSteps(() => steps.next()),
        /the disk failed/,
      );
    }
  });

  test("takes each step in a turn", async (t) => {
    const { pass } = standingClock(t);
    const steps = new Steps(async (pause) => {
      for (let n = 0; n < 3; n += 1) {
        pass(5);
        await pause();
      }
      return "done";
    });
    let turns = 0;
    const result = await inSteps(
      () => steps.next(),
      (slice) => {
        turns += 1;
        return slice();
      },
    );
    assert.deepEqual([result, turns], ["done", 4]);
  });
});
