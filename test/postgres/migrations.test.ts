/**
 * Goal: the schema can change while a gate serves. Method: a second numbered step, which only this test has, runs on
 * the test's own database while a gate process is under load. Control: a step that removes a column that the gate reads
 * makes its checks fail.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { migrations } from "../../packages/gate/src/ledger/store/postgres/schema.ts";
import { migratePostgres, openPostgres } from "../../packages/gate/src/ledger/store/postgres/postgres.ts";
import { control } from "../support/controls/control.ts";
import {
  ask,
  check,
  finish,
  key,
  spawnGate,
  temporaryFolder,
  type ProcessOptions,
  type Spawned,
} from "../support/gate.ts";
import { empty, sharedPostgres, type Databases } from "../support/databases.ts";

const server = await sharedPostgres({ after });

if (typeof server === "string") test("PostgreSQL: migrations", { skip: server }, () => undefined);
else migrating(server);

/** All migrations of a later version. */
type Later = typeof migrations;

/** The numbers of this version's migrations. */
const steps = migrations.map((_, index) => index + 1);
/** The number of the migration that a later version adds. */
const next = steps.length + 1;

/** A later version that adds a column, an index and a table. */
const adding: Later = [
  ...migrations,
  [
    "ALTER TABLE svc_gate.receipts ADD COLUMN note text",
    "CREATE INDEX receipts_by_note ON svc_gate.receipts (ledger, note) WHERE note IS NOT NULL",
    "CREATE TABLE svc_gate.notes (ledger text NOT NULL, note text NOT NULL, PRIMARY KEY (ledger, note))",
  ],
];

/** A later version whose second step fails at its end. */
const failing: Later = [...migrations, [...(adding.at(-1) ?? []), "SELECT 1 / 0"]];

/** A later version that removes a column that gates of this version need. */
const breaking: Later = [...migrations, ["ALTER TABLE svc_gate.receipts RENAME COLUMN evidence TO proof"]];

interface Setup {
  /** The URL for the owner of the schema. */
  readonly url: string;
  readonly gate: ProcessOptions;
}

async function newSetup(t: TestContext, there: Databases): Promise<Setup> {
  const { url: urlOf, gateUrl } = await there.create(empty);
  const url = urlOf();
  const folder = temporaryFolder(t);
  const env = {
    SVC_API_KEY: key,
    SVC_LOG: "silent",
    SVC_DATA_DIR: join(folder, "data"),
    SVC_DATABASE_URL: gateUrl,
  };
  assert.deepEqual(await migratePostgres({ url, servingRole: "gate" }), steps);
  return { url, gate: { cwd: folder, env } };
}

async function statusOf(gate: Spawned): Promise<number> {
  const waiting = check(gate, { tool_name: "note.add", tool_input: {} });
  return waiting.then(({ status }) => status).catch(() => 0); // 0 means that the gate has ended
}

/** Sends checks one after another until the work is done, and then 20 more. */
async function checksDuring(gate: Spawned, work: () => Promise<unknown>): Promise<readonly number[]> {
  const statuses = [await statusOf(gate)];
  const done = new AbortController();
  const working = work().finally(() => done.abort());
  while (!done.signal.aborted) statuses.push(await statusOf(gate));
  for (let more = 0; more < 20; more += 1) statuses.push(await statusOf(gate));
  await working;
  return statuses;
}

function migrating(there: Databases): void {
  suite("PostgreSQL: a later migration", () => {
    test("a migration runs beside a serving gate, and the gate answers every check", async (t) => {
      const { url, gate: options } = await newSetup(t, there);
      const later = { url, migrations: adding };
      const gate = await spawnGate(t, [], options);
      await assert.rejects(
        openPostgres(later),
        new RegExp(`\\bversion ${next - 1}\\b.*\\bversion ${next}\\b.*\`svc-gate migrate\``),
      );
      const statuses = await checksDuring(gate, async () =>
        assert.deepEqual(await migratePostgres({ ...later, servingRole: "gate" }), [next]),
      );
      assert.deepEqual(new Set(statuses), new Set([200]));
      assert.equal((await ask(gate, "/ledger/verify")).json.rows, statuses.length);
      assert.equal((await ask(gate, "/ledger/verify")).json.ok, true);
      assert.deepEqual(await migratePostgres(later), [], "each step runs once");
      await (await openPostgres(later)).close();
      const { code, stderr } = await finish(t, ["serve", "--port", "0"], options);
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`\\bversion ${next}\\b.*\\bversion ${next - 1}\\b.*\\bnewer gate\\b`));
    });

    control("positive control: a migration that removes a column that the gate needs is noticed", async (t) => {
      const { url, gate: options } = await newSetup(t, there);
      const gate = await spawnGate(t, [], options);
      const statuses = await checksDuring(gate, () => migratePostgres({ url, migrations: breaking }));
      assert.equal(statuses[0], 200);
      assert.notEqual(statuses.at(-1), 200);
    });

    test("a failed migration leaves nothing behind and runs completely the next time", async (t) => {
      const { url, gate: options } = await newSetup(t, there);
      const gate = await spawnGate(t, [], options);
      const statuses = await checksDuring(gate, () =>
        assert.rejects(migratePostgres({ url, migrations: failing }), /division by zero/),
      );
      assert.deepEqual(new Set(statuses), new Set([200]));
      await (await openPostgres({ url })).close();
      assert.deepEqual(await migratePostgres({ url, migrations: adding }), [next], "its table is not there yet");
      assert.equal(await statusOf(gate), 200);
    });

    test("three concurrent migrators run a migration once", async (t) => {
      const { url } = await newSetup(t, there);
      const done = await Promise.all([1, 2, 3].map(() => migratePostgres({ url, migrations: adding })));
      assert.deepEqual(done.flat(), [next]);
    });

    test("a start with permission to migrate runs the migration", async (t) => {
      const { url } = await newSetup(t, there);
      await (await openPostgres({ url, migrations: adding, mayMigrate: true })).close();
      assert.deepEqual(await migratePostgres({ url, migrations: adding }), []);
    });
  });
}
