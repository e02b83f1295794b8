/**
 * Goal: `verify --deep` names changes to the tables of counters that the walk over the chain cannot see, and calls no honest
 * ledger wrong whose counters came late, started unseen or lack erased rows. Method: gates on a clock of their own write small
 * ledgers; each is verified as it is, and again after its file was changed with matching checksums.
 */
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test, type TestContext } from "node:test";
import { replayAndFold } from "../../packages/records/src/deep/deep.ts";
import type { DeepFound } from "../../packages/records/src/deep/found.ts";
import { compileMandate, type PolicySet } from "../../packages/readers/src/contract.ts";
import { Clock } from "../../packages/gate/src/server/policy/clock.ts";
import { openGate } from "../../packages/gate/src/server/service/gate.ts";
import { inspectLedger, openLedger, readLedger, type KeptCounter } from "../../packages/gate/src/ledger/mod.ts";
import { counterChecksum, takenChecksum } from "../../packages/gate/src/ledger/store/checksums.ts";
import { good, parseCheckRequest } from "../../packages/core/src/wire/mod.ts";
import { temporaryFolder } from "../support/gate.ts";

/** A contract with one counter; without one if the text is empty. */
function contract(counter: string, settings = ""): PolicySet {
  const rules =
    counter === ""
      ? ""
      : `counters:
  spent: { of: send, per: session, sum: input.amount, ${counter} }
rules:
  - { rule: budget, on: send, when: counters.spent > 1000, verdict: BLOCK, reason: "{counters.spent} is spent" }
`;
  const text = `contract: pay
tools:
  send:
    input:
      type: object
      additionalProperties: false
      required: [amount]
      properties: { amount: { type: number, minimum: 0 } }
    otherwise: ALLOW
${rules}`;
  const compiled = compileMandate(
    { name: "mandate.yaml", text: `mandate: test\ncontracts: [pay.yaml]\n${settings}` },
    (name) => good({ name, text }),
  );
  assert.ok(compiled.ok, JSON.stringify(compiled));
  return compiled.value;
}

const none = contract("");
const ever = contract("counting: attempts");
const settling = contract("counting: released, settles: outcome");
const empty = contract("counting: attempts, within: 1h", "counters: { pay: { spent: { starts: empty } } }\n");

type Receipt = Readonly<Record<"hash", string> & Record<"seq", number>>;

interface Desk {
  readonly pays: (amount: number) => Promise<Receipt>;
  readonly fails: (call: Receipt) => Promise<void>;
  readonly erases: (row: number) => Promise<void>;
  readonly loads: (policySet: PolicySet) => Promise<void>;
  readonly waits: (ms: number) => void;
}

/** Returns the folder of a ledger that a gate wrote, one second for each step. */
async function written(
  t: TestContext,
  policySet: PolicySet,
  steps: (desk: Desk) => Promise<void>,
  folder: string = join(temporaryFolder(t), "data"),
): Promise<string> {
  let now = 1_790_000_000_000;
  const ledger = await openLedger({ folder, engine: "svc-gate/test" });
  now = Math.max(now, ledger.head.at + 1000);
  const clock = new Clock({ wall: () => now, monotonic: () => now });
  const opened = await openGate({
    policySet,
    ledger,
    clock,
    mode: "enforce",
    onDefect: ({ defect }) => assert.fail(String(defect)),
  });
  assert.ok(opened.ok);
  const { gate } = opened.value;
  const waits = (ms: number): void => void (now += ms);
  await steps({
    waits,
    pays: async (amount) => {
      const parsed = parseCheckRequest(`{"tool_name":"send","tool_input":{"amount":${amount}},"session_id":"s"}`);
      assert.ok(parsed.ok);
      const answer = await gate.check(parsed.value, { keyName: "agent", bytes: 100, digest: "0".repeat(64) });
      assert.ok(answer.ok);
      waits(1000);
      return JSON.parse(answer.value).receipt;
    },
    fails: async ({ seq, hash }) => {
      const done = await gate.outcomes.report({ name: "books", mayLower: true }, { seq, hash, status: "failed" });
      assert.ok(done.ok);
      waits(1000);
    },
    erases: async (row) => {
      const done = await gate.eraser.erase(
        { target: { rows: [[row, row]] }, parts: ["input"], reason: "asked for" },
        "ada",
      );
      assert.ok(done.ok);
      waits(1000);
    },
    loads: async (next) => {
      assert.ok((await gate.policies.reload({ policySet: next, mode: "enforce" }, "test")).ok);
      waits(1000);
    },
  });
  await gate.drain();
  await ledger.close();
  return folder;
}

async function deep(folder: string): Promise<DeepFound> {
  assert.equal((await inspectLedger({ folder })).broken, undefined, "the walk over the chain calls it whole");
  const ledger = await readLedger(folder);
  try {
    return await replayAndFold(ledger, () => undefined);
  } finally {
    await ledger.close();
  }
}

function assertSound({ differs, counters }: DeepFound): void {
  assert.deepEqual([differs, counters.firstWrong], [0, undefined]);
}

/** The first row of a query about the events of a counter. */
function first(database: DatabaseSync, sql: string): Event {
  return database.prepare(sql).get() as unknown as Event;
}

interface Event {
  readonly counter: number;
  readonly digest: string;
  readonly key: Uint8Array;
  readonly at: number;
  readonly outcome: number;
}

/** Changes a copy of a ledger, and seals its counters again. */
function changed(t: TestContext, folder: string, change: (database: DatabaseSync) => void): string {
  const copy = join(temporaryFolder(t), "data");
  cpSync(folder, copy, { recursive: true });
  const database = new DatabaseSync(join(copy, "ledger.db"));
  change(database);
  for (const row of database.prepare("SELECT * FROM counters").all()) {
    const { id, digest, definition, through, folded } = row as unknown as KeptCounter;
    const [unknownThrough, resetThrough] = [Number(row["unknown_through"]), Number(row["reset_through"])];
    const kept = { id, digest, definition, through, folded, unknownThrough, resetThrough };
    database.prepare("UPDATE counters SET seal = ? WHERE id = ?").run(counterChecksum(kept), id);
  }
  database.close();
  return copy;
}

/** Takes the event of row 1 back under the last outcome, with a matching checksum. */
function takeBackFirst(database: DatabaseSync): void {
  const { counter, key, outcome } = first(database, "SELECT * FROM withdrawals");
  const { at } = first(database, "SELECT at FROM effects WHERE seq = 1");
  const { digest } = first(database, `SELECT digest FROM counters WHERE id = ${counter}`);
  const event = { counter: digest, key: Buffer.from(key).toString("hex"), at, seq: 1, amount: "20", takenBy: outcome };
  const add =
    "INSERT INTO withdrawals (counter, key, at, seq, amount, outcome, folded) VALUES (?, ?, ?, 1, '20', ?, ?)";
  database.prepare(add).run(counter, key, at, outcome, takenChecksum(event));
}

suite("changes that the walk over the chain cannot see", () => {
  test("a counter that is known from another time on", async (t) => {
    const folder = await written(t, ever, async ({ pays }) => {
      for (let n = 0; n < 3; n += 1) await pays(10);
    });
    assertSound(await deep(folder));
    const forged = changed(t, folder, (database) =>
      database.exec("UPDATE counters SET unknown_through = 1790000001500"),
    );
    const { firstWrong } = (await deep(forged)).counters;
    assert.deepEqual(
      [firstWrong?.counter, firstWrong?.expected, firstWrong?.found],
      ["pay.spent", "-1", "1790000001500"],
    );
  });

  test("a counter that is made known, although a check was blocked because it was not", async (t) => {
    const folder = await written(t, none, async ({ pays, erases, loads }) => {
      await pays(10);
      await pays(10);
      await erases(2);
      await loads(ever);
      await pays(10);
    });
    assertSound(await deep(folder));
    assert.equal((await deep(folder)).notReplayable, 1, "only the erased row");
    const forged = changed(t, folder, (database) => database.exec("UPDATE counters SET unknown_through = -1"));
    assert.equal((await deep(forged)).counters.firstWrong?.found, "-1");
  });

  test("an older event that is taken back, although no outcome does", async (t) => {
    const folder = await written(t, none, async ({ pays, fails, loads }) => {
      await pays(20);
      await fails(await pays(10));
      await loads(settling);
      await pays(3);
    });
    assertSound(await deep(folder));
    const forged = changed(t, folder, takeBackFirst);
    const { firstWrong } = (await deep(forged)).counters;
    assert.deepEqual([firstWrong?.seq, firstWrong?.expected, firstWrong?.found], [3, "10", "10, 20"]);
  });

  test("a check that was decided with a forged counter", async (t) => {
    const folder = await written(t, none, async ({ pays, fails, loads }) => {
      await pays(20);
      await fails(await pays(10));
      await loads(settling);
      await pays(3);
    });
    const forged = changed(t, folder, takeBackFirst);
    await written(t, settling, async ({ pays }) => void (await pays(4)), forged);
    const { differs, firstDiffering } = await deep(forged);
    assert.deepEqual([differs, firstDiffering?.seq, firstDiffering?.what], [1, 6, "trace"]);
    assert.match(firstDiffering?.recorded ?? "", /"pay.spent":"3"/);
    assert.match(firstDiffering?.again ?? "", /"pay.spent":"23"/);
  });

  test("an older event that is missing in a counter which started empty and came back", async (t) => {
    const folder = await written(t, empty, async ({ pays, loads, waits }) => {
      await pays(10);
      await loads(none);
      await pays(10);
      await loads(empty);
      waits(7_200_000);
      await pays(10);
    });
    assertSound(await deep(folder));
    const forged = changed(t, folder, (database) => {
      database.exec("DELETE FROM effects WHERE folded IS NOT NULL; UPDATE counters SET folded = folded - 1");
      database.exec("UPDATE effects SET total = '20' WHERE seq = (SELECT max(seq) FROM effects)");
    });
    assert.equal((await deep(forged)).counters.firstWrong?.seq, 3);
  });
});

suite("honest ledgers", () => {
  test("a counter that starts empty, leaves and comes back, after calls that it does not count", async (t) => {
    const folder = await written(t, none, async ({ pays, loads, waits }) => {
      await pays(100);
      await loads(empty);
      await pays(1);
      await loads(none);
      await pays(2);
      await loads(empty);
      await pays(3);
      waits(7_200_000);
      await pays(4);
    });
    const found = await deep(folder);
    assertSound(found);
    assert.deepEqual([found.replayed, found.notReplayable, found.counters.events], [5, 0, 1]);
  });

  test("an outcome of a call that was erased before the counter came into force", async (t) => {
    const folder = await written(t, none, async ({ pays, fails, erases, loads }) => {
      const call = await pays(20);
      await fails(call);
      await erases(call.seq);
      await loads(settling);
      await pays(3);
    });
    const found = await deep(folder);
    assertSound(found);
    assert.deepEqual([found.replayed, found.notReplayable], [1, 1]);
  });
});
