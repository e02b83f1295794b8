import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import fc from "fast-check";
import { takenIn } from "../../packages/gate/src/ledger/history/table-reads.ts";
import type { LedgerStore, StoredEffect } from "../../packages/gate/src/ledger/store/store.ts";
import type { StoredCounter } from "../../packages/gate/src/ledger/store/tables.ts";
import { NotKept } from "../../packages/gate/src/ledger/errors.ts";
import type { StoredApproval } from "../../packages/core/src/record/entry/row.ts";
import { sha256, temporaryFolder } from "./ledger-fixture.ts";
import { randomRuns } from "./random-test.ts";
import { commit, keyOf, look, storedRow, type Engine } from "./store-suite.ts";

/** Tests the promises of a storage engine about counters. */
export function storeCounters(name: string, { open }: Pick<Engine, "open">): void {
  const openFor = async (t: TestContext, folder: string): Promise<LedgerStore> => {
    const store = await open(folder);
    t.after(() => store.close().catch(() => undefined));
    return store;
  };

  suite(`${name}: counters`, () => {
    const move = fc.record({
      counter: fc.constantFrom("a", "b"),
      key: fc.constantFrom("x", "y", "z"),
      amount: fc.tuple(fc.nat({ max: 10_000 }), fc.nat({ max: 3 })),
      step: fc.nat({ max: 5 }),
    });
    test("a window's sum equals a plain addition of its events", async (t) => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(move, { maxLength: 40 }),
          fc.array(fc.integer({ min: -1, max: 120 }), { minLength: 3, maxLength: 6 }),
          async (moves, afters) => {
            const store = await openFor(t, temporaryFolder(t));
            for (const counter of ["a", "b"])
              await store.keepCounter(
                { digest: sha256(counter), definition: counter, through: null, unknownThrough: -1 },
                [],
              );
            let at = 0;
            const events = moves.map(({ counter, key, amount: [digits, scale], step }, index) => {
              at += step;
              return {
                seq: index + 1,
                at,
                counter,
                key,
                thousandths: digits * 10 ** (3 - scale),
                amount: decimal(digits, scale),
              };
            });
            for (const event of events)
              await commit(
                store,
                [storedRow(event.seq)],
                [{ ...event, counter: sha256(event.counter), key: keyOf(event.key) }],
              );
            const lookups = afters.flatMap((after) =>
              ["a", "b"].flatMap((counter) => ["x", "y", "z"].map((key) => ({ counter, key, after }))),
            );
            const values = await look(
              store,
              lookups.map(({ counter, key, after }) => ({ counter: sha256(counter), key: keyOf(key), after })),
            );
            for (const [index, { counter, key, after }] of lookups.entries()) {
              const inWindow = events.filter(
                (event) => event.counter === counter && event.key === key && event.at > after,
              );
              const sum = inWindow.reduce((total, { thousandths }) => total + thousandths, 0);
              assert.equal(values[index], decimal(sum, 3), `${counter} ${key} after ${after}`);
            }
            await store.close();
          },
        ),
        randomRuns(t, 12),
      );
    });

    test("an interrupted fold continues, and unknown amounts stay unknown", async (t) => {
      const folder = temporaryFolder(t);
      const digest = sha256("late");
      const event = (seq: number): StoredEffect => ({
        seq,
        at: seq * 10,
        counter: digest,
        key: keyOf("x"),
        amount: "1.5",
      });
      const counter = { digest, definition: "late" };
      let store = await openFor(t, folder);
      await commit(
        store,
        [1, 2, 3, 4, 5].map((seq) => storedRow(seq)),
        [],
      );
      await store.keepCounter({ ...counter, through: 2, unknownThrough: -1 }, [event(1), event(2)]);
      await store.close();
      store = await openFor(t, folder);
      assert.deepEqual(
        store.opened.counters.map(({ through, unknownThrough }) => ({ through, unknownThrough })),
        [{ through: 2, unknownThrough: -1 }],
      );
      await store.keepCounter({ ...counter, through: 5, unknownThrough: 30 }, [event(4), event(5)]);
      await store.keepCounter({ ...counter, through: null, unknownThrough: 30 }, []);
      await commit(store, [storedRow(6)], [event(6)]);
      const values = await look(
        store,
        [-1, 29, 30, 40, 60].map((after) => ({ counter: digest, key: keyOf("x"), after })),
      );
      assert.deepEqual(values, [undefined, undefined, "4.5", "3", "0"]);
      assert.deepEqual(await look(store, [{ counter: sha256("never kept"), key: keyOf("x"), after: -1 }]), [undefined]);
      await store.close();
    });

    test("an event of a counter that is not stored is a fault, and nothing of its batch is stored", async (t) => {
      const folder = temporaryFolder(t);
      let store = await openFor(t, folder);
      const effect = { seq: 1, at: 1, counter: sha256("unknown"), key: keyOf("x"), amount: "1" };
      await assert.rejects(commit(store, [storedRow(1)], [effect]), (error) => !(error instanceof NotKept));
      await store.close();
      store = await openFor(t, folder);
      assert.equal(store.opened.head, undefined);
      await store.close();
    });

    test("a transaction that fails or is aborted keeps no counter", async (t) => {
      const folder = temporaryFolder(t);
      let store = await openFor(t, folder);
      const aborted = await store.begin();
      await aborted.keepCounter(live("a"), []);
      await aborted.abort();
      assert.deepEqual((await store.tables.counters()).kept, []);
      const failing = await store.begin();
      await failing.keepCounter(live("b"), []);
      await assert.rejects(failing.commit([storedRow(1)], [eventOf("unknown", 1)]));
      await store.close();
      store = await openFor(t, folder);
      assert.deepEqual([store.opened.head, (await store.tables.counters()).kept], [undefined, []]);
    });

    test("a counter that is reset after it was read counts only later events", async (t) => {
      const store = await openFor(t, temporaryFolder(t));
      await store.keepCounter(live("n"), []);
      await commit(store, [storedRow(1)], [eventOf("n", 1, "5")]);
      assert.deepEqual(await valueOf(store, "n"), "5");
      await store.keepCounter({ ...live("n"), resetThrough: 1 }, []);
      assert.deepEqual(await valueOf(store, "n"), "0");
      await commit(store, [storedRow(2)], [eventOf("n", 2, "0.50")]);
      assert.deepEqual(await valueOf(store, "n"), "0.5");
    });

    test("a reserved amount counts until it is released, and an event until it is taken back, which happens once", async (t) => {
      const store = await openFor(t, temporaryFolder(t));
      await store.keepCounter(live("n"), []);
      const transaction = await store.begin();
      assert.equal(transaction.hasApprovals, false);
      await transaction.commit(
        [storedRow(1), storedRow(2)],
        [{ ...eventOf("n", 1, "3"), held: true }, eventOf("n", 2, "4")],
        {
          approvals: [pending(1, 200), pending(2, 100)],
        },
      );
      const reading = await store.begin();
      const due = await reading.dueApprovals(300);
      await reading.abort();
      assert.deepEqual([reading.hasApprovals, due.map(({ row }) => row.seq)], [true, [2, 1]]);
      assert.equal(await valueOf(store, "n"), "7");
      await (await store.begin()).commit([storedRow(3)], [], { released: [1] });
      assert.equal(await valueOf(store, "n"), "4");
      const taken = { ...eventOf("n", 2, "4"), takenBy: 4 };
      await commit(store, [storedRow(4)], [taken]);
      assert.equal(await valueOf(store, "n"), "0");
      const query = { counter: sha256("n"), key: keyOf("k"), after: -1 };
      const queries = [4, 5].map((before) => ({ ...query, before }));
      const found = await takenIn(store.tables, queries);
      assert.deepEqual(found, [[], ["4"]]);
      await assert.rejects(commit(store, [storedRow(5)], [{ ...taken, takenBy: 5 }]));
    });
  });
}

/** An approval that waits until a time. */
function pending(seq: number, ends: number): StoredApproval {
  return { seq, attach: sha256("call"), key: "k", place: sha256("place"), status: "pending", ends, record: "{}" };
}

function live(definition: string): StoredCounter {
  return { digest: sha256(definition), definition, through: null, unknownThrough: -1 };
}

/** An event of a row at the time of its number. */
function eventOf(counter: string, seq: number, amount = "1"): StoredEffect {
  return { seq, at: seq, counter: sha256(counter), key: keyOf("k"), amount };
}

async function valueOf(store: LedgerStore, counter: string): Promise<string | undefined> {
  return (await look(store, [{ counter: sha256(counter), key: keyOf("k"), after: -1 }]))[0];
}

/** Writes a decimal in shortest form. */
function decimal(digits: number, scale: number): string {
  const padded = String(digits).padStart(scale + 1, "0");
  const whole = scale === 0 ? padded : padded.slice(0, -scale);
  const fraction = scale === 0 ? "" : padded.slice(-scale).replace(/0+$/, "");
  return fraction === "" ? whole : `${whole}.${fraction}`;
}
