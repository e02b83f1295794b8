import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { StoredRow } from "../../../../packages/core/src/record/entry/row.ts";
import { packRows, unpackRows } from "../../../../packages/gate/src/ledger/store/sqlite/packed-rows.ts";

const row: StoredRow = { seq: 7, session: "run-1", tool: "pay", verdict: "ALLOW", leaf: '{"a":1}', evidence: "WyJ~" };

suite("the rows of a batch, packed for another thread", () => {
  const batches: Readonly<Record<string, readonly StoredRow[]>> = {
    "no row": [],
    "one row": [row],
    "a row without a session, and one with an empty session": [
      { ...row, session: null },
      { ...row, seq: 8, session: "" },
    ],
    "empty texts": [{ seq: 1, session: "", tool: "", verdict: "", leaf: "", evidence: "" }],
    "texts beyond Latin-1, and half a character": [
      { ...row, tool: "支払い😀", session: "é" },
      { ...row, seq: 8, tool: "\ud83d" },
      { ...row, seq: 9 },
    ],
    "256 rows": Array.from({ length: 256 }, (_, at) => ({ ...row, seq: 1000 + at, evidence: "e".repeat(at) })),
  };
  for (const [title, rows] of Object.entries(batches))
    test(`${title}: the other thread gets the same rows`, () => {
      assert.deepEqual([...unpackRows(structuredClone(packRows(rows)))], rows);
    });
});
