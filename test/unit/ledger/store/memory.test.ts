/**
 * Goal: the engine in memory keeps every engine's promises, and joins only events that later lookups count together. Method: the
 * suite of all engines; then random events and lookups within windows are compared with a list that is summed each time.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { CounterTables, type LookbackOf } from "../../../../packages/records/src/memory/counter-tables.ts";
import { openMemory } from "../../../../packages/records/src/memory/memory.ts";
import { MemoryLedger } from "../../../../packages/records/src/memory/tables.ts";
import { LedgerRefused } from "../../../../packages/gate/src/ledger/errors.ts";
import type { StoredEffect } from "../../../../packages/gate/src/ledger/store/store.ts";
import { addDecimals } from "../../../../packages/core/src/wire/mod.ts";
import { control } from "../../../support/controls/control.ts";
import { randomRuns } from "../../../support/random-test.ts";
import { storedRow, storeSuite } from "../../../support/store-suite.ts";
import { noticedBy } from "../../../support/store-tables.ts";
import type { Tables } from "../../../../packages/gate/src/ledger/store/tables.ts";

const ledgers = new Map<string, MemoryLedger>();

function tablesAt(folder: string): MemoryLedger {
  const tables = ledgers.get(folder) ?? new MemoryLedger();
  ledgers.set(folder, tables);
  return tables;
}

storeSuite("memory", {
  kind: "memory",
  open: async (folder) => openMemory(tablesAt(folder)),
  intrude: (folder) => void tablesAt(folder).rows.push(storedRow(2)),
  intruded: /somebody else has written/,
});

suite("faults of reads that the suite of all engines notices", () => {
  const faults: readonly (readonly [string, string, (tables: Tables) => Partial<Tables>])[] = [
    [
      "a page ignores its lower bound",
      "pages",
      (tables) => ({ page: async (table, { after: _after, ...range }, columns) => tables.page(table, range, columns) }),
    ],
    [
      "a key without an entry is left out",
      "entries",
      (tables) => ({ at: async (...query) => (await tables.at(...query)).filter(Boolean) }),
    ],
    [
      "a column finds only one entry of a value",
      "entries",
      (tables) => ({ where: async (...query) => (await tables.where(...query)).slice(0, 1) }),
    ],
    [
      "a total has its own event",
      "events",
      (tables) => ({ totals: (keys) => tables.totals(keys.map((key) => key.with(3, 999))) }),
    ],
  ];
  for (const [title, check, fault] of faults)
    control(`positive control: the fault "${title}" is noticed`, async () => {
      const store = openMemory();
      assert.deepEqual(await noticedBy(store, () => ({})), []);
      assert.deepEqual(await noticedBy(openMemory(), fault), [check]);
    });
});

test("a second owner is refused while the first lives", async () => {
  const tables = new MemoryLedger();
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

function counting(): CounterTables {
  const tables = new CounterTables(lookbackOf);
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
  does: fc.constantFrom("add", "add", "add", "add", "hold", "release", "take", "reset", "fill"),
  isRead: fc.boolean(),
});

/** A list of events that is summed each time. */
class PlainList {
  #events: readonly StoredEffect[] = [];

  add(event: StoredEffect): void {
    this.#events = [...this.#events, event];
  }

  remove(isGone: (event: StoredEffect) => boolean): void {
    this.#events = this.#events.filter((event) => !isGone(event));
  }

  /** The last event that can be taken back. */
  last(counter: string, key: string, from: number): StoredEffect | undefined {
    const isOne = (each: StoredEffect): boolean => each.counter === counter && each.key === key && each.at > from;
    return this.#events.findLast((each) => isOne(each) && each.held !== true);
  }

  value({ counter, key, after }: Readonly<Record<"counter" | "key", string>> & { readonly after: number }): string {
    return this.#events
      .filter((each) => each.counter === counter && each.key === key && each.at > after)
      .reduce((sum, { amount }) => addDecimals(sum, amount), "0");
  }
}

/** Makes 1,030 events of another key, so that the tables join events. */
function fill(tables: CounterTables, at: number): void {
  tables.add(Array.from({ length: 1030 }, (_, seq) => ({ counter: "hour", key: "c", at, seq, amount: "1" })));
}

suite("events that are joined", () => {
  test("a counter whose old events are joined has the value of a plain list", (t) => {
    let joined = 0;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat(200_000), (steps, back) => {
        const [tables, plain] = [counting(), new PlainList()];
        let now = Date.UTC(2026, 0, 15, 12);
        for (const [index, { counter, key, amount, pause, does, isRead }] of steps.entries()) {
          now += pause;
          const event: StoredEffect = {
            counter,
            key,
            amount,
            at: now,
            seq: index + 1,
            ...(does === "hold" && { held: true }),
          };
          if (does === "add" || does === "hold") {
            tables.add([event]);
            plain.add(event);
          } else if (does === "release") {
            tables.release([1, index]);
            plain.remove(({ held }) => held === true);
          } else if (does === "take") {
            const last = plain.last(counter, key, now - hourMs);
            const isThere = last !== undefined && tables.timeOf(last, last.seq) !== undefined;
            if (isThere) tables.add([{ ...last, takenBy: index + 1 }]);
            if (isThere) plain.remove((each) => each === last);
          } else if (does === "reset") {
            const kept = { digest: counter, definition: counter, through: null, unknownThrough: -1 };
            tables.keep({ ...kept, resetThrough: now }, []);
            plain.remove((each) => each.counter === counter);
            now += 1; // No row has the time through which a counter is reset.
          } else {
            const before = tables.events;
            fill(tables, now);
            joined += before + 1030 - tables.events;
          }
          const afters = { hour: now - hourMs, all: -1, since: now - back };
          for (const [of, after] of isRead ? Object.entries(afters) : []) {
            const lookup = { counter: of, key, after };
            assert.equal(tables.value(lookup), plain.value(lookup), `${of} ${key} at step ${index}`);
          }
        }
      }),
      randomRuns(t, 300),
    );
    assert.ok(joined > 1000, `${joined} events were joined`);
  });

  test("memory keeps only the events of the window, and sums stay exact", () => {
    const tables = counting();
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

  test("memory keeps the events that a later lookup can ask for", () => {
    const tables = counting();
    for (let at = 1; at <= 5000; at += 1) tables.add([{ counter: "since", key: "k", amount: "1", at, seq: at }]);
    assert.equal(tables.events, 5000);
    assert.equal(tables.value({ counter: "since", key: "k", after: 100 }), "4900");
  });

  control("positive control: a counter that joins too many events differs from the plain list", () => {
    const tables = new CounterTables((_, now) => ({ through: now, forgets: true }));
    tables.keep({ digest: "hour", definition: "hour", through: null, unknownThrough: -1 }, []);
    tables.add([{ counter: "hour", key: "a", amount: "1", at: 1, seq: 1 }]);
    fill(tables, 2);
    assert.notEqual(tables.value({ counter: "hour", key: "a", after: 0 }), "1");
  });
});
