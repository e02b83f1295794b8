/**
 * Goal: a counter in memory has the ledger's value: exactly the events of its key after a moment. Method: random events
 * and lookups under every kind of window are compared with a list that is summed each time; the memory is measured over
 * many events.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { InMemoryCounters } from "../../../packages/svc-gate/src/cli/in-memory-counters.ts";
import { windowStart, type Counter } from "../../../packages/svc-gate/src/contract/mod.ts";
import { addDecimals } from "../../../packages/svc-gate/src/wire/mod.ts";
import { compile, contractText } from "../../support/contract-kit.ts";
import { control } from "../../support/controls/control.ts";
import { randomRuns } from "../../support/random-test.ts";

const definitions = compile(
  contractText({
    requires: "platform.present",
    counters: `{
      ever: { of: t, per: gate }, rolling: { of: t, per: gate, within: 1m },
      calendar: { of: t, per: gate, within: hour, timezone: UTC },
      settling: { of: t, per: gate, since: platform.spent }, twin: { of: t, per: gate, within: 60s } }`,
  }),
).counters;

function named(name: string): Counter {
  return definitions.find((counter) => counter.name === `c.${name}`) ?? assert.fail(name);
}

interface Event {
  readonly counter: Counter;
  readonly key: string;
  readonly amount: string;
  readonly at: number;
}

function naive(events: readonly Event[], { identity }: Counter, key: string, after: number): string {
  return events
    .filter((event) => event.counter.identity === identity && event.key === key && event.at > after)
    .reduce((sum, { amount }) => addDecimals(sum, amount), "0");
}

const step = fc.record({
  counter: fc.constantFrom("ever", "rolling", "calendar", "settling", "twin").map(named),
  key: fc.constantFrom("a", "b"),
  amount: fc.constantFrom("1", "0", "0.1", "12.50", "999999999999999", "0.000000000000000000001"),
  /** Milliseconds since the previous event. */
  pause: fc.constantFrom(0, 1, 1000, 30_000, 59_999, 60_000, 3_600_000),
});

suite("counters in memory", () => {
  test("a counter in memory equals the sum over all events of its key and window", (t) => {
    const began = Date.UTC(2026, 0, 15, 12);
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat(200_000), (steps, back) => {
        const counters = new InMemoryCounters();
        const events: Event[] = [];
        let now = began;
        for (const { pause, ...move } of steps) {
          now += pause;
          for (const counter of definitions) {
            const start = windowStart(counter.window, now);
            const after = counter === named("settling") ? Math.max(start, now - back) : start;
            const found = counters.value({ counter, key: move.key, after });
            assert.equal(found, naive(events, counter, move.key, after), `${counter.name} at ${now}`);
          }
          counters.add(move, now);
          events.push({ ...move, at: now });
        }
      }),
      randomRuns(t, 200),
    );
  });

  test("counters with the same definition share one value under different names", () => {
    const counters = new InMemoryCounters();
    counters.add({ counter: named("rolling"), key: "k", amount: "2" }, 10);
    assert.equal(counters.value({ counter: named("twin"), key: "k", after: -1 }), "2");
  });

  test("a lookup counts events after its moment, but not at it", () => {
    const counters = new InMemoryCounters();
    counters.add({ counter: named("rolling"), key: "k", amount: "2" }, 10);
    counters.add({ counter: named("rolling"), key: "k", amount: "3" }, 11);
    assert.equal(counters.value({ counter: named("rolling"), key: "k", after: 10 }), "3");
    assert.equal(counters.value({ counter: named("rolling"), key: "k", after: 9 }), "5");
  });

  test("memory keeps only the events of the window, and sums stay exact", () => {
    const counters = new InMemoryCounters();
    const counter = named("rolling");
    for (let at = 0; at < 200_000; at += 1) {
      counters.add({ counter, key: `k${at % 7}`, amount: "0.5" }, at * 100);
      counters.add({ counter: named("ever"), key: `k${at % 7}`, amount: "0.5" }, at * 100);
    }
    assert.ok(counters.events < 3000, `${counters.events} events in memory`);
    const after = windowStart(counter.window, 199_999 * 100);
    const sum = Array.from({ length: 7 }, (_, key) => counters.value({ counter, key: `k${key}`, after }));
    assert.equal(sum.reduce(addDecimals), "300");
    assert.equal(counters.value({ counter: named("ever"), key: "k0", after: -1 }), "14286");
  });

  control("positive control: memory keeps the events that a later `since` can ask for", () => {
    const counters = new InMemoryCounters();
    for (let at = 0; at < 5000; at += 1) counters.add({ counter: named("settling"), key: "k", amount: "1" }, at);
    assert.equal(counters.events, 5000);
    assert.equal(counters.value({ counter: named("settling"), key: "k", after: 99 }), "4900");
  });
});
