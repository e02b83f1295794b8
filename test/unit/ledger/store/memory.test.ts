/**
 * Goal: the engine in memory keeps every engine's promises, and joins only events that nobody reads alone. Method: the suite of
 * all engines; then random events and lookups within a window, once with joined events and once without.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import {
  CounterTables,
  type LookbackOf,
} from "../../../../packages/svc-gate/src/ledger/store/memory/counter-tables.ts";
import { MemoryTables, openMemory } from "../../../../packages/svc-gate/src/ledger/store/memory/memory.ts";
import { LedgerRefused } from "../../../../packages/svc-gate/src/ledger/errors.ts";
import type { StoredEffect } from "../../../../packages/svc-gate/src/ledger/store/store.ts";
import { addDecimals } from "../../../../packages/svc-gate/src/wire/mod.ts";
import { control } from "../../../support/controls/control.ts";
import { randomRuns } from "../../../support/random-test.ts";
import { storedRow, storeSuite } from "../../../support/store-suite.ts";

const ledgers = new Map<string, MemoryTables>();

function tablesAt(place: string): MemoryTables {
  const tables = ledgers.get(place) ?? new MemoryTables();
  ledgers.set(place, tables);
  return tables;
}

storeSuite("memory", {
  kind: "memory",
  open: async (place) => openMemory(tablesAt(place)),
  intrude: (place) => void tablesAt(place).rows.push(storedRow(2)),
  intruded: /somebody else has written/,
});

test("a second owner is refused while the first lives", async () => {
  const tables = new MemoryTables();
  const store = openMemory(tables);
  assert.throws(() => openMemory(tables), LedgerRefused);
  await store.close();
  openMemory(tables);
});

const hourMs = 3_600_000;
/** A window of an hour, all events, and a window whose start a caller may move back. */
const lookbackOf: LookbackOf = (definition, now) =>
  definition === "hour"
    ? { through: now - hourMs, forgets: true }
    : { through: definition === "all" ? now : -1, forgets: false };

function counting(of: LookbackOf | undefined): CounterTables {
  const tables = new CounterTables(of);
  for (const definition of ["hour", "all", "since"])
    tables.keep({ digest: definition, definition, through: null, unknownThrough: -1 }, []);
  return tables;
}

const step = fc.record({
  counter: fc.constantFrom("hour", "all", "since"),
  key: fc.constantFrom("a", "b"),
  amount: fc.constantFrom("1", "0", "0.1", "12.50", "999999999999999", "0.000000000000000000001"),
  /** Milliseconds since the previous event. */
  pause: fc.constantFrom(0, 1, 30_000, 1_800_000, hourMs - 1, hourMs),
  does: fc.constantFrom("add", "add", "add", "add", "hold", "take", "reset"),
});

/** Makes 1,030 events of another key, so that the tables look for events to join. */
function fill(tables: CounterTables, at: number): void {
  const event = { counter: "hour", key: "c", at, seq: 0, amount: "1" };
  tables.add(Array.from({ length: 1030 }, (): StoredEffect => event));
}

suite("events that are joined", () => {
  test("a counter whose old events are joined has the value of one with all events", (t) => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.nat(200_000), fc.nat(40), (steps, back, filled) => {
        const [joining, whole] = [counting(lookbackOf), counting(undefined)];
        let now = Date.UTC(2026, 0, 15, 12);
        for (const [index, { counter, key, amount, pause, does }] of steps.entries()) {
          now += pause;
          const event = { counter, key, amount, at: now, seq: index + 1 };
          for (const tables of [joining, whole]) {
            if (does === "add" || does === "take") tables.add([event]);
            if (does === "take") tables.add([{ ...event, takenBy: index + 2 }]);
            if (does === "hold") tables.add([{ ...event, held: true }]);
            if (does === "reset") {
              const kept = { digest: counter, definition: counter, through: null, unknownThrough: -1 };
              tables.keep({ ...kept, resetThrough: now }, []);
            }
          }
          if (index === filled) fill(joining, now);
          for (const name of ["a", "b"]) {
            const afters = { hour: now - hourMs, all: -1, since: now - back };
            for (const [of, after] of Object.entries(afters)) {
              const lookup = { counter: of, key: name, after };
              assert.equal(joining.value(lookup), whole.value(lookup), `${of} ${name} at step ${index}`);
            }
          }
        }
      }),
      randomRuns(t, 200),
    );
  });

  test("memory keeps only the events of the window, and sums stay exact", () => {
    const tables = counting(lookbackOf);
    for (let at = 0; at < 200_000; at += 1) {
      for (const counter of ["hour", "all"])
        tables.add([{ counter, key: `k${at % 7}`, amount: "0.5", at: at * 10_000, seq: at }]);
    }
    assert.ok(tables.events < 3000, `${tables.events} events in memory`);
    const after = 199_999 * 10_000 - hourMs;
    const sum = Array.from({ length: 7 }, (_, key) => tables.value({ counter: "hour", key: `k${key}`, after }) ?? "");
    assert.equal(sum.reduce(addDecimals), "180");
    assert.equal(tables.value({ counter: "all", key: "k0", after: -1 }), "14286");
  });

  control("positive control: memory keeps the events that a later lookup can ask for", () => {
    const tables = counting(lookbackOf);
    for (let at = 1; at <= 5000; at += 1) tables.add([{ counter: "since", key: "k", amount: "1", at, seq: at }]);
    assert.equal(tables.events, 5000);
    assert.equal(tables.value({ counter: "since", key: "k", after: 100 }), "4900");
  });
});
