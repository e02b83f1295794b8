/**
 * Goal: whatever breaks around a COMMIT, a batch reported as stored is there, and a batch reported as not stored is
 * not. If neither is certain, the gate stops. Method: a proxy cuts the connection before and after the server has the
 * COMMIT; the server is killed with `kill -9` under load; a synchronous standby is missing; an operator ends or changes
 * sessions.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { openPostgres, type DatabaseOptions } from "../../packages/gate/src/ledger/store/postgres/postgres.ts";
import { makeLedgerRows } from "../../packages/gate/src/ledger/history/history.ts";
import type { Database } from "../../packages/gate/src/ledger/store/store.ts";
import type { LedgerStore } from "../../packages/gate/src/ledger/store/store.ts";
import { NotKept } from "../../packages/gate/src/ledger/errors.ts";
import type { StoredRow } from "../../packages/core/src/record/entry/row.ts";
import { Dice } from "../support/campaign/random.ts";
import { control } from "../support/controls/control.ts";
import { sha256 } from "../support/ledger-fixture.ts";
import { startProxy, type Proxy } from "../support/postgres-proxy.ts";
import { startPostgres, type PostgresServer } from "../support/postgres-server.ts";
import { printSeed, seedOf } from "../support/random-test.ts";
import { commit, storedRow } from "../support/store-suite.ts";

const server = await startPostgres({ after });

if (typeof server === "string") test("PostgreSQL: faults", { skip: server }, () => undefined);
else {
  await (await openPostgres({ url: server.url(), mayMigrate: true })).close();
  faultsOf(server);
}

async function open(t: TestContext, options: DatabaseOptions): Promise<{ database: Database; store: LedgerStore }> {
  const database = await openPostgres(options);
  t.after(() => database.close());
  return { database, store: await database.open({ ledger: randomUUID(), log: undefined }) };
}

async function allRows(store: LedgerStore): Promise<readonly StoredRow[]> {
  return (await Array.fromAsync(makeLedgerRows(store.tables).scan(1))).flat();
}

const notKept =
  (why: NotKept["why"]) =>
  (error: unknown): boolean =>
    error instanceof NotKept && error.why === why;

const isFault = (error: unknown): boolean => error instanceof Error && !(error instanceof NotKept);

function faultsOf(there: PostgresServer): void {
  const through = (proxy: Proxy): string => there.url({ port: proxy.port });

  suite("PostgreSQL: the connection is cut around a COMMIT", () => {
    test("a COMMIT that never reaches the server stores nothing, and the next batch takes its row", async (t) => {
      const proxy = await startProxy(t, there.port);
      const { store } = await open(t, { url: through(proxy) });
      await commit(store, [storedRow(1)]);
      const cut = proxy.cutNext("before");
      await assert.rejects(commit(store, [storedRow(2, { leaf: "lost" })]), notKept("not-committed"));
      await cut;
      await commit(store, [storedRow(2)]);
      assert.deepEqual(await allRows(store), [storedRow(1), storedRow(2)]);
    });

    for (const cut of ["after", "silent"] as const) {
      test(`the store keeps a committed batch exactly once if the connection is cut (${cut})`, async (t) => {
        const proxy = await startProxy(t, there.port);
        const { store } = await open(t, { url: through(proxy), within: { answer: 5000 } });
        const counter = { digest: sha256("c"), definition: "c", through: null, unknownThrough: -1 };
        await store.keepCounter(counter, []);
        const happened = proxy.cutNext(cut);
        await commit(store, [storedRow(1)], [{ seq: 1, at: 1, counter: sha256("c"), key: sha256("k"), amount: "2" }]);
        await happened;
        await commit(store, [storedRow(2)]);
        assert.deepEqual(await allRows(store), [storedRow(1), storedRow(2)]);
        const transaction = await store.begin();
        assert.deepEqual(await transaction.values([{ counter: sha256("c"), key: sha256("k"), after: -1 }]), ["2"]);
        await transaction.abort();
      });
    }

    test("the store reports a fault in time if it cannot ask whether a COMMIT succeeded", async (t) => {
      const proxy = await startProxy(t, there.port);
      const { store } = await open(t, { url: through(proxy), within: { settle: 300 } });
      for (const cut of ["before", "after"] as const) {
        const happened = proxy.cutNext(cut).then(() => void (proxy.admits = false));
        await assert.rejects(commit(store, [storedRow(1)]), isFault);
        await happened;
        proxy.admits = true;
      }
    });

    test("the store ignores a trigger's NOTICE and knows that the COMMIT succeeded", async (t) => {
      const proxy = await startProxy(t, there.port);
      const { store } = await open(t, { url: through(proxy), within: { settle: 300 } });
      await there.run(`CREATE FUNCTION says() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE NOTICE 'a row'; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER says AFTER INSERT ON svc_gate.receipts INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION says()`);
      await commit(store, [storedRow(1)]);
      proxy.admits = false;
      await commit(store, [storedRow(2)]);
      await there.run("DROP TRIGGER says ON svc_gate.receipts; DROP FUNCTION says()");
    });

    test("a turn without rows keeps its configuration only if the server has the COMMIT", async (t) => {
      const proxy = await startProxy(t, there.port);
      const { store } = await open(t, { url: through(proxy) });
      const inForce = { contract: "c", mode: "enforce", engine: "e" };
      const transaction = async (): Promise<void> => (await store.begin()).commit([], [], { inForce });
      void proxy.cutNext("before");
      await assert.rejects(transaction(), notKept("not-committed"));
      void proxy.cutNext("after");
      await transaction();
      const next = await store.begin();
      assert.deepEqual(next.inForce, inForce);
      await next.abort();
    });
  });

  suite("PostgreSQL: the server goes away", () => {
    test("the store keeps nothing while the server is unreachable, and reconnects at the next turn", async (t) => {
      const proxy = await startProxy(t, there.port);
      const { database, store } = await open(t, { url: through(proxy), within: { lock: 30_000 } });
      proxy.admits = false;
      proxy.sever();
      await assert.rejects(store.begin(), notKept("unreachable"));
      assert.deepEqual([await store.hasRoom(), await database.isReachable()], [false, false]);
      proxy.admits = true;
      const transaction = await store.begin();
      proxy.sever();
      await assert.rejects(
        transaction.values([{ counter: "c", key: "k", after: -1 }]).then(() => transaction.commit([storedRow(1)], [])),
        notKept("not-committed"),
      );
      await commit(store, [storedRow(1)]);
      assert.equal(await database.isReachable(), true);
    });

    test("a gate loses the head if it keeps it too long, and a waiting gate gets an error", async (t) => {
      // The other gate connects and waits in vain for as long as the first one may keep the lock.
      const within = { lock: 500, idleInTransaction: 6000 };
      const database = await openPostgres({ url: there.url(), within });
      t.after(() => database.close());
      const ledger = randomUUID();
      const [store, same] = [
        await database.open({ ledger, log: undefined }),
        await database.open({ ledger, log: undefined }),
      ];
      const other = await database.open({ ledger: randomUUID(), log: undefined });
      const hung = await store.begin();
      const refused: unknown = await same.begin().catch((error: unknown) => error);
      await commit(other, [storedRow(1)]);
      while (!(await canBegin(same))) await wait(50);
      await assert.rejects(hung.commit([storedRow(1)], []), notKept("not-committed"));
      assert.deepEqual(await allRows(store), []);
      assert.ok(
        notKept("unreachable")(refused) && /has locked the ledger's head/.test(String(refused)),
        String(refused),
      );
    });

    test("kill -9 of the server loses no committed row, keeps no uncommitted row and leaves no gap", async (t) => {
      const [kills, seed] = [5, seedOf("RANDOM_SEED")];
      printSeed(t, { cases: kills, seed, variable: "RANDOM_SEED" });
      const dice = new Dice(seed);
      const { store } = await open(t, { url: there.url(), within: { connect: 2000 } });
      const kept = new Set<string>();
      const stop = new AbortController();
      const load = (async () => {
        while (!stop.signal.aborted) {
          const leaf = randomUUID();
          try {
            const transaction = await store.begin();
            await transaction.commit([storedRow((transaction.head?.seq ?? 0) + 1, { leaf })], []);
            kept.add(leaf);
          } catch (error) {
            if (!(error instanceof NotKept)) throw error;
            await wait(10);
          }
        }
      })();
      const more = async (): Promise<void> => {
        for (const before = kept.size; kept.size < before + 20;) await Promise.race([wait(5), load]);
      };
      for (let killed = 0; killed < kills; killed += 1) {
        await more();
        await wait(dice.between(0, 10));
        await there.kill();
        await there.start();
      }
      await more();
      stop.abort();
      await load;
      const rows = await allRows(store);
      assert.deepEqual(new Set(rows.map(({ leaf }) => leaf)), kept);
      assert.deepEqual(
        rows.map(({ seq }) => seq),
        rows.map((_, at) => at + 1),
      );
    });
  });

  suite("PostgreSQL: a synchronous standby", () => {
    test("a commit waits for the synchronous standby, even if its wait is cancelled or long", async (t) => {
      const { primary, standby } = await startPair(t);
      const { store } = await open(t, { url: primary.url(), mayMigrate: true, within: { statement: 2000 } });
      await commit(store, [storedRow(1)]);
      for (const [at, end] of (["", "pg_cancel_backend", "pg_terminate_backend"] as const).entries()) {
        await standby.stop();
        let isKept = false;
        const committed = commit(store, [storedRow(at + 2)]).then(() => void (isKept = true));
        await waiting(primary, inWait);
        if (end !== "") await primary.run(`SELECT ${end}(pid) FROM (${inWait}) waits`);
        await wait(3000);
        assert.equal(isKept, false, `${end}: kept though no standby has it`);
        await standby.start();
        await committed;
      }
      assert.deepEqual(await standbyLeaves(standby), ["leaf 1", "leaf 2", "leaf 3", "leaf 4"]);
    });

    control("positive control: a client without the check takes a cancelled wait for a commit", async (t) => {
      const primary = await startPostgres(t, { synchronous_standby_names: "nobody" });
      assert.ok(typeof primary !== "string");
      await primary.run("SET synchronous_commit = local; CREATE TABLE kept (n int)");
      const client = new pg.Client({ connectionString: primary.url() });
      await client.connect();
      const inserted = client.query("INSERT INTO kept VALUES (1)");
      await waiting(primary, inWait);
      await primary.run(`SELECT pg_cancel_backend(pid) FROM (${inWait}) waits`);
      assert.equal((await inserted).rowCount, 1);
      await client.end();
    });

    test("a promoted standby has every batch that the store reported as kept", async (t) => {
      const { primary, standby } = await startPair(t);
      const proxy = await startProxy(t, primary.port);
      const { store } = await open(t, { url: primary.url({ port: proxy.port }), mayMigrate: true });
      for (let seq = 1; seq <= 20; seq += 1) await commit(store, [storedRow(seq)]);
      const unanswered = proxy.cutNext("after");
      const last = commit(store, [storedRow(21)]).catch((error: unknown) => assert.ok(error instanceof NotKept));
      proxy.lead(standby.port);
      await unanswered;
      await assert.rejects(store.begin(), (error) => notKept("unreachable")(error) && /only reads/.test(String(error)));
      await primary.kill();
      await standby.promote();
      await last;
      const transaction = await store.begin();
      const next = (transaction.head?.seq ?? 0) + 1;
      assert.ok(next > 20);
      await transaction.commit([storedRow(next)], []);
      assert.deepEqual(
        (await allRows(store)).map(({ leaf }) => leaf),
        Array.from({ length: next }, (_, at) => `leaf ${at + 1}`),
      );
    });
  });
}

const inWait = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/** Polls until a statement returns rows. */
async function waiting(server_: PostgresServer, sql: string): Promise<void> {
  while ((await server_.run(sql)).length === 0) await wait(20);
}

async function standbyLeaves(standby: PostgresServer): Promise<readonly unknown[]> {
  return (await standby.run("SELECT leaf FROM svc_gate.receipts ORDER BY seq")).map(({ leaf }) => leaf);
}

async function canBegin(store: LedgerStore): Promise<boolean> {
  try {
    await (await store.begin()).abort();
    return true;
  } catch {
    return false;
  }
}

/** Starts a primary whose COMMIT waits for its standby. */
async function startPair(t: TestContext): Promise<Readonly<Record<"primary" | "standby", PostgresServer>>> {
  const primary = await startPostgres(t);
  assert.ok(typeof primary !== "string");
  const standby = await primary.startStandby("b");
  await primary.run("ALTER SYSTEM SET synchronous_standby_names = 'b'");
  await primary.run("SELECT pg_reload_conf()");
  await waiting(primary, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
  return { primary, standby };
}
