/**
 * Goal: the embedded engine keeps every engine's promises, and its files survive damage. Method: the suite of all
 * engines; write-ahead logs that were cut at every length; a full disk (a separate file system, if this user may mount
 * one).
 */
import assert from "node:assert/strict";
import { copyFileSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { inspectLedger, openLedger } from "../../../packages/gate/src/ledger/mod.ts";
import { NotKept } from "../../../packages/gate/src/ledger/errors.ts";
import { makeLedgerRows } from "../../../packages/gate/src/ledger/history/history.ts";
import { openSqlite } from "../../../packages/gate/src/ledger/store/sqlite/sqlite.ts";
import { smallDisk } from "../../support/faults/small-disk.ts";
import {
  append,
  contracts,
  definitions,
  engine,
  entry,
  sha256,
  temporaryFolder,
} from "../../support/ledger-fixture.ts";
import { commit, storedRow, storeSuite } from "../../support/store-suite.ts";

storeSuite("SQLite", {
  kind: "owned",
  open: (folder, mustExist = false) => openSqlite({ folder, log: undefined, mustExist }),
  owner: join(import.meta.dirname, "..", "..", "support", "store-owner.ts"),
  intrude: (folder) => {
    const database = new DatabaseSync(join(folder, "ledger.db"));
    database.exec(
      "INSERT INTO receipts (seq, session, tool, verdict, leaf, evidence) VALUES (2, NULL, 't', 'ALLOW', 'x', 'y')",
    );
    database.close();
  },
  intruded: /somebody else has written/,
});

suite("SQLite: verify beside a gate", { tags: ["verify.walks-chain"] }, () => {
  test("verify succeeds while counters are started and counted", async (t) => {
    const folder = temporaryFolder(t);
    const ledger = await openLedger({ folder, engine, pinFile: join(temporaryFolder(t), "pin") });
    t.after(() => ledger.close());
    await ledger.keepContract(contracts[0]);
    const many = Array.from({ length: 2000 }, () => [entry(), []] as const);
    await append(ledger, many);
    let started = 0;
    const start = async (): Promise<void> => {
      const definition = `begun ${started}`;
      started += 1;
      await ledger.keepCounter({ definition, through: null, unknownThrough: -1 }, []);
      await append(ledger, [[entry(), [{ counter: sha256(definition), key: "k", amount: "1" }]]]);
    };
    const { broken, rows } = await ledger.verify(async (slice) => {
      await start();
      return slice();
    });
    assert.equal(broken, undefined);
    assert.ok(started > 1 && rows > many.length, `${started} counters, ${rows} rows`);
  });
});

suite("SQLite: the files of the store", { tags: ["verify.walks-chain"] }, () => {
  test("a write-ahead log that is cut anywhere leaves whole batches, a valid chain and matching counters", async (t) => {
    const folder = temporaryFolder(t);
    const ledger = await openLedger({ folder, engine, pinFile: join(temporaryFolder(t), "pin") });
    t.after(() => ledger.close().catch(() => undefined));
    await ledger.keepContract(contracts[0]);
    await ledger.keepCounter({ definition: definitions.live, through: null, unknownThrough: -1 }, []);
    const batches = [1, 3, 2, 4, 1];
    for (const rows of batches)
      await append(
        ledger,
        Array.from(
          { length: rows },
          () => [entry(), [{ counter: sha256(definitions.live), key: "k", amount: "0.5" }]] as const,
        ),
      );
    const log = readFileSync(join(folder, "ledger.db-wal"));
    const wholes = batches.map((_, at) => batches.slice(0, at + 1).reduce((sum, rows) => sum + rows, 0));
    const reached = new Set<number>();
    const copy = temporaryFolder(t);
    for (let length = 0; length <= log.length; length += Math.ceil(log.length / 70)) {
      for (const name of ["ledger.db-shm", "head.pin", "ledger.db-wal", "ledger.db"])
        rmSync(join(copy, name), { force: true });
      copyFileSync(join(folder, "ledger.db"), join(copy, "ledger.db"));
      writeFileSync(join(copy, "ledger.db-wal"), log.subarray(0, length));
      const check = await inspectLedger({ folder: copy }).catch((error: Error) => error.message);
      if (typeof check === "string") assert.match(check, /\bempty\b|\bno ledger\b/, "cut before the tables were there");
      else {
        assert.equal(check.broken, undefined, `cut at ${length}`);
        assert.ok(check.rows === 0 || wholes.includes(check.rows), `${check.rows} rows: whole batches`);
        reached.add(check.rows);
      }
    }
    await ledger.close();
    assert.ok(reached.size >= batches.length, `cuts left ${[...reached].join(", ")} rows`);
  });

  test("the write-ahead log is checkpointed and stays under 24 MB beside an open reader", async (t) => {
    const folder = temporaryFolder(t);
    const store = await openSqlite({ folder, log: undefined, mustExist: false });
    t.after(() => store.close().catch(() => undefined));
    let seq = 0;
    const add = (rows: number): Promise<void> =>
      commit(
        store,
        Array.from({ length: rows }, () => storedRow((seq += 1), { evidence: "e".repeat(4000) })),
        [],
      );
    await add(1000);
    const reading = makeLedgerRows(store.tables).scan(1)[Symbol.asyncIterator]();
    await reading.next();
    for (let batch = 0; batch < 50; batch += 1) await add(200);
    const bytes = statSync(join(folder, "ledger.db-wal")).size;
    assert.ok(bytes < 24_000_000, `the log is ${bytes} bytes after ${seq * 4000} were written`);
    await reading.return?.();
    await store.close();
  });

  test("the ledger refuses rows on a full disk and accepts them when there is room again", async (t) => {
    const folder = smallDisk(t, 96);
    if (folder === undefined) return t.skip("this user may not mount a file system");
    const ledger = await openLedger({ folder, engine });
    t.after(() => ledger.close().catch(() => undefined));
    await ledger.keepContract(contracts[0]);
    await append(ledger, [[entry(), []]]);
    const filler = join(folder, "filler");
    writeFileSync(filler, Buffer.alloc(40 * 2 ** 20));
    assert.equal(await ledger.hasRoom(), false);
    await assert.rejects(
      append(ledger, [[entry(), []]]),
      (error) => error instanceof NotKept && error.why === "disk-full",
    );
    assert.equal(ledger.head.seq, 1);
    rmSync(filler);
    assert.equal(await ledger.hasRoom(), true);
    await append(ledger, [[entry(), []]]);
    const { rows, broken } = await ledger.verify();
    assert.deepEqual({ rows, broken }, { rows: 2, broken: undefined });
    await ledger.close();
  });

  test("the ledger explains in one sentence that it cannot be opened on a full disk", async (t) => {
    const folder = smallDisk(t, 1);
    if (folder === undefined) return t.skip("this user may not mount a file system");
    writeFileSync(join(folder, "filler"), Buffer.alloc(2 ** 20 - 16_384));
    await assert.rejects(openLedger({ folder, engine }), /\broom\b|\bfull\b|\bwritten\b/);
  });
});
