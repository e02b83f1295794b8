/**
 * Goal: a read gives its place and its turns back, however it ends. Method: reads on places of one, with sources and clients
 * that the test drives. After each, another read must find a place.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { ReadAdmission, type SlicedRead } from "../../../../packages/gate/src/server/admission/reads.ts";
import { control } from "../../../support/controls/control.ts";
import { eventually } from "../../../support/patience.ts";
import { standingClock } from "../../../support/standing-clock.ts";

const key = { tenant: null, id: "k" };

async function enter(reads: ReadAdmission, gone = new AbortController()): Promise<SlicedRead> {
  const entered = await reads.enter("long", key, gone);
  return entered.ok ? entered.value : assert.fail(entered.problem.detail);
}

/** Enters again. Returns true if there was a place and a turn. */
async function isFree(reads: ReadAdmission): Promise<boolean> {
  let isDone = false;
  const gone = new AbortController();
  void reads.enter("long", key, gone).then(async (entered) => {
    if (!entered.ok || gone.signal.aborted) return;
    await entered.value.run(() => (isDone = true));
    entered.value.leave();
  });
  for (let n = 0; n < 20; n += 1) await setImmediate();
  gone.abort();
  return isDone;
}

async function* numbers(): AsyncGenerator<number> {
  for (let n = 0; n < 3; n += 1) yield n;
}

suite("a read", () => {
  test("that works in a turn keeps its place until it leaves", async () => {
    const reads = new ReadAdmission(() => false, 1);
    const read = await enter(reads);
    assert.equal(await read.run(() => 7), 7);
    assert.equal(await isFree(reads), false, "positive control");
    read.end();
    assert.equal(await isFree(reads), true);
  });

  test("whose work fails gives its turn back", async () => {
    const reads = new ReadAdmission(() => false, 1);
    const read = await enter(reads);
    await assert.rejects(
      read.run(() => Promise.reject(new Error("no"))),
      /no/,
    );
    read.end();
    assert.equal(await isFree(reads), true);
  });

  test("that is streamed keeps its place until the last item, also after `end`", async () => {
    const reads = new ReadAdmission(() => false, 1);
    const read = await enter(reads);
    const items = read.through(numbers());
    read.end();
    assert.deepEqual(await items.next(), { done: false, value: 0 });
    assert.equal(await isFree(reads), false);
    const rest: number[] = [];
    for await (const item of items) rest.push(item);
    assert.deepEqual(rest, [1, 2]);
    assert.equal(await isFree(reads), true);
  });

  for (const [when, leaves] of [
    ["before its stream is read", async () => undefined],
    ["after the first item", async (items: AsyncGenerator<number>) => void (await items.next())],
  ] as const)
    test(`whose client leaves ${when} gives its place back`, async () => {
      const reads = new ReadAdmission(() => false, 1);
      const gone = new AbortController();
      const read = await enter(reads, gone);
      const items = read.through(numbers());
      read.end();
      await leaves(items);
      gone.abort();
      assert.equal(await isFree(reads), true);
      assert.deepEqual(await items.next(), { done: true, value: undefined }, "and reads no more");
    });

  test("whose client has left while it waited has no place", async () => {
    const reads = new ReadAdmission(() => false, 1);
    const first = await enter(reads);
    const gone = new AbortController();
    const second = enter(reads, gone);
    gone.abort();
    assert.equal((await second).signal.aborted, true);
    first.leave();
    assert.equal(await isFree(reads), true);
  });

  test("whose client takes nothing for a second gives its place back, and goes on later", async () => {
    const reads = new ReadAdmission(() => false, 1);
    const read = await enter(reads);
    const items = read.through(numbers());
    await items.next();
    await eventually("the place is free", () => isFree(reads));
    const other = await enter(reads);
    let isRead = false;
    void items.next().then(() => (isRead = true));
    for (let n = 0; n < 20; n += 1) await setImmediate();
    assert.equal(isRead, false, "another read has its place");
    other.leave();
    await eventually("it goes on", () => isRead);
  });

  test("of more than a millisecond lets others go on, and ends if its client has left", async (t) => {
    const { pass } = standingClock(t);
    const reads = new ReadAdmission(() => false, 1);
    const gone = new AbortController();
    const read = await enter(reads, gone);
    const log: string[] = [];
    const long = read.run(async () => {
      for (let n = 0; n < 3; n += 1) {
        pass(1);
        log.push("long");
        if (n === 1) gone.abort();
        await read.next();
      }
    });
    const other = reads.turns.run(() => log.push("other"));
    await assert.rejects(long, { name: "AbortError" });
    await other;
    assert.deepEqual(log, ["long", "other", "long"]);
    assert.equal(await isFree(reads), false, "its handler has not ended");
    read.end();
    assert.equal(await isFree(reads), true);
  });
});

control("positive control: a read that nobody ends is noticed", async () => {
  const reads = new ReadAdmission(() => false, 1);
  void (await enter(reads)).through(numbers());
  assert.equal(await isFree(reads), false);
});
