/**
 * Goal: whatever a gate writes while a ledger is verified, the walk reports nothing. A walk reads a table in one statement and the
 * rows that it refers to in another, so a commit may come between any two of them. Method: a walk over a ledger with one of
 * everything is repeated once for each of its reads, and before this read a gate acts. A change by hand must be reported.
 */
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test, type TestContext } from "node:test";
import type { Mistake } from "../../../packages/core/src/record/entry/row.ts";
import { walkStore } from "../../../packages/gate/src/ledger/history/walk.ts";
import { openLedger, type Ledger } from "../../../packages/gate/src/ledger/mod.ts";
import { SqliteTables } from "../../../packages/gate/src/ledger/store/sqlite/tables.ts";
import { makeTables, withPromises } from "../../../packages/gate/src/ledger/store/tables.ts";
import { control } from "../../support/controls/control.ts";
import { eraseOn } from "../../support/erasure-suite.ts";
import {
  append,
  at0,
  definitions,
  deny,
  engine,
  entry,
  fail,
  makeSample,
  openRow,
  park,
  sampleRows,
  sha256,
  temporaryFolder,
} from "../../support/ledger-fixture.ts";

type Act = (ledger: Ledger) => Promise<unknown>;

/** Later than all rows of the sample. */
const at = at0 + 3_600_000;
const event = { counter: sha256(definitions.live), key: "k", amount: "1" };

const acts: Readonly<Record<string, Act>> = {
  "rows with events are added": (ledger) =>
    append(
      ledger,
      [1, 2, 3].map(() => [entry({ at }), [event]] as const),
    ),
  "a call that waits is erased": (ledger) =>
    eraseOn(ledger, { target: { rows: [[openRow, openRow]] }, parts: ["call"] }),
  "every call is erased": (ledger) => eraseOn(ledger, { target: { rows: [[1, sampleRows]] }, parts: ["call"] }),
  "a call that waits is denied": async (ledger) => {
    const [approval] = await ledger.tables.approvals({ before: openRow + 1, limit: 1 });
    assert.ok(approval !== undefined);
    await deny(ledger, approval, at);
  },
  "a call is parked and denied, and another fails": async (ledger) => {
    await deny(ledger, await park(ledger));
    await fail(ledger, at);
  },
  "a counter is folded from older rows": async (ledger) => {
    const folded = [1, 2, 3].map((seq) => ({ ...event, counter: sha256("begun"), seq, at: seq }));
    await ledger.keepCounter({ definition: "begun", through: sampleRows, unknownThrough: -1 }, folded);
    await ledger.keepCounter({ definition: "begun", through: null, unknownThrough: -1 }, []);
    await append(ledger, [[entry({ at }), [{ ...event, counter: sha256("begun") }]]]);
  },
};

interface Walked {
  readonly broken: Mistake | undefined;
  readonly reads: number;
}

/**
 * Walks over a copy of a ledger. Its reads come one after the other, also those that start together.
 *
 * @param readNumber the read before which something happens
 */
async function walkOver(folder: string, readNumber: number, act: () => Promise<unknown>): Promise<Walked> {
  const database = new DatabaseSync(join(folder, "ledger.db"), { readOnly: true });
  const tables = withPromises(new SqliteTables(database));
  let reads = 0;
  let before: Promise<unknown> = Promise.resolve();
  const beside = makeTables((method, ...args) => {
    const read = before.then(async () => {
      reads += 1;
      if (reads === readNumber) await act();
      return (tables[method] as (...of: readonly unknown[]) => Promise<unknown>)(...args);
    });
    before = read.catch(() => undefined);
    return read;
  });
  const { broken } = await walkStore(beside, { from: 1, anchors: [] });
  database.close();
  return { broken, reads };
}

async function copyOf(t: TestContext, sample: string): Promise<string> {
  const folder = temporaryFolder(t);
  cpSync(sample, folder, { recursive: true });
  return folder;
}

suite("SQLite: verify between any two reads", { tags: ["verify.walks-chain"] }, () => {
  for (const [title, act] of Object.entries(acts))
    test(`verify reports nothing if, before any of its reads, ${title}`, async (t) => {
      const sample = temporaryFolder(t);
      await makeSample(sample);
      let last = 1;
      for (let read = 1; read <= last; read += 1) {
        const folder = await copyOf(t, sample);
        const ledger = await openLedger({ folder, engine });
        try {
          const { broken, reads } = await walkOver(folder, read, () => act(ledger));
          assert.deepEqual(broken, undefined, `before read ${read}`);
          last = Math.max(last, reads);
          assert.equal((await ledger.verify()).broken, undefined);
        } finally {
          await ledger.close();
        }
      }
      t.diagnostic(`${last} reads`);
      assert.ok(last > 20, `${last} reads`);
    });

  control(
    "positive control: an amount that is reserved by hand before the walk's first read is reported",
    async (t) => {
      const folder = temporaryFolder(t);
      await makeSample(folder);
      const { broken } = await walkOver(folder, 1, async () => {
        const database = new DatabaseSync(join(folder, "ledger.db"));
        database.exec("UPDATE holds SET seq = 1");
        database.close();
      });
      assert.notEqual(broken, undefined);
    },
  );
});
