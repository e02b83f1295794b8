/**
 * Goal: the receipts of hooked calls take little memory, also if callers send long ids. Method: many calls with ids as long
 * as a body may be. Positive control: the same texts as keys of a map take all their memory.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { HookedCalls } from "../../../../packages/gate/src/server/service/hooked-calls.ts";
import { control } from "../../../support/controls/control.ts";

const calls = 200;
const scope = (index: number): string => JSON.stringify(["key", "s", `${index}`.padEnd(1_000_000, "x")]);
const receipt = { seq: 1, hash: "h" };

/** Bytes that the process keeps after the work. */
function kept(work: (index: number) => void): number {
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < calls; index += 1) work(index);
  return process.memoryUsage().heapUsed - before;
}

suite("hooked calls", () => {
  test("a long id takes as little memory as a short one", () => {
    const hooked = new HookedCalls();
    assert.ok(kept((index) => hooked.add(scope(index), receipt)) < 100_000_000);
    assert.deepEqual(hooked.take(scope(7)), receipt);
    assert.equal(hooked.take(scope(7)), undefined);
  });

  control("positive control: the texts themselves take more", () => {
    const map = new Map<string, object>();
    assert.ok(kept((index) => map.set(scope(index), receipt)) > 150_000_000);
    assert.equal(map.size, calls);
  });
});
