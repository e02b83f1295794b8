/**
 * Goal: a counter that comes into force later counts what open approvals reserve, and no row records these amounts. `verify
 * --deep` counts them again. Method: a gate parks a call and starts again with a counter of its amount. Then the amount is
 * changed in the file, which the walk over the chain cannot notice. An untouched ledger is the control.
 */
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, suite, test, type TestContext } from "node:test";
import { verifyCommand } from "../../packages/records/src/verify/command.ts";
import { inspectLedger } from "../../packages/gate/src/ledger/mod.ts";
import { small, large, payments, startDesk } from "../support/approvals.ts";
import { temporaryFolder } from "../support/gate.ts";

const uncounted = payments.replace(/ {2}spent: .*\n/, "").replace(/ {2}- rule: budget\n[^]*?spent"\n/, "");
const options = { json: true, pin: undefined, chain: false, deep: true, database: undefined };

/** Returns the folder of a ledger with two parked calls. The last start may bring another contract, and no row after it. */
async function written(t: Parameters<typeof temporaryFolder>[0], contracts: readonly string[]): Promise<string> {
  const folder = temporaryFolder(t);
  for (const [index, contract] of contracts.entries()) {
    const desk = await startDesk(t as TestContext, { folder, contract, persons: {} });
    if (index === 0)
      for (const amount of [1200, 1100]) await desk.asks({ ...large, tool_input: { amount, to: "anna" } });
    if (index === 1) await desk.asks(small);
    await desk.stop();
  }
  return join(folder, "data");
}

interface Found {
  readonly ok: boolean;
  readonly wrong: { readonly counter: string; readonly seq: number; readonly expected: string; readonly found: string };
}

async function verify(folder: string): Promise<Found> {
  const { ok, deep } = JSON.parse((await verifyCommand(folder, options)).text);
  return { ok, wrong: deep.counters.first_wrong };
}

const spent = "counter IN (SELECT id FROM counters WHERE definition LIKE '%possible%')";

const forgeries: readonly (readonly [title: string, sql: string, expected: string, found: string])[] = [
  ["smaller", `UPDATE holds SET amount = '1' WHERE seq = 2 AND ${spent}`, "1100", "1"],
  ["missing", `DELETE FROM holds WHERE seq = 2 AND ${spent}`, "1100", "nothing"],
  ["of another key", `UPDATE holds SET key = zeroblob(32) WHERE seq = 2 AND ${spent}`, "1100", "nothing"],
  ["at another time", `UPDATE holds SET at = at - 1 WHERE seq = 2 AND ${spent}`, "1100", "1100"],
  [
    "held twice",
    `INSERT INTO holds SELECT counter, zeroblob(32), at, seq, '7' FROM holds WHERE seq = 2 AND ${spent}`,
    "nothing",
    "7",
  ],
];

suite("`verify --deep` on amounts that are reserved under a later counter", async () => {
  const pristine = await written({ after }, [uncounted, payments]);

  test("an untouched ledger agrees, also if no row names the last contract, or if the counter left again", async (t) => {
    assert.deepEqual(await verify(pristine), { ok: true, wrong: null });
    for (const stages of [
      [uncounted, uncounted, payments],
      [uncounted, payments, uncounted],
      [payments, uncounted, payments, uncounted],
    ])
      assert.deepEqual(await verify(await written(t, stages)), { ok: true, wrong: null });
  });

  for (const [title, sql, expected, found] of forgeries)
    test(`an amount that is ${title} is named, though the chain is valid`, async (t) => {
      const folder = join(temporaryFolder(t), "data");
      cpSync(pristine, folder, { recursive: true });
      const database = new DatabaseSync(join(folder, "ledger.db"));
      assert.equal(Number(database.prepare(sql).run().changes), 1);
      database.close();
      assert.equal((await inspectLedger({ folder })).broken, undefined);
      const { ok, wrong } = await verify(folder);
      assert.deepEqual(
        [ok, wrong.counter, wrong.seq, wrong.expected, wrong.found],
        [false, "pay.spent", 2, expected, found],
      );
    });
});
