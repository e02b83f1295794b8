/**
 * Goal: the admission queue loses no call, keeps each key's order and takes one call of each key in turn. It refuses
 * keys above their share first, and it is bounded in calls, bytes and time. Clients that wait for each answer are not
 * refused, however many they are, unless the store is so slow that a call would wait too long. Method: random pushes and
 * takes are compared with a naive model; connections of clients that wait are simulated, with a clock that the test sets;
 * examples for each bound. Controls: a queue that drops calls, one that is unfair, and connections that ignore a pause.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { QueueBudget, AdmissionQueue, resumeMs } from "../../../../packages/gate/src/server/admission/queue.ts";
import { limits } from "../../../../packages/core/src/wire/mod.ts";
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
    fc.record({ fitting: fc.integer({ min: 0, max: 9 }) }),
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
  const takeBatch = (fitting: number): readonly Call[] => {
    let seen = 0;
    const calls = queue.takeBatch(() => (seen += 1) <= fitting);
    for (const { caller, id } of calls) if (waiting.get(caller.keyName)?.shift() !== id) lost += 1;
    return calls;
  };
  for (const step of played as readonly { enqueue?: string; fitting?: number }[]) {
    if (step.enqueue !== undefined) {
      const call = callOf(step.enqueue);
      queue.enqueue(call);
      waiting.set(step.enqueue, [...(waiting.get(step.enqueue) ?? []), call.id]);
      continue;
    }
    const before = new Map([...waiting].map(([name, ids]) => [name, ids.length]));
    const calls = takeBatch(step.fitting ?? 0);
    isFair &&= isEven(before, calls);
  }
  while (takeBatch(Infinity).length > 0);
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
      const { lost, isFair } = play(new AdmissionQueue<Call>(new QueueBudget()), played);
      assert.equal(lost, 0);
      assert.ok(isFair);
    }),
    randomRuns(t, 300),
  );
});

control("positive control: a queue that drops calls and a queue that is unfair are noticed", () => {
  const dropping = (queue: AdmissionQueue<Call>): Queue => ({
    enqueue: (call) => (call.id % 50 === 0 ? undefined : queue.enqueue(call)),
    takeBatch: (fits) => queue.takeBatch(fits),
  });
  const asTheyCome = (): Queue => {
    const calls: Call[] = [];
    return {
      enqueue: (call) => void calls.push(call),
      takeBatch: (fits) => calls.splice(0, calls.findIndex((call) => fits?.(call) === false) >>> 0),
    };
  };
  const played = "aaaaaaaabbbb"
    .repeat(9)
    .split("")
    .map((enqueue) => ({ enqueue }));
  const steps9 = [...played, { fitting: 6 }, ...played];
  assert.ok(play(dropping(new AdmissionQueue<Call>(new QueueBudget())), steps9).lost > 0);
  assert.equal(play(asTheyCome(), steps9).isFair, false);
});

test("a batch ends before the first call that does not fit, and the next batch starts with it", () => {
  const queue = new AdmissionQueue<Call>(new QueueBudget());
  for (const name of "aab") queue.enqueue(callOf(name));
  assert.deepEqual(names(queue, 2), "ab");
  assert.deepEqual(names(queue, 0), "");
  assert.deepEqual(names(queue, 3), "a");
  assert.equal(queue.waiting, 0);
});

function names(queue: AdmissionQueue<Call>, fitting: number): string {
  let seen = 0;
  return queue
    .takeBatch(() => (seen += 1) <= fitting)
    .map(({ caller }) => caller.keyName)
    .join("");
}

/** Adds calls of a key until the queue is full; returns how many it took. */
function fill(queue: AdmissionQueue<Call>, keyName: string, bytes = 0): number {
  let calls = 0;
  for (; calls < 100_000 && queue.hasRoom(keyName, bytes); calls += 1) queue.enqueue(callOf(keyName, bytes));
  return calls;
}

test("one key may fill the queue until another key asks for its share", () => {
  const queue = new AdmissionQueue<Call>(new QueueBudget());
  assert.equal(fill(queue, "greedy"), limits.queueCallsMax);
  queue.takeBatch();
  const modest = fill(queue, "modest");
  assert.ok(modest > 0 && modest <= limits.queueCallsMax / 2, `${modest} calls`);
  assert.equal(queue.hasRoom("greedy", 0), false);
});

test("a key that has more than its share is refused while a quarter is free for others", () => {
  const queue = new AdmissionQueue<Call>(new QueueBudget());
  queue.enqueue(callOf("modest"));
  assert.equal(fill(queue, "greedy"), limits.queueCallsMax * 0.75 - 1);
  assert.equal(fill(queue, "modest"), limits.queueCallsMax * 0.25);
});

test("all lines of a process share one budget of bytes, and no queue excludes the others", () => {
  const budget = new QueueBudget({ max: 1000 });
  const [one, other] = [new AdmissionQueue<Call>(budget), new AdmissionQueue<Call>(budget)];
  assert.equal(fill(one, "a", 100), 10);
  assert.equal(other.hasRoom("b", 1), false, "the budget is what may be held in all");
  let seen = 0;
  const batch = one.takeBatch(() => (seen += 1) <= 5);
  assert.equal(other.hasRoom("b", 1), false, "what is being decided is held still");
  one.release(batch);
  assert.equal(fill(other, "b", 100), 5);
  assert.equal(one.hasRoom("a", 1), false);
  one.abandon();
  assert.equal(budget.bytesUsed, 500);
  other.release(other.takeBatch());
  assert.deepEqual([budget.bytesUsed, budget.queues, other.bytes], [0, 0, 0]);
});

test("a key with large bodies leaves room in the queue for a key with small bodies", () => {
  const queue = new AdmissionQueue<Call>(new QueueBudget({ max: 1000 }));
  queue.enqueue(callOf("small", 10));
  assert.equal(fill(queue, "large", 100), 8);
  assert.ok(queue.hasRoom("small", 10));
});

/** Connections whose clients send the next call after each answer. A refusal costs them half a second. */
interface Clients {
  readonly key: string;
  readonly count: number;
  /** Makes a new connection for each call. */
  readonly isFresh?: boolean;
}

interface Store {
  readonly flushMs: number;
  readonly callMs: number;
  readonly forMs: number;
  /** Calls that fit in one batch, if they are less than the queue's own limit. */
  readonly batchMax?: number;
}

interface Outcome {
  answered: number;
  refused: number;
  /** Of the answered calls, after the first two seconds: the queue does not know the store before. */
  longestMs: number;
  /** Of one connection. */
  fewest: number;
}

interface Connection {
  readonly of: Clients;
  readonly outcome: Outcome;
  sentAt: number;
  answered: number;
}

interface Simulated {
  readonly outcomes: readonly Outcome[];
  /** The most calls that were undecided at once, after the first second. */
  readonly undecided: number;
}

/** Simulates the loop of a gate: half of a batch's time passes, the gate reads what has come, and the other half passes. */
function simulate(
  clients: readonly Clients[],
  { flushMs, callMs, forMs, batchMax = Infinity }: Store,
  obeys = true,
): Simulated {
  let now = 0;
  let most = 0;
  let undecided = 0;
  const queue = new AdmissionQueue<Call & { readonly connection: Connection }>(new QueueBudget(), () => now);
  const all = clients.map((of) => {
    const outcome: Outcome = { answered: 0, refused: 0, longestMs: 0, fewest: Infinity };
    return Array.from({ length: of.count }, (): Connection => {
      return { of, outcome, sentAt: 0, answered: 0 };
    });
  });
  const inNetwork = new Set(all.flat());
  const read = (): void => {
    for (const connection of inNetwork) {
      const { of, outcome, sentAt } = connection;
      if (sentAt > now) continue;
      if (queue.hasRoom(of.key, 0)) {
        inNetwork.delete(connection);
        queue.enqueue({ ...callOf(of.key), connection });
        undecided += 1;
      } else {
        outcome.refused += 1;
        connection.sentAt = now + 500;
      }
    }
    if (now > 1000) most = Math.max(most, undecided);
  };
  read();
  while (now < forMs) {
    queue.start();
    let seen = 0;
    const calls = queue.takeBatch(() => (seen += 1) <= batchMax);
    const spentMs = flushMs + calls.length * callMs;
    now += spentMs / 2;
    read();
    now += spentMs / 2;
    queue.release(calls, { decideMs: (calls.length * callMs) / 4, storeMs: flushMs });
    undecided -= calls.length;
    for (const { connection } of calls) {
      const { of, outcome } = connection;
      outcome.answered += 1;
      if (connection.sentAt > 2000) outcome.longestMs = Math.max(outcome.longestMs, now - connection.sentAt);
      connection.answered += 1;
      connection.sentAt = now;
      const resume = (): void => void inNetwork.add(connection);
      const isPaused = of.isFresh !== true && queue.pause(of.key, resume);
      if (!isPaused || !obeys) inNetwork.add(connection);
    }
  }
  for (const connections of all)
    for (const { answered, outcome } of connections) outcome.fewest = Math.min(outcome.fewest, answered);
  queue.endPauses();
  return { outcomes: all.flatMap((of) => of[0]?.outcome ?? []), undecided: most };
}

const quick = { flushMs: 1, callMs: 0.1, forMs: 4000 };
const slower = { flushMs: 50, callMs: 0.1, forMs: 10_000 };
const slow = { flushMs: 400, callMs: 0.1, forMs: 20_000 };

for (const count of [1, 64, 256, 1024, 4096])
  test(`${count} connections that wait for each answer are not refused, and each gets answers`, () => {
    const { outcomes, undecided } = simulate([{ key: "a", count }], quick);
    const [{ refused, fewest } = { refused: 1, fewest: 0 }] = outcomes;
    assert.equal(refused, 0);
    assert.ok(fewest >= Math.floor(quick.forMs / (count * quick.callMs + 60)), `one got ${fewest}`);
    assert.ok(undecided <= 5 * limits.quickBatchCallsMax, `${undecided} calls are undecided at once`);
  });

control("positive control: connections that are read in spite of a pause fill the memory", () => {
  assert.ok(simulate([{ key: "a", count: 1024 }], quick, false).undecided > 5 * limits.quickBatchCallsMax);
});

test("a slow store gets refusals only from a wait of one second on, and its batches are full", () => {
  for (const count of [64, 256, 512]) {
    const { outcomes } = simulate([{ key: "a", count }], slow);
    assert.equal(outcomes[0]?.refused, 0, `of ${count}`);
  }
  assert.equal(simulate([{ key: "a", count: 1500 }], slower).outcomes[0]?.refused, 0);
  const { outcomes } = simulate([{ key: "a", count: 4096 }], slow);
  const [{ refused, answered, longestMs } = { refused: 0, answered: 0, longestMs: Infinity }] = outcomes;
  assert.ok(refused > 0, "4,096 calls would wait 3 s");
  assert.ok(longestMs <= 1000 + 2 * (slow.flushMs + 60), `one waited ${longestMs} ms`);
  const full = (slow.forMs / (slow.flushMs + limits.batchCallsMax * slow.callMs)) * limits.batchCallsMax;
  assert.ok(answered > 0.9 * full, `${answered} answers of ${full}`);
});

for (const isFresh of [false, true])
  test(`a key with few calls is answered beside one with many${isFresh ? ", on a new connection each" : ""}`, () => {
    const few = { key: "few", count: 16 };
    for (const store of [quick, slow]) {
      const [modest] = simulate([few, { key: "many", count: 2048, isFresh }], store).outcomes;
      assert.equal(modest?.refused, 0);
      assert.ok((modest?.longestMs ?? Infinity) <= 3 * (store.flushMs + 60), `it waited ${modest?.longestMs} ms`);
    }
  });

test("a store whose batches are cut short gets refusals from a wait of one second on too", () => {
  const cut = { ...slow, flushMs: 100, batchMax: 60 };
  const [few] = simulate([{ key: "a", count: 400 }], cut).outcomes;
  assert.equal(few?.refused, 0);
  const [many] = simulate([{ key: "a", count: 1400 }], cut).outcomes;
  assert.ok((many?.refused ?? 0) > 0);
  assert.ok((many?.longestMs ?? Infinity) <= 1000 + 2 * 110, `one waited ${many?.longestMs} ms`);
});

test("a key with many kept connections that shares its gate with nine others is not admitted for seconds", () => {
  const others = "bcdefghij".split("").map((key) => ({ key, count: 50 }));
  const [heavy, ...light] = simulate([{ key: "a", count: 4000 }, ...others], { ...quick, forMs: 8000 }).outcomes;
  assert.ok((heavy?.longestMs ?? Infinity) < 1200, `one waited ${heavy?.longestMs} ms`);
  for (const { refused, longestMs } of light) assert.deepEqual([refused, longestMs < 100], [0, true]);
});

/** Returns the calls of the kept connections of a key that also makes a new connection for many calls. */
function keptBesideFresh(store: Store, fresh: number): Outcome {
  const [kept] = simulate(
    [
      { key: "a", count: 50 },
      { key: "a", count: fresh, isFresh: true },
    ],
    store,
  ).outcomes;
  return kept as Outcome;
}

test("paused connections go on while the same key has calls that no pause stops", () => {
  for (const [store, fresh] of [
    [quick, 1400],
    [{ ...slow, flushMs: 100 }, 1400],
    [quick, 500],
  ] as const) {
    const { fewest, longestMs } = keptBesideFresh(store, fresh);
    assert.ok(fewest > 3, `one got ${fewest} answers`);
    assert.ok(longestMs < 2000, `one waited ${longestMs} ms`);
  }
});

test("a burst of one key beside many keys with one call each is admitted if it is done in time", () => {
  let now = 0;
  const queue = new AdmissionQueue<Call>(new QueueBudget(), () => now);
  for (let n = 0; n < 20; n += 1) {
    for (let call = 0; call < 100; call += 1) queue.enqueue(callOf("a"));
    queue.start();
    now += 10;
    queue.release(queue.takeBatch());
  }
  for (let key = 0; key < 300; key += 1) queue.enqueue(callOf(`key ${key}`));
  for (let call = 0; call < 1000; call += 1) {
    assert.ok(queue.hasRoom("burst", 0), `call ${call}`);
    queue.enqueue(callOf("burst"));
  }
});

test("after a slow time the queue takes calls again: soon if the store is quick, and at once after a pause", () => {
  for (const [quickBatches, pauseMs] of [
    [3, 0],
    [0, 1001],
  ] as const) {
    let now = 0;
    const queue = new AdmissionQueue<Call>(new QueueBudget(), () => now);
    const batch = (ms: number): void => {
      queue.enqueue(callOf("a"));
      queue.start();
      now += ms;
      queue.release(queue.takeBatch());
    };
    for (let n = 0; n < 20; n += 1) batch(1200);
    assert.equal(fill(queue, "a"), limits.queueCallsMin, "positive control: it is slow");
    while (queue.waiting > 0) {
      queue.start();
      now += 1200;
      queue.release(queue.takeBatch());
    }
    for (let n = 0; n < quickBatches; n += 1) batch(2);
    now += pauseMs;
    assert.ok(fill(queue, "a") > 1000);
  }
});

test("while a batch runs for longer than any may wait, only calls that share the next batch find room", () => {
  let now = 0;
  const queue = new AdmissionQueue<Call>(new QueueBudget({ waitMsMax: 300 }), () => now);
  queue.start();
  now = 300;
  for (let n = 0; n < 2 * limits.queueCallsMin; n += 1) {
    assert.ok(queue.hasRoom("a", 0));
    queue.enqueue(callOf("a"));
  }
  now = 301;
  assert.ok(!queue.hasRoom("a", 0));
  assert.ok(queue.hasRoom("b", 0), "each key finds room for one");
  queue.release([]);
  assert.ok(queue.hasRoom("a", 0), "nothing runs");
});

const unpaused = (): never => assert.fail("it was not paused");

test("paused connections go on in their order, each once, whether or not a batch ends", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const queue = new AdmissionQueue<Call>(new QueueBudget());
  const resumed: number[] = [];
  assert.ok(!queue.pause("a", unpaused), "nothing waits");
  for (let n = 0; n < 2 * limits.quickBatchCallsMax; n += 1) queue.enqueue(callOf("a"));
  for (let n = 0; n < 300; n += 1) assert.ok(queue.pause("a", () => void resumed.push(n)));
  assert.ok(!queue.pause("b", unpaused), "another key has its share");
  t.mock.timers.tick(resumeMs);
  assert.deepEqual([resumed.length, queue.paused], [0, 300], "there is no room");
  queue.release(queue.takeBatch());
  assert.ok(resumed.length > 0 && resumed.length < 300, `${resumed.length} connections`);
  queue.release(queue.takeBatch());
  // None of them has sent a request.
  for (let looks = 0; looks < 2; looks += 1) t.mock.timers.tick(resumeMs);
  assert.deepEqual(resumed, [...Array.from({ length: 300 }).keys()]);
  assert.equal(queue.paused, 0);
});

test("at its end a queue reads all connections, and pauses none", () => {
  const queue = new AdmissionQueue<Call>(new QueueBudget());
  for (let n = 0; n < 2 * limits.quickBatchCallsMax; n += 1) queue.enqueue(callOf("a"));
  let resumed = 0;
  assert.ok(queue.pause("a", () => (resumed += 1)));
  assert.equal(queue.endPauses(), true);
  assert.equal(queue.endPauses(), false);
  assert.equal(resumed, 1);
  assert.ok(!queue.pause("a", unpaused));
});
