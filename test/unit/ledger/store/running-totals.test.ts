/**
 * Goal: the rules of counters that both stores share are true where no sequence of calls to a gate leads, for example if two
 * gates fold one counter at once. The suite of the stores tests the sums themselves.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  keepIn,
  RunningTotals,
  sumOf,
  withoutTaken,
} from "../../../../packages/gate/src/ledger/store/running-totals.ts";
import { addDecimals } from "../../../../packages/core/src/wire/mod.ts";
import type { KeptCounter } from "../../../../packages/gate/src/ledger/store/tables.ts";
import { Fault } from "../../../../packages/gate/src/ledger/errors.ts";

const counter = { digest: "c", definition: "d", through: 5, unknownThrough: 30 };
const known: KeptCounter = { ...counter, id: 7, resetThrough: 20, folded: 2 };
const event = (seq: number) => ({ seq, at: seq, counter: "c", key: "00", amount: "1" });

test("a late fold adds only new events, and takes nothing back", () => {
  const { kept, added } = keepIn(new Map([["c", known]]), { ...counter, through: 4, unknownThrough: -1 }, [event(5)]);
  assert.deepEqual([kept, added], [known, []]);
  const later = keepIn(new Map([["c", known]]), { ...counter, through: 6 }, [event(5), event(6)]);
  assert.deepEqual(later, { kept: { ...known, through: 6, folded: 3 }, added: [event(6)] });
});

test("only a counter that every new row updates becomes known again, and it keeps its last reset", () => {
  const reset = { ...counter, through: null, unknownThrough: -1, resetThrough: 10 };
  assert.equal(keepIn(new Map([["c", known]]), reset, []).kept.unknownThrough, 30);
  const live = new Map([["c", { ...known, through: null }]]);
  assert.deepEqual(keepIn(live, reset, [event(9)]), {
    kept: { ...known, through: null, unknownThrough: -1 },
    added: [],
  });
});

test("an event is a fault if its counter is not kept, or if the latest total of its key was not read", () => {
  const totals = new RunningTotals();
  assert.throws(() => totals.findMissing([event(1)], new Map()), Fault);
  assert.throws(() => totals.add([event(1)], new Map([["c", known]]), false), Fault);
});

test("amounts of any size and scale are added exactly", () => {
  const amounts = [
    "0",
    "1.5",
    "2.25",
    "999999999999999",
    "999999999999999.9",
    "123456789012345678901.000000001",
    "0.1",
  ];
  const many = Array.from({ length: 40 }, () => amounts).flat();
  assert.equal(
    sumOf(many),
    many.reduce((sum, amount) => addDecimals(sum, amount), "0"),
  );
});

test("outcomes never take back more than a counter has", () => {
  assert.equal(withoutTaken("10.5", ["10", "0.5"]), "0");
  assert.throws(() => withoutTaken("10.5", ["10", "0.6"]), Fault);
});
