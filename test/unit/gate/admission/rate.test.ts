/**
 * Goal: a key gets exactly its rate, whenever it asks, and refusals leave at their own pace. Method: buckets and the
 * valve run on a clock that the test sets; random requests are compared with the definition of a token bucket.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { rateFields, Rates, type ChargeResult } from "../../../../packages/gate/src/server/keys/rate.ts";
import { parseRate } from "../../../../packages/gate/src/server/settings/rate.ts";
import { Valve } from "../../../../packages/gate/src/server/admission/valve.ts";
import { randomRuns } from "../../../support/random-test.ts";

const rate = { perSecond: 10, burst: 20 };
const key = { id: "ci", tenant: null, rate };

interface Set {
  ms: number;
}

function ratesAt(clock: Set, fallback?: typeof rate): Rates {
  return new Rates({ fallback: () => fallback, now: () => clock.ms });
}

/** Returns how many of this many simultaneous requests are let in. */
function letIn(
  rates: Rates,
  asking: typeof key | (Omit<typeof key, "rate"> & { rate: null }),
  requests: number,
): number {
  return Array.from({ length: requests }, () => rates.charge(asking)).filter((charged) => charged?.ok !== false).length;
}

test("a key may send its burst at once and then requests at its rate", () => {
  const clock = { ms: 5000 };
  const rates = ratesAt(clock);
  assert.equal(letIn(rates, key, 50), 20);
  clock.ms += 99;
  assert.equal(letIn(rates, key, 5), 0);
  clock.ms += 1;
  assert.equal(letIn(rates, key, 5), 1);
  clock.ms += 1000;
  assert.equal(letIn(rates, key, 50), 10);
  clock.ms += 3_600_000;
  assert.equal(letIn(rates, key, 50), 20);
});

test("each key has its own bucket, and a key without a rate has the default rate", () => {
  const clock = { ms: 0 };
  const rates = ratesAt(clock, { perSecond: 1, burst: 2 });
  assert.equal(letIn(rates, key, 50), 20);
  assert.equal(letIn(rates, { ...key, id: "other" }, 50), 20);
  assert.equal(letIn(rates, { id: "plain", tenant: null, rate: null }, 50), 2);
  assert.equal(ratesAt(clock).charge({ id: "plain", tenant: null, rate: null }), undefined);
});

test("a changed rate applies at once and does not refill the bucket", () => {
  const clock = { ms: 0 };
  const rates = ratesAt(clock);
  assert.equal(letIn(rates, key, 15), 15);
  const less = { ...key, rate: { perSecond: 1, burst: 3 } };
  assert.equal(letIn(rates, less, 15), 3);
  assert.equal(letIn(rates, key, 15), 0, "not refilled by changing back");
});

test("a key gets exactly what a token bucket of its rate allows", (t) => {
  const arrivals = fc.array(
    fc.record({ ms: fc.integer({ min: 0, max: 700 }), requests: fc.integer({ min: 1, max: 9 }) }),
  );
  const rateOf = fc.record({ perSecond: fc.integer({ min: 1, max: 1000 }), burst: fc.integer({ min: 1, max: 50 }) });
  fc.assert(
    fc.property(arrivals, rateOf, (askings, its) => {
      const clock = { ms: 0 };
      const rates = ratesAt(clock);
      // The definition of a token bucket, in thousandths of a request.
      let level = its.burst * 1000;
      for (const { ms, requests } of askings) {
        clock.ms += ms;
        level = Math.min(its.burst * 1000, level + ms * its.perSecond);
        const expected = Math.min(requests, Math.floor(level / 1000));
        level -= expected * 1000;
        assert.equal(letIn(rates, { ...key, rate: its }, requests), expected);
      }
    }),
    randomRuns(t, 300),
  );
});

test("a bucket stays exact after an idle year and while the clock stands still", () => {
  const clock = { ms: 0.1 + 0.2 };
  const rates = ratesAt(clock);
  const fast = { ...key, rate: { perSecond: 1_000_000, burst: 1_000_000 } };
  assert.equal(letIn(rates, fast, 10), 10);
  clock.ms += 365 * 86_400_000;
  assert.equal(rates.charge(fast)?.left, 999_999);
  assert.equal(rates.charge(fast)?.left, 999_998);
});

test("buckets that are full again are deleted, and the others are kept", () => {
  const clock = { ms: 0 };
  const rates = ratesAt(clock);
  for (let n = 0; n < 1024; n += 1) rates.charge({ ...key, id: `key-${n}` });
  assert.equal(rates.size, 1024);
  clock.ms += 100_000;
  for (let n = 0; n < 20; n += 1) rates.charge({ ...key, id: "fresh" });
  assert.equal(rates.size, 1);
  for (let n = 0; n < 1023; n += 1) rates.charge({ ...key, id: `new-${n}` });
  rates.charge({ ...key, id: "one more" });
  assert.equal(letIn(rates, { ...key, id: "fresh" }, 5), 0, "one that is not full stays");
});

test("the header fields show the policy, the requests left and the seconds until the bucket is full", () => {
  const clock = { ms: 0 };
  const rates = ratesAt(clock);
  const charge = (): ChargeResult => rates.charge(key) as ChargeResult;
  assert.deepEqual(rateFields(charge()), [
    ["ratelimit-policy", '"key";q=20;w=2'],
    ["ratelimit", '"key";r=19;t=1'],
  ]);
  letIn(rates, key, 18);
  assert.deepEqual(rateFields(charge())[1], ["ratelimit", '"key";r=0;t=2']);
  assert.deepEqual([charge().ok, charge().nextSeconds], [false, 1]);
  const slow = { ...key, id: "slow", rate: { perSecond: 1, burst: 1 } };
  rates.charge(slow);
  clock.ms += 1;
  assert.equal(rates.charge(slow)?.nextSeconds, 1);
});

test("a setting in the form of a rate is accepted, and every other text is refused", () => {
  assert.deepEqual(parseRate("200/s"), { ok: true, value: { perSecond: 200, burst: 200 } });
  assert.deepEqual(parseRate("200/s:400"), parseRate("200/s burst 400"));
  assert.deepEqual(parseRate(" 200/s  burst 400 "), { ok: true, value: { perSecond: 200, burst: 400 } });
  for (const wrong of [
    "",
    "200",
    "0/s",
    "-1/s",
    "1.5/s",
    "200/m",
    "200/s burst",
    "200/s burst 0",
    "1000001/s",
    "1/s burst 9999999",
  ])
    assert.equal(parseRate(wrong).ok, false, wrong);
});

interface Ticking extends Set {
  due: { readonly at: number; readonly act: () => void }[];
}

function valveAt(clock: Ticking, waitingMax = 1000): Valve {
  const later = (act: () => void, ms: number): void => void clock.due.push({ at: clock.ms + ms, act });
  return new Valve({ perSecond: 100, waitMs: 2000, waitingMax, now: () => clock.ms, later });
}

function pass(clock: Ticking, ms: number): void {
  for (const end = clock.ms + ms; clock.ms < end; clock.ms += 1) {
    const due = clock.due.filter(({ at }) => at <= clock.ms);
    clock.due = clock.due.filter(({ at }) => at > clock.ms);
    for (const { act } of due) act();
  }
}

test("rare refusals pass the valve at once, and a flood passes in order at the valve's rate", () => {
  const clock: Ticking = { ms: 0, due: [] };
  const valve = valveAt(clock);
  const passed: number[] = [];
  assert.ok(valve.pass(() => passed.push(0) > 0));
  pass(clock, 1000);
  for (let n = 1; n <= 150; n += 1) valve.pass(() => passed.push(n) > 0);
  assert.equal(passed.length, 11, "a tenth of a second's worth, together");
  pass(clock, 1000);
  assert.ok(passed.length >= 109 && passed.length <= 112, `${passed.length}`);
  pass(clock, 1000);
  assert.deepEqual(
    passed,
    Array.from({ length: 151 }, (_, n) => n),
  );
  assert.deepEqual([valve.waiting, clock.due.length], [0, 0]);
});

test("no refusal waits much longer than the limit, and refusals past the bound pass at once", () => {
  const clock: Ticking = { ms: 0, due: [] };
  const valve = valveAt(clock, 800);
  let passed = 0;
  for (let n = 0; n < 1000; n += 1) valve.pass(() => (passed += 1) > 0);
  assert.equal(valve.waiting, 800);
  assert.equal(passed, 200);
  // At a hundred a second, all 800 would take eight seconds. Only the last 200 pass at that rate.
  pass(clock, 2000 * Math.log(4) + 2000 + 100);
  assert.equal(valve.waiting, 0);
});

test("a client that has disconnected does not use up a turn of the valve", () => {
  const clock: Ticking = { ms: 0, due: [] };
  const valve = valveAt(clock);
  let passed = 0;
  for (let n = 0; n < 500; n += 1) valve.pass(() => n >= 490 && (passed += 1) > 0);
  pass(clock, 110);
  assert.equal(passed, 10);
});
