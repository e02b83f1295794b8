/**
 * Goal: the shared engine erases as the embedded one does, from a role that can change nothing else. The server's
 * tables do not contain the texts after their owner has rewritten them. Method: the suite of both engines on the test's
 * own server, whose data files are searched. The write-ahead log is searched too, and the test states which texts it
 * keeps.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test, type TestContext } from "node:test";
import { at0, eraserOn, eraseOn, erasureSuite, fill, hourMs } from "../support/erasure-suite.ts";
import { NotKept } from "../../packages/gate/src/ledger/errors.ts";
import { openPostgres, migratePostgres } from "../../packages/gate/src/ledger/in-database.ts";
import { openLedger, type Database, type Ledger } from "../../packages/gate/src/ledger/mod.ts";
import { withoutParts } from "../../packages/core/src/record/entry/evidence.ts";
import { bounds, clientConfig, makePool, transact } from "../../packages/gate/src/ledger/store/postgres/session.ts";
import { postgresTables, type PipelineReader } from "../../packages/gate/src/ledger/store/postgres/tables.ts";
import { walkStore } from "../../packages/gate/src/ledger/history/walk.ts";
import { append, engine, entry, temporaryFolder } from "../support/ledger-fixture.ts";
import { startPostgres, type PostgresServer } from "../support/postgres-server.ts";

// A recycled log segment gets another name and keeps its content until it is overwritten, so the test recycles none.
// Statistics keep samples of a table's values. The test runs ANALYZE itself, so that the server's timing does not
// matter.
const server = await startPostgres({ after }, { wal_keep_size: 0, wal_recycle: "off", autovacuum: "off" });

if (typeof server === "string") test("PostgreSQL: erasure", { skip: server }, () => undefined);
else erasureOn(server);

function erasureOn(there: PostgresServer): void {
  let database: Database;
  let served: Database;
  before(async () => {
    database = await openPostgres({ url: there.url(), mayMigrate: true });
    await there.run("CREATE ROLE gate LOGIN PASSWORD 'gate'");
    await migratePostgres({ url: there.url(), servingRole: "gate" });
    served = await openPostgres({ url: there.url({ user: "gate", password: "gate" }) });
  });
  after(async () => {
    await served.close();
    await database.close();
  });

  const ids = new WeakMap<Ledger, string>();
  let count = 0;
  const open = async (t: TestContext, on: Database): Promise<Ledger> => {
    count += 1;
    const id = `erasure-${count}`;
    const ledger = await openLedger({ folder: temporaryFolder(t), shared: { database: on, ledger: id }, engine });
    t.after(() => ledger.close());
    ids.set(ledger, id);
    return ledger;
  };

  erasureSuite("PostgreSQL", {
    open: (t) => open(t, served),
    alter: async (ledger, seq, set) => {
      await there.run(`UPDATE svc_gate.receipts SET ${set} WHERE ledger = '${ids.get(ledger)}' AND seq = ${seq}`);
    },
  });

  suite("PostgreSQL: the right to erase and the bytes that remain", () => {
    test("the gate's role cannot change leaves, and an erasure without the right to erase is refused", async (t) => {
      const ledger = await open(t, served);
      await fill(ledger, 1, 4);
      const client = there.url({ user: "gate", password: "gate" });
      const { Client } = (await import("pg")).default;
      const gate = new Client({ connectionString: client });
      await gate.connect();
      t.after(() => gate.end());
      await gate.query(`SET svc.ledger TO '${ids.get(ledger)}'`);
      for (const column of ["leaf", "verdict", "seq", "ledger"])
        await assert.rejects(gate.query(`UPDATE svc_gate.receipts SET ${column} = ${column}`), { code: "42501" });
      await assert.rejects(gate.query("DELETE FROM svc_gate.receipts"), { code: "42501" });
      await there.run("REVOKE UPDATE (evidence, session, tool) ON svc_gate.receipts FROM gate");
      const eraser = eraserOn(ledger);
      const wanted = { target: { rows: [[1, 2]] as const }, parts: ["reason"] as const, reason: "why" };
      await assert.rejects(
        eraser.erase(wanted, "dpo"),
        (error) => error instanceof NotKept && error.why === "forbidden",
      );
      assert.equal((await ledger.verify()).rows, 4, "nothing of it is kept");
      await migratePostgres({ url: there.url(), servingRole: "gate" });
      assert.ok((await eraser.erase(wanted, "dpo")).ok);
      assert.equal((await ledger.verify()).broken, undefined);
    });

    test("verification accepts an erasure that a row records during the run, and finds any other", async (t) => {
      const pool = makePool(clientConfig(there.url(), bounds), 1);
      t.after(() => pool.end());
      const found: (number | undefined)[] = [];
      for (const isLawful of [true, false]) {
        const ledger = await open(t, served);
        await fill(ledger, 1, 300);
        const id = ids.get(ledger) ?? "";
        let reads = 0;
        const read: PipelineReader = async (...query) => {
          reads += 1;
          if (reads === 3) {
            // The erasure's row is far behind the end that the walk has reached.
            await fill(ledger, 301, 600);
            if (isLawful) await eraseOn(ledger, { target: { rows: [[290, 290]] }, parts: ["reason"] });
            else await takeAway(there, id, 290);
          }
          return transact(pool, id, query, true);
        };
        const { broken } = await walkStore(postgresTables(read, id), { from: 2, anchors: [] });
        found.push(broken?.seq);
      }
      assert.deepEqual(found, [undefined, 290], "and what no row records is found all the same");
    });

    test("erased bytes stay in tables until VACUUM FULL and in the write-ahead log until it is removed", async (t) => {
      const ledger = await open(t, served);
      const texts = {
        at: at0 + 200 * hourMs,
        inputText: '{"note":"KESTREL"}',
        sessionId: "KESTREL",
        platformText: '{"payee":"KESTREL"}',
      };
      await fill(ledger, 1, 100);
      for (let batch = 0; batch < 20; batch += 1)
        await append(ledger, Array.from({ length: 20 }, () => [entry(texts), []])); // prettier-ignore
      await there.run("CHECKPOINT");
      await there.run("ANALYZE svc_gate.receipts");
      assert.deepEqual(whereIs(there.folder, "KESTREL"), ["base", "pg_wal"], "positive control");
      const erased = await eraseOn(ledger, {
        target: { session: "KESTREL", key: undefined },
        parts: ["call", "input", "platform"],
      });
      assert.equal(erased.rows, 400);
      const advised = [...(erased.remains ?? "").matchAll(/VACUUM (?:FULL|\([A-Z, ]+\)) [a-z_.]+/g)].map(String);
      assert.deepEqual(advised, ["VACUUM (FULL, ANALYZE) svc_gate.receipts", "VACUUM FULL pg_statistic"]);
      await there.run("CHECKPOINT");
      assert.ok(whereIs(there.folder, "KESTREL").includes("base"), "positive control");
      await there.run("VACUUM FULL svc_gate.receipts");
      await there.run("CHECKPOINT");
      assert.ok(whereIs(there.folder, "KESTREL").includes("base"), "positive control: the statistics have it");
      for (const command of advised) await there.run(command);
      await there.run("CHECKPOINT");
      assert.deepEqual(whereIs(there.folder, "KESTREL"), ["pg_wal"]);
      await there.run("SELECT pg_switch_wal()");
      await there.run("CHECKPOINT");
      assert.deepEqual(whereIs(there.folder, "KESTREL"), []);
      assert.equal((await ledger.verify()).broken, undefined);
    });
  });
}

/** Replaces a part by its digest without a row that allows it. */
async function takeAway(there: PostgresServer, ledger: string, seq: number): Promise<void> {
  const where = `WHERE ledger = '${ledger}' AND seq = ${seq}`;
  const [row] = await there.run(`SELECT evidence FROM svc_gate.receipts ${where}`);
  const evidence = withoutParts(String(row?.["evidence"]), ["reason"]);
  await there.run(`UPDATE svc_gate.receipts SET evidence = '${evidence}' ${where}`);
}

/** Returns the data folders of a server whose files contain a text, plain or as base64url. */
function whereIs(folder: string, text: string): readonly string[] {
  const needles = [0, 1, 2].map((shift) => {
    const encoded = Buffer.from(`${"_".repeat(shift)}${text}`).toString("base64url");
    return Buffer.from(encoded.slice(Math.ceil((shift * 4) / 3), Math.floor(((shift + text.length) * 8) / 6)));
  });
  const found = new Set<string>();
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const file = join(folder, name);
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) continue;
    const bytes = readFileSync(file);
    if ([Buffer.from(text), ...needles].some((needle) => bytes.includes(needle))) found.add(name.split("/")[0] ?? "");
  }
  return [...found].toSorted();
}
