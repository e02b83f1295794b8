/**
 * Goal: the waiting line loses no call, keeps each key's order, takes one call of each key in turn, refuses who holds more
 * than a share before who holds less, and is bounded in calls, bytes and time. Method: random pushes and takes beside a
 * naive model; examples for each bound, with a clock that is set by hand; a line that drops and one that is unfair, on purpose.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Budget, Line } from "../../../../packages/svc-gate/src/gate/admission/line.ts";
import { limits } from "../../../../packages/svc-gate/src/wire/mod.ts";

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

type Lines = Pick<Line<Call>, "push" | "take">;

const steps = fc.array(
  fc.oneof(
    fc.record({ push: fc.constantFrom("a", "b", "c", "d") }),
    fc.record({ take: fc.integer({ min: 1, max: 9 }), fitting: fc.integer({ min: 0, max: 9 }) }),
  ),
  { maxLength: 300 },
);

/** What came out over what went in, and whether a batch took one call of each key before a second of any. */
function play(line: Lines, played: readonly object[]): { readonly lost: number; readonly isFair: boolean } {
  const waiting = new Map<string, number[]>();
  let isFair = true;
  let lost = 0;
  const take = (max: number, fitting: number): readonly Call[] => {
    let seen = 0;
    const { calls } = line.take(max, () => (seen += 1) <= fitting);
    for (const { caller, id } of calls) if (waiting.get(caller.keyName)?.shift() !== id) lost += 1;
    return calls;
  };
  for (const step of played as readonly { push?: string; take?: number; fitting?: number }[]) {
    if (step.push !== undefined) {
      const call = callOf(step.push);
      line.push(call);
      waiting.set(step.push, [...(waiting.get(step.push) ?? []), call.id]);
      continue;
    }
    const before = new Map([...waiting].map(([name, ids]) => [name, ids.length]));
    const calls = take(step.take ?? 1, step.fitting ?? 0);
    isFair &&= isEven(before, calls);
  }
  take(Infinity, Infinity);
  for (const ids of waiting.values()) lost += ids.length;
  return { lost, isFair };
}

/** Did no key get two calls more than another one that had calls waiting still? */
function isEven(before: ReadonlyMap<string, number>, calls: readonly Call[]): boolean {
  const taken = (name: string): number => calls.filter(({ caller }) => caller.keyName === name).length;
  const most = Math.max(0, ...[...before.keys()].map(taken));
  return [...before].every(([name, waited]) => taken(name) >= Math.min(waited, most - 1));
}

test("the line loses no call, keeps the order of each key, and serves every key in turn", () => {
  fc.assert(
    fc.property(steps, (played) => {
      const { lost, isFair } = play(new Line<Call>(new Budget()), played);
      assert.equal(lost, 0);
      assert.ok(isFair);
    }),
    { numRuns: 300 },
  );
});

test("positive control: a line that drops calls and a line that is unfair are noticed", () => {
  const dropping = (line: Line<Call>): Lines => ({
    push: (call) => (call.id % 50 === 0 ? undefined : line.push(call)),
    take: (max, fits) => line.take(max, fits),
  });
  const asTheyCome = (): Lines => {
    const calls: Call[] = [];
    return {
      push: (call) => void calls.push(call),
      take: (max) => ({ calls: calls.splice(0, max), oldestAt: 0, wasIdle: false }),
    };
  };
  const played = "aaaaaaaabbbb"
    .repeat(9)
    .split("")
    .map((push) => ({ push }));
  const steps9 = [...played, { take: 6, fitting: 6 }, ...played];
  assert.ok(play(dropping(new Line<Call>(new Budget())), steps9).lost > 0);
  assert.equal(play(asTheyCome(), steps9).isFair, false);
});

test("a batch ends before the first call that does not fit, and the next batch starts with it", () => {
  const line = new Line<Call>(new Budget());
  for (const name of "aab") line.push(callOf(name));
  assert.deepEqual(names(line, 3, 2), "ab");
  assert.deepEqual(names(line, 3, 0), "");
  assert.deepEqual(names(line, 3, 3), "a");
  assert.equal(line.waiting, 0);
});

function names(line: Line<Call>, max: number, fitting: number): string {
  let seen = 0;
  return line
    .take(max, () => (seen += 1) <= fitting)
    .calls.map(({ caller }) => caller.keyName)
    .join("");
}

/** Lets calls of a key in until there is no room, and says how many came in. */
function fill(line: Line<Call>, keyName: string, bytes = 0): number {
  let calls = 0;
  for (; calls < 100_000 && line.hasRoom(keyName, bytes); calls += 1) line.push(callOf(keyName, bytes));
  return calls;
}

test("one key may fill the line until another key asks for its share", () => {
  const line = new Line<Call>(new Budget());
  assert.equal(fill(line, "greedy"), limits.queueCallsMax);
  line.take(limits.batchCallsMax);
  const modest = fill(line, "modest");
  assert.ok(modest > 0 && modest <= limits.queueCallsMax / 2, `${modest} calls`);
  assert.equal(line.hasRoom("greedy", 0), false);
});

test("a key that holds more than its share is refused while a quarter is free for others", () => {
  const line = new Line<Call>(new Budget());
  line.push(callOf("modest"));
  assert.equal(fill(line, "greedy"), limits.queueCallsMax * 0.75 - 1);
  assert.equal(fill(line, "modest"), limits.queueCallsMax * 0.25);
});

test("all lines of a process share one budget of bytes, and no line excludes the others", () => {
  const budget = new Budget(1000);
  const [one, other] = [new Line<Call>(budget), new Line<Call>(budget)];
  assert.equal(fill(one, "a", 100), 10);
  assert.equal(other.hasRoom("b", 1), false, "the budget is what may be held in all");
  const batch = one.take(5);
  assert.equal(other.hasRoom("b", 1), false, "what is being decided is held still");
  one.settled(batch);
  assert.equal(fill(other, "b", 100), 5);
  assert.equal(one.hasRoom("a", 1), false);
  one.abandon();
  assert.equal(budget.held, 500);
  other.settled(other.take(5));
  assert.deepEqual([budget.held, budget.holders, other.bytes], [0, 0, 0]);
});

test("a key with large bodies leaves room in the line for a key with small bodies", () => {
  const line = new Line<Call>(new Budget(1000));
  line.push(callOf("small", 10));
  assert.equal(fill(line, "large", 100), 8);
  assert.ok(line.hasRoom("small", 10));
});

/** Decides batches of so many calls, each in so long, with no pause between them; says how many may be undecided then. */
function underLoad(
  msPerCall: number,
  calls: number,
  forMs: number,
): { readonly line: Line<Call>; readonly room: number } {
  let now = 0;
  const line = new Line<Call>(new Budget(), () => now);
  for (let n = 0; n < calls; n += 1) line.push(callOf("a"));
  while (now < forMs) {
    const batch = line.take(calls);
    for (let n = 0; n < calls; n += 1) line.push(callOf("a"));
    now += batch.calls.length * msPerCall;
    line.settled(batch);
  }
  return { line, room: calls + fill(line, "a") };
}

test("a burst may fill a long line, but under constant load the line is short", () => {
  const about = (room: number, calls: number): void => assert.ok(Math.abs(room - calls) <= 1, `${room}, not ${calls}`);
  about(underLoad(0.1, 10, 5).room, limits.lineBurstMs / 0.1);
  about(underLoad(0.05, 10, 2000).room, limits.lineStandingMs / 0.05);
  assert.equal(underLoad(10, 10, 2000).room, limits.lineCallsMin, "so few always find room");
  const { line } = underLoad(0.05, 10, 2000);
  assert.ok(line.hasRoom("other", 0), "another key finds room whoever filled the line");
  assert.ok(!line.hasRoom("a", 0));
});

test("the line is longer if flushes are slow, because batches must then be large", () => {
  const flushing = (flushMs: number): number => {
    let now = 0;
    const line = new Line<Call>(new Budget(), () => now);
    const decide = (calls: number): void => {
      const batch = line.take(calls);
      now += flushMs + calls * 0.05;
      line.settled(batch);
    };
    for (let n = 0; n < 200; n += 1) {
      line.push(callOf("a"));
      decide(1);
      now += 5 * flushMs;
    }
    for (let n = 0; n < 400; n += 1) {
      while (line.waiting < 100) line.push(callOf("a"));
      decide(50);
    }
    return line.waiting + fill(line, "a");
  };
  const perCallMs = 20 / 50 + 0.05;
  assert.ok(flushing(20) > (4 * limits.lineStandingMs) / perCallMs, "a batch of its own would not fit otherwise");
});

test("a key that asked for little may send a burst while another key fills the line", () => {
  let now = 0;
  const line = new Line<Call>(new Budget(), () => now);
  const turn = (small: number): void => {
    for (let n = 0; n < small; n += 1) if (line.hasRoom("small", 0)) line.push(callOf("small"));
    fill(line, "large");
    const batch = line.take(40);
    now += 4;
    line.settled(batch);
  };
  for (let n = 0; n < 500; n += 1) turn(6);
  const room = fill(line, "small");
  assert.ok(room > 500, `${room}`);
  for (let n = 0; n < 500; n += 1) turn(1000);
  assert.ok(fill(line, "small") < 100);
});
