/**
 * Goal: no waiting call is lost or settled twice, whatever happens to the transactions.
 * Method: a batcher over transactions that the test starts, refuses and fails. No ledger is needed.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Batcher, type TakeCalls, type WaitingCall } from "../../../../packages/gate/src/server/admission/batcher.ts";
import { QueueBudget } from "../../../../packages/gate/src/server/admission/queue.ts";
import { bad, good, refuse, type Refusal, type Result } from "../../../../packages/core/src/wire/mod.ts";

interface Call extends WaitingCall {
  readonly name: string;
}

interface Rig {
  readonly batcher: Batcher<Call, string>;
  readonly log: string[];
  readonly submit: (name: string) => void;
}

const away = bad(refuse("ledger-unavailable", "away"));

/**
 * @param ends how each transaction ends: done, refused before or after its work, or with a fault; later ones are done
 */
function rigOf(ends: readonly ("after" | "before" | "done" | "fault")[], batchMax = Infinity): Rig {
  const log: string[] = [];
  const left = [...ends];
  const batcher = new Batcher<Call, string>({
    budget: new QueueBudget(),
    transact: async (work): Promise<Result<void, Refusal>> => {
      const end = left.shift() ?? "done";
      await setImmediate();
      if (end === "fault") throw new Error("the disk failed");
      if (end === "before") return away;
      await work(end);
      return end === "after" ? away : good(undefined);
    },
    decide: async (end, take: TakeCalls<Call>) => {
      let seen = 0;
      const calls = take(() => (seen += 1) <= batchMax);
      await setImmediate();
      if (end === "done") log.push(calls.map(({ name }) => name).join("+"));
      return undefined;
    },
  });
  const submit = (name: string): void => {
    const settle = (result: Result<never, Refusal>): void =>
      void log.push(`${name} ${result.ok ? "ok" : result.problem.code}`);
    batcher.submit({ caller: { keyName: "k" }, bytes: 1, name, settle });
  };
  return { batcher, log, submit };
}

suite("a batcher", () => {
  test("calls that arrive during a transaction share the next one", async () => {
    const { batcher, log, submit } = rigOf([]);
    submit("a");
    await setImmediate();
    await setImmediate();
    submit("b");
    submit("c");
    assert.equal(batcher.isIdle, false);
    await batcher.drain();
    assert.deepEqual(log, ["a", "b+c"]);
    assert.deepEqual([batcher.isIdle, batcher.queued], [true, { calls: 0, bytes: 0, paused: 0 }]);
  });

  test("a call that does not fit waits for the next batch", async () => {
    const { batcher, log, submit } = rigOf([], 2);
    for (const name of "abcde") submit(name);
    await batcher.drain();
    assert.deepEqual(log, ["a+b", "c+d", "e"]);
  });

  test("exclusive work goes before the calls that wait for the first batch, and reports why it was not done", async () => {
    const { batcher, log, submit } = rigOf(["done", "done", "before"]);
    submit("a");
    const work = async (): Promise<void> => void log.push("work");
    const [done, refused] = await Promise.all([batcher.exclusive(work), batcher.exclusive(work)]);
    await batcher.drain();
    assert.deepEqual(log, ["work", "a"]);
    assert.deepEqual([done.ok, refused.ok], [true, false]);
  });

  for (const end of ["before", "after"] as const) {
    test(`a transaction that is refused ${end} its work refuses its calls, once, and frees their room`, async () => {
      const { batcher, log, submit } = rigOf([end]);
      submit("a");
      submit("b");
      await setImmediate();
      await batcher.drain();
      assert.deepEqual(log, ["a ledger-unavailable", "b ledger-unavailable"]);
      assert.deepEqual(batcher.queued, { calls: 0, bytes: 0, paused: 0 });
    });
  }

  test("after a fault nothing is settled, and exclusive work rejects", async () => {
    const { batcher, log, submit } = rigOf(["fault"]);
    submit("a");
    await assert.rejects(batcher.failed, /the disk failed/);
    submit("b");
    await assert.rejects(
      batcher.exclusive(async () => undefined),
      /the disk failed/,
    );
    assert.deepEqual(log, []);
  });

  test("a batcher that drains refuses new calls and new work", async () => {
    const { batcher, log, submit } = rigOf([]);
    submit("a");
    const drained = batcher.drain();
    submit("b");
    const work = await batcher.exclusive(async () => undefined);
    await drained;
    assert.deepEqual(log, ["b stopping", "a"]);
    assert.equal(work.ok, false);
  });

  test("exclusive work and batches take turns, so that neither waits for more than one of the other", async () => {
    const { batcher, log, submit } = rigOf([], 1);
    const works = ["w1", "w2", "w3"].map((name) =>
      batcher.exclusive(async () => {
        log.push(name);
        submit(`during ${name}`);
      }),
    );
    for (const name of ["a", "b"]) submit(name);
    await Promise.all(works);
    await batcher.drain();
    assert.deepEqual(log.slice(0, 6), ["w1", "a", "w2", "b", "w3", "during w1"]);
  });

  test("urgent work goes before other work and the next batch, but not before what runs", async () => {
    const { batcher, log, submit } = rigOf([], 1);
    const work = (name: string, isUrgent = false): Promise<unknown> =>
      batcher.exclusive(async () => void log.push(name), { isUrgent });
    const first = batcher.exclusive(async () => {
      log.push("w1");
      void work("stop 1", true);
      void work("stop 2", true);
    });
    const works = [first, work("w2"), work("w3")];
    submit("a");
    await Promise.all(works);
    await batcher.drain();
    assert.deepEqual(log, ["w1", "stop 1", "stop 2", "a", "w2", "w3"]);
  });

  test("after a fault, a call that comes keeps no memory", async () => {
    const { batcher, log, submit } = rigOf(["fault"]);
    batcher.failed.catch(() => undefined);
    submit("a");
    await assert.rejects(batcher.failed, /the disk failed/);
    submit("b");
    assert.deepEqual([log, batcher.queued.bytes], [[], 0]);
  });
});
