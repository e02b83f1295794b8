/**
 * Goal: the admission queue loses no call, keeps each key's order and takes one call of each key in turn. It refuses
 * keys above their share first, and it is bounded in calls, bytes and time. Method: random pushes and takes are
 * compared with a naive model; examples for each bound, with a clock that the test sets. Controls: a queue that drops
 * calls and one that is unfair.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Budget, AdmissionQueue } from "../../../../packages/svc-gate/src/gate/admission/queue.ts";
import { limits } from "../../../../packages/svc-gate/src/wire/mod.ts";
import { control } from "../../../support/controls/control.ts";
import { randomRuns } from "../../../support/random-test.ts";

interface Call {
  readonly caller: { readonly keyName: string };
  readonly bytes: number;
  readonly id: number;
}

let made = 0;

function callOf(keyName: string, bytes = 0): Call {
  made += 1;
  return { caller: { keyName }, bytes, id: made };
}

type Queue = Pick<AdmissionQueue<Call>, "enqueue" | "takeBatch">;

const steps = fc.array(
  fc.oneof(
    fc.record({ enqueue: fc.constantFrom("a", "b", "c", "d") }),
    fc.record({ takeBatch: fc.integer({ min: 1, max: 9 }), fitting: fc.integer({ min: 0, max: 9 }) }),
  ),
  { maxLength: 300 },
);

/**
 * Returns the calls taken, compared with those added, and whether a batch took one call of each key before a second.
 */
function play(queue: Queue, played: readonly object[]): { readonly lost: number; readonly isFair: boolean } {
  const waiting = new Map<string, number[]>();
  let isFair = true;
  let lost = 0;
  const takeBatch = (max: number, fitting: number): readonly Call[] => {
    let seen = 0;
    const { calls } = queue.takeBatch(max, () => (seen += 1) <= fitting);
    for (const { caller, id } of calls) if (waiting.get(caller.keyName)?.shift() !== id) lost += 1;
    return calls;
  };
  for (const step of played as readonly { enqueue?: string; takeBatch?: number; fitting?: number }[]) {
    if (step.enqueue !== undefined) {
      const call = callOf(step.enqueue);
      queue.enqueue(call);
      waiting.set(step.enqueue, [...(waiting.get(step.enqueue) ?? []), call.id]);
      continue;
    }
    const before = new Map([...waiting].map(([name, ids]) => [name, ids.length]));
    const calls = takeBatch(step.takeBatch ?? 1, step.fitting ?? 0);
    isFair &&= isEven(before, calls);
  }
  takeBatch(Infinity, Infinity);
  for (const ids of waiting.values()) lost += ids.length;
  return { lost, isFair };
}

/** Returns true if no key got two calls more than another key that still had waiting calls. */
function isEven(before: ReadonlyMap<string, number>, calls: readonly Call[]): boolean {
  const taken = (name: string): number => calls.filter(({ caller }) => caller.keyName === name).length;
  const most = Math.max(0, ...[...before.keys()].map(taken));
  return [...before].every(([name, waited]) => taken(name) >= Math.min(waited, most - 1));
}

test("the queue loses no call, keeps the order of each key, and serves every key in turn", (t) => {
  fc.assert(
    fc.property(steps, (played) => {
      const { lost, isFair } = play(new AdmissionQueue<Call>(new Budget()), played);
      assert.equal(lost, 0);
      assert.ok(isFair);
    }),
    randomRuns(t, 300),
  );
});

control("positive control: a queue that drops calls and a queue that is unfair are noticed", () => {
  const dropping = (queue: AdmissionQueue<Call>): Queue => ({
    enqueue: (call) => (call.id % 50 === 0 ? undefined : queue.enqueue(call)),
    takeBatch: (max, fits) => queue.takeBatch(max, fits),
  });
  const asTheyCome = (): Queue => {
    const calls: Call[] = [];
    return {
      enqueue: (call) => void calls.push(call),
      takeBatch: (max) => ({ calls: calls.splice(0, max), oldestAt: 0, wasIdle: false }),
    };
  };
  const played = "aaaaaaaabbbb"
    .repeat(9)
    .split("")
    .map((enqueue) => ({ enqueue }));
  const steps9 = [...played, { takeBatch: 6, fitting: 6 }, ...played];
  assert.ok(play(dropping(new AdmissionQueue<Call>(new Budget())), steps9).lost > 0);
  assert.equal(play(asTheyCome(), steps9).isFair, false);
});

test("a batch ends before the first call that does not fit, and the next batch starts with it", () => {
  const queue = new AdmissionQueue<Call>(new Budget());
  for (const name of "aab") queue.enqueue(callOf(name));
  assert.deepEqual(names(queue, 3, 2), "ab");
  assert.deepEqual(names(queue, 3, 0), "");
  assert.deepEqual(names(queue, 3, 3), "a");
  assert.equal(queue.waiting, 0);
});

function names(queue: AdmissionQueue<Call>, max: number, fitting: number): string {
  let seen = 0;
  return queue
    .takeBatch(max, () => (seen += 1) <= fitting)
    .calls.map(({ caller }) => caller.keyName)
    .join("");
}

/** Adds calls of a key until the queue is full; returns how many it took. */
function fill(queue: AdmissionQueue<Call>, keyName: string, bytes = 0): number {
  let calls = 0;
  for (; calls < 100_000 && queue.hasRoom(keyName, bytes); calls += 1) queue.enqueue(callOf(keyName, bytes));
  return calls;
}

test("one key may fill the queue until another key asks for its share", () => {
  const queue = new AdmissionQueue<Call>(new Budget());
  assert.equal(fill(queue, "greedy"), limits.queueCallsMax);
  queue.takeBatch(limits.batchCallsMax);
  const modest = fill(queue, "modest");
  assert.ok(modest > 0 && modest <= limits.queueCallsMax / 2, `${modest} calls`);
  assert.equal(queue.hasRoom("greedy", 0), false);
});

test("a key that holds more than its share is refused while a quarter is free for others", () => {
  const queue = new AdmissionQueue<Call>(new Budget());
  queue.enqueue(callOf("modest"));
  assert.equal(fill(queue, "greedy"), limits.queueCallsMax * 0.75 - 1);
  assert.equal(fill(queue, "modest"), limits.queueCallsMax * 0.25);
});

test("all lines of a process share one budget of bytes, and no queue excludes the others", () => {
  const budget = new Budget(1000);
  const [one, other] = [new AdmissionQueue<Call>(budget), new AdmissionQueue<Call>(budget)];
  assert.equal(fill(one, "a", 100), 10);
  assert.equal(other.hasRoom("b", 1), false, "the budget is what may be held in all");
  const batch = one.takeBatch(5);
  assert.equal(other.hasRoom("b", 1), false, "what is being decided is held still");
  one.release(batch);
  assert.equal(fill(other, "b", 100), 5);
  assert.equal(one.hasRoom("a", 1), false);
  one.abandon();
  assert.equal(budget.held, 500);
  other.release(other.takeBatch(5));
  assert.deepEqual([budget.held, budget.holders, other.bytes], [0, 0, 0]);
});

test("a key with large bodies leaves room in the queue for a key with small bodies", () => {
  const queue = new AdmissionQueue<Call>(new Budget(1000));
  queue.enqueue(callOf("small", 10));
  assert.equal(fill(queue, "large", 100), 8);
  assert.ok(queue.hasRoom("small", 10));
});

/** Decides batches of a size, each in a given time, without pauses; returns how many calls may then be undecided. */
function underLoad(
  msPerCall: number,
  calls: number,
  forMs: number,
): { readonly queue: AdmissionQueue<Call>; readonly room: number } {
  let now = 0;
  const queue = new AdmissionQueue<Call>(new Budget(), () => now);
  for (let n = 0; n < calls; n += 1) queue.enqueue(callOf("a"));
  while (now < forMs) {
    const batch = queue.takeBatch(calls);
    for (let n = 0; n < calls; n += 1) queue.enqueue(callOf("a"));
    now += batch.calls.length * msPerCall;
    queue.release(batch);
  }
  return { queue, room: calls + fill(queue, "a") };
}

test("a burst may fill a long queue, but under constant load the queue is short", () => {
  const about = (room: number, calls: number): void => assert.ok(Math.abs(room - calls) <= 1, `${room}, not ${calls}`);
  about(underLoad(0.1, 10, 5).room, limits.lineBurstMs / 0.1);
  about(underLoad(0.05, 10, 2000).room, limits.lineStandingMs / 0.05);
  assert.equal(underLoad(10, 10, 2000).room, limits.lineCallsMin, "so few always find room");
  const { queue } = underLoad(0.05, 10, 2000);
  assert.ok(queue.hasRoom("other", 0), "another key finds room whoever filled the queue");
  assert.ok(!queue.hasRoom("a", 0));
});

test("the queue is longer if flushes are slow, because batches must then be large", () => {
  const flushing = (flushMs: number): number => {
    let now = 0;
    const queue = new AdmissionQueue<Call>(new Budget(), () => now);
    const decide = (calls: number): void => {
      const batch = queue.takeBatch(calls);
      now += flushMs + calls * 0.05;
      queue.release(batch);
    };
    for (let n = 0; n < 200; n += 1) {
      queue.enqueue(callOf("a"));
      decide(1);
      now += 5 * flushMs;
    }
    for (let n = 0; n < 400; n += 1) {
      while (queue.waiting < 100) queue.enqueue(callOf("a"));
      decide(50);
    }
    return queue.waiting + fill(queue, "a");
  };
  const perCallMs = 20 / 50 + 0.05;
  assert.ok(flushing(20) > (4 * limits.lineStandingMs) / perCallMs, "a batch of its own would not fit otherwise");
});

test("a key that asked for little may send a burst while another key fills the queue", () => {
  let now = 0;
  const queue = new AdmissionQueue<Call>(new Budget(), () => now);
  const transaction = (small: number): void => {
    for (let n = 0; n < small; n += 1) if (queue.hasRoom("small", 0)) queue.enqueue(callOf("small"));
    fill(queue, "large");
    const batch = queue.takeBatch(40);
    now += 4;
    queue.release(batch);
  };
  for (let n = 0; n < 500; n += 1) transaction(6);
  const room = fill(queue, "small");
  assert.ok(room > 500, `${room}`);
  for (let n = 0; n < 500; n += 1) transaction(1000);
  assert.ok(fill(queue, "small") < 100);
});
