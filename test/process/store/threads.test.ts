/**
 * Goal: ledgers that are opened one after another share a thread, as its start takes longer than to open one, and no
 * ledger gets a thread in which something failed. Method: a module says in which thread it runs.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Threads, type Remote } from "../../../packages/gate/src/ledger/store/threads.ts";
import type { NumberOptions } from "../../support/thread-of-numbers.ts";

const module = new URL("../../support/thread-of-numbers.ts", import.meta.url);

interface Opened {
  readonly remote: Remote;
  readonly thread: unknown;
}

function numbers(max = Infinity): (options?: NumberOptions) => Promise<Opened> {
  const threads = new Threads(module, max);
  return async (options = {}) => {
    const { remote, said: thread } = await threads.open(options);
    return { remote, thread };
  };
}

suite("threads of ledgers", () => {
  test("a thread without an object is used again, and two objects at once have two threads", async () => {
    const open = numbers();
    const first = await open();
    const beside = await open();
    assert.notEqual(beside.thread, first.thread);
    await first.remote.end();
    const second = await open();
    assert.equal(second.thread, first.thread);
    await second.remote.end();
    await beside.remote.end();
  });

  test("a thread in which an object did not open or close is not used again", async () => {
    const open = numbers();
    const first = await open();
    await first.remote.end();
    await assert.rejects(open({ fails: "open" }), /does not open/);
    const second = await open({ fails: "close" });
    assert.notEqual(second.thread, first.thread);
    await assert.rejects(second.remote.end(), /does not close/);
    const third = await open();
    assert.notEqual(third.thread, second.thread);
    await third.remote.end();
  });

  test("a thread that has ended is not used again", async () => {
    const open = numbers();
    const first = await open();
    await assert.rejects(first.remote.call("end"), /thread has ended/);
    assert.ok(first.remote.hasEnded);
    await first.remote.end();
    const second = await open();
    assert.notEqual(second.thread, first.thread);
    await second.remote.end();
  });

  test("objects beyond the maximum of threads share them", async () => {
    const open = numbers(1);
    const [one, other] = [await open(), await open()];
    assert.equal(other.thread, one.thread);
    await one.remote.end();
    const third = await open();
    assert.equal(third.thread, one.thread);
    for (const { remote } of [other, third]) await remote.end();
  });
});
