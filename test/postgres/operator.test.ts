/**
 * Goal: an operator's set-up works. The serving role can add but not change rows; one tenant's connection sees nothing
 * of another's; the schema changes under running gates; a database that would lose receipts is refused. Method: each is
 * tried on the test's own server, and next to each the actions that must still work.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import {
  migratePostgres,
  openPostgres,
  type DatabaseOptions,
} from "../../packages/gate/src/ledger/store/postgres/postgres.ts";
import { makeLedgerRows } from "../../packages/gate/src/ledger/history/history.ts";
import type { Database } from "../../packages/gate/src/ledger/store/store.ts";
import { LedgerRefused, NotKept } from "../../packages/gate/src/ledger/errors.ts";
import { control } from "../support/controls/control.ts";
import { sentencesOf } from "../support/sentences.ts";
import { sha256, temporaryFolder } from "../support/ledger-fixture.ts";
import { startPostgres, type PostgresServer } from "../support/postgres-server.ts";
import { commit, storedRow } from "../support/store-suite.ts";

const says = sentencesOf(import.meta.filename);

const server = await startPostgres({ after });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of operators", { skip: server }, () => undefined);
else {
  await server.run("CREATE ROLE app LOGIN PASSWORD 'app'; CREATE ROLE stranger LOGIN PASSWORD 'stranger'");
  await migratePostgres({ url: server.url(), servingRole: "app" });
  setUp(server, server.url({ user: "app", password: "app" }));
}

async function open(t: TestContext, options: DatabaseOptions): Promise<Database> {
  const database = await openPostgres(options);
  t.after(() => database.close());
  return database;
}

async function connect(t: TestContext, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  t.after(() => client.end().catch(() => undefined));
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** Expects an error, by a pattern without prose or by the name of the sentence. */
const refused =
  (expected: RegExp | string) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof LedgerRefused);
    if (typeof expected === "string") says(expected, error.message);
    else assert.match(error.message, expected);
    return !error.message.includes("\n");
  };

function setUp(there: PostgresServer, app: string): void {
  suite("PostgreSQL: the privileges of the serving role", () => {
    const forbidden = [
      "UPDATE svc_gate.receipts SET leaf = 'x'",
      "UPDATE svc_gate.receipts SET seq = 2",
      "UPDATE svc_gate.receipts SET verdict = 'ALLOW'",
      "DELETE FROM svc_gate.receipts",
      "TRUNCATE svc_gate.receipts",
      "UPDATE svc_gate.effects SET total = '0'",
      "DELETE FROM svc_gate.effects",
      "UPDATE svc_gate.nodes SET hash = ''",
      "DELETE FROM svc_gate.nodes",
      "UPDATE svc_gate.contracts SET text = 'x'",
      "DELETE FROM svc_gate.contracts",
      "DELETE FROM svc_gate.ledgers",
      "UPDATE svc_gate.ledgers SET counter_secret = 'x'",
      "UPDATE svc_gate.ledgers SET log = 'x'",
      "DELETE FROM svc_gate.counters",
      "UPDATE svc_gate.counters SET definition = 'x'",
      "ALTER TABLE svc_gate.receipts DISABLE ROW LEVEL SECURITY",
      "DROP POLICY one_ledger ON svc_gate.receipts",
      "INSERT INTO svc_gate.migrations (number) VALUES (999)",
    ];

    test("the serving role can add rows and erase evidence, but the database refuses every other change", async (t) => {
      const database = await open(t, { url: app });
      assert.deepEqual(database.warnings, []);
      const store = await database.open({ ledger: "rights", log: "example.org/rights" });
      await store.keepContract(sha256("c"), "c");
      await store.keepCounter({ digest: sha256("d"), definition: "d", through: null, unknownThrough: -1 }, []);
      await commit(store, [storedRow(1)], [{ seq: 1, at: 1, counter: sha256("d"), key: sha256("k"), amount: "1" }]);
      await store.keyNotes.keepUses(new Map([["key", 5]]));
      await store.keyNotes.keepUses(new Map([["key", 4]]));
      assert.deepEqual(await store.keyNotes.uses(), new Map([["key", 5]]));
      const client = await connect(t, app);
      await client.query("SET svc.ledger = 'rights'");
      for (const sql of forbidden)
        await assert.rejects(client.query(sql), (error: { readonly code?: string }) => error.code === "42501", sql);
      assert.deepEqual((await client.query("SELECT seq FROM svc_gate.receipts")).rows, [{ seq: "1" }]);
      const erased = await client.query("UPDATE svc_gate.receipts SET evidence = '', session = NULL, tool = ''");
      assert.equal(erased.rowCount, 1, "positive control: it may erase");
    });

    control("positive control: a gate that connects as the owner warns that it can change receipts", async (t) => {
      const database = await open(t, { url: there.url() });
      says("the warning of an owner", database.warnings.join());
      await commit(await database.open({ ledger: "owner", log: undefined }), [storedRow(1)]);
      await there.run("UPDATE svc_gate.receipts SET leaf = 'changed' WHERE ledger = 'owner'");
    });

    test("the gate refuses a role without privileges and names `svc-gate migrate`", async () => {
      const url = there.url({ user: "stranger", password: "stranger" });
      await assert.rejects(openPostgres({ url }), refused(/svc-gate migrate/));
    });

    test("the gate refuses a role that lacks one privilege and names the command that grants it", async (t) => {
      await there.run("CREATE ROLE former LOGIN PASSWORD 'former'");
      await migratePostgres({ url: there.url(), servingRole: "former" });
      const url = there.url({ user: "former", password: "former" });
      await open(t, { url });
      for (const taken of ["INSERT ON svc_gate.nodes", "UPDATE (checkpoint) ON svc_gate.ledgers"]) {
        await there.run(`REVOKE ${taken} FROM former`);
        await assert.rejects(openPostgres({ url }), refused("a role lacks a privilege"));
        await migratePostgres({ url: there.url(), servingRole: "former" });
      }
      await open(t, { url });
    });
  });

  suite("PostgreSQL: tenants", () => {
    test("a connection of one tenant cannot read or write the rows of another tenant", async (t) => {
      const database = await open(t, { url: app });
      for (const ledger of ["tenant-a", "tenant-b"]) {
        const store = await database.open({ ledger, log: undefined });
        await commit(store, [storedRow(1, { leaf: ledger })]);
        await store.keepContract(sha256(ledger), ledger);
      }
      const client = await connect(t, app);
      const leaves = async (): Promise<readonly unknown[]> =>
        (await client.query<{ leaf: string }>("SELECT leaf FROM svc_gate.receipts")).rows.map(({ leaf }) => leaf);
      assert.deepEqual(await leaves(), [], "a connection that says no tenant sees none");
      await client.query("SET svc.ledger = 'tenant-a'");
      assert.deepEqual(await leaves(), ["tenant-a"]);
      for (const table of ["receipts", "effects", "ledgers", "counters", "contracts", "key_uses", "nodes"]) {
        const { rows } = await client.query(`SELECT ledger FROM svc_gate.${table} WHERE ledger <> 'tenant-a'`);
        assert.deepEqual(rows, [], table);
      }
      assert.equal((await client.query("UPDATE svc_gate.ledgers SET seq = 9 WHERE ledger = 'tenant-b'")).rowCount, 0);
      await assert.rejects(
        client.query(
          "INSERT INTO svc_gate.receipts (ledger, seq, tool, verdict, leaf, evidence) VALUES ('tenant-b', 2, '', '', '', '')",
        ),
        /row-level security/,
      );
      await client.query("SET svc.ledger = 'tenant-b'");
      assert.deepEqual(await leaves(), ["tenant-b"], "positive control: it was there to be seen");
    });

    test("many tenants can add rows at the same time over few connections", async (t) => {
      const database = await open(t, { url: app, connectionsMax: 3 });
      const stores = await Promise.all(
        Array.from({ length: 40 }, (_, at) => database.open({ ledger: `many-${at}`, log: undefined })),
      );
      await Promise.all(
        stores.map(async (store) => {
          for (let seq = 1; seq <= 5; seq += 1) await commit(store, [storedRow(seq)]);
        }),
      );
      const ends = await Promise.all(
        stores.map(async (store) => (await Array.fromAsync(makeLedgerRows(store.tables).scan(5))).flat().length),
      );
      assert.deepEqual(new Set(ends), new Set([1]));
      const connections = await there.run(
        "SELECT 1 FROM pg_stat_activity WHERE application_name = 'svc-gate' AND usename = 'app'",
      );
      assert.ok(connections.length <= 3 + 8, `${connections.length} connections`);
    });

    test("if gates create a ledger at once, one creates it and all read the same values", async (t) => {
      const database = await open(t, { url: app });
      const stores = await Promise.all(
        Array.from({ length: 6 }, () => database.open({ ledger: "begun", log: undefined })),
      );
      assert.equal(stores.filter(({ opened }) => opened.created).length, 1);
      for (const name of ["log", "counterSecret"] as const)
        assert.equal(new Set(stores.map(({ opened }) => opened[name])).size, 1, name);
    });

    test("the gate refuses a ledger's id that could end an SQL literal", async (t) => {
      const database = await open(t, { url: app });
      for (const ledger of ["a'b", "", "a b", "a;b", "ä", "-a", "a".repeat(101)])
        await assert.rejects(database.open({ ledger, log: undefined }), /is not the id of a ledger/);
    });
  });

  suite("PostgreSQL: the schema", () => {
    test("migrations that run at the same time apply each step once", async (t) => {
      await there.run("CREATE DATABASE twice");
      const url = there.url().replace(/\/postgres$/, "/twice");
      const done = await Promise.all([migratePostgres({ url }), migratePostgres({ url }), migratePostgres({ url })]);
      assert.deepEqual(
        done.flat().toSorted((a, b) => a - b),
        [1, 2],
      );
      await (await open(t, { url })).open({ ledger: "default", log: undefined });
    });

    test("the gate refuses an older schema unless it may migrate, and always refuses a newer one", async (t) => {
      await there.run("CREATE DATABASE ages");
      const url = there.url().replace(/\/postgres$/, "/ages");
      await assert.rejects(openPostgres({ url }), refused("an older schema"));
      await open(t, { url, mayMigrate: true });
      const client = await connect(t, url);
      await client.query("INSERT INTO svc_gate.migrations (number) VALUES (99)");
      await assert.rejects(openPostgres({ url, mayMigrate: true }), refused("a newer schema"));
      await assert.rejects(migratePostgres({ url }), refused(/at version 99/));
    });

    test("migrate can run while a gate adds rows", async (t) => {
      const database = await open(t, { url: app });
      const store = await database.open({ ledger: "moving", log: undefined });
      let seq = 0;
      const moved = Promise.all(
        Array.from({ length: 5 }, () => migratePostgres({ url: there.url(), servingRole: "app" })),
      );
      while (seq < 50) await commit(store, [storedRow((seq += 1))]);
      assert.deepEqual((await moved).flat(), []);
    });

    test("migrate refuses a role that does not exist", async () => {
      await assert.rejects(migratePostgres({ url: there.url(), servingRole: "nobody's" }), refused("no such role"));
    });
  });

  suite("PostgreSQL: databases that the gate refuses at the start", () => {
    const cases: readonly (readonly [string, Partial<DatabaseOptions>])[] = [
      ["a path in place of a URL", { url: "ledger.db" }],
      ["a URL of another protocol", { url: "mysql://127.0.0.1/x" }],
      ["a port where no server listens", { url: there.url({ port: 1 }) }],
      ["a wrong password", { url: there.url({ user: "app", password: "secret-word" }) }],
      ["a database that does not exist", { url: `${there.url()}-none` }],
      ["a server without TLS", { url: there.url({ query: "?sslmode=require" }) }],
      ["a pool of one connection", { url: there.url(), connectionsMax: 1 }],
    ];
    for (const [name, options] of cases) {
      test(`the error for ${name} is one sentence without the password`, async () => {
        await assert.rejects(
          openPostgres({ url: there.url(), ...options }),
          (error) => refused(name)(error) && !String(error).includes("secret-word"),
        );
      });
    }

    test("the gate turns synchronous_commit on for a role that has it off", async (t) => {
      await there.run("CREATE ROLE hasty LOGIN PASSWORD 'hasty'; ALTER ROLE hasty SET synchronous_commit = off");
      await migratePostgres({ url: there.url(), servingRole: "hasty" });
      const url = there.url({ user: "hasty", password: "hasty" });
      const database = await open(t, { url });
      const store = await database.open({ ledger: "hasty", log: undefined });
      await there.run("CREATE TABLE seen (value text); GRANT INSERT ON seen TO hasty");
      await there.run(`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$`);
      await there.run(
        "CREATE TRIGGER note BEFORE INSERT ON svc_gate.receipts FOR EACH ROW WHEN (NEW.ledger = 'hasty') EXECUTE FUNCTION note()",
      );
      await commit(store, [storedRow(1)]);
      await there.run("DROP TRIGGER note ON svc_gate.receipts");
      assert.deepEqual(await there.run("SELECT value FROM seen"), [{ value: "on" }]);
      const client = await connect(t, url);
      assert.deepEqual(
        (await client.query("SHOW synchronous_commit")).rows,
        [{ synchronous_commit: "off" }],
        "positive control",
      );
    });

    test("the gate refuses a server that does not flush to disk", async (t) => {
      const careless = await startPostgres(t, { fsync: "off", full_page_writes: "off" });
      assert.ok(typeof careless !== "string");
      await assert.rejects(
        openPostgres({ url: careless.url(), mayMigrate: true }),
        refused(/fsync=off and full_page_writes=off/),
      );
    });
  });

  suite("PostgreSQL: TLS", () => {
    test("sslmode=verify-full accepts a certificate only if it is trusted and names the host", async (t) => {
      const folder = temporaryFolder(t);
      const made = spawnSync(
        "openssl",
        [
          "req",
          "-x509",
          "-newkey",
          "rsa:2048",
          "-nodes",
          "-days",
          "2",
          "-subj",
          "/CN=localhost",
          "-addext",
          "subjectAltName=DNS:localhost",
        ].concat(["-keyout", join(folder, "server.key"), "-out", join(folder, "server.crt")]),
      );
      if (made.status !== 0) return t.skip("openssl is not installed");
      const ca = join(folder, "server.crt");
      const secure = await startPostgres(t);
      assert.ok(typeof secure !== "string");
      const { uid, gid } = statSync(secure.folder);
      for (const name of ["server.key", "server.crt"]) {
        const target = join(secure.folder, name);
        writeFileSync(target, readFileSync(join(folder, name)));
        chmodSync(target, 0o600);
        if (process.getuid?.() === 0) chownSync(target, uid, gid);
      }
      await secure.run("ALTER SYSTEM SET ssl = on");
      await secure.run("SELECT pg_reload_conf()");
      while ((await secure.run("SHOW ssl"))[0]?.["ssl"] !== "on") await wait(20);
      const at = (host: string, query: string): string => secure.url({ query }).replace("127.0.0.1", host);
      const database = await open(t, {
        url: at("localhost", `?sslmode=verify-full&sslrootcert=${ca}`),
        mayMigrate: true,
      });
      const store = await database.open({ ledger: "default", log: undefined });
      await commit(store, [storedRow(1)]);
      assert.equal((await store.verify(1, [])).rows, 1, "the walk has its own connection");
      const inUse = await secure.run(
        "SELECT 1 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'svc-gate'",
      );
      assert.ok(inUse.length > 0);
      await open(t, { url: at("localhost", "?sslmode=require") });
      for (const [url, pattern] of [
        [at("localhost", "?sslmode=verify-full"), /DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED/],
        [at("127.0.0.1", `?sslmode=verify-full&sslrootcert=${ca}`), /ERR_TLS_CERT_ALTNAME_INVALID|altname/i],
        [at("localhost", "?sslmode=verify-full&sslrootcert=/srv/none.crt"), /sslrootcert|ENOENT/],
      ] as const)
        await assert.rejects(openPostgres({ url }), refused(pattern), url);
    });
  });

  test("a database on loopback causes no warning, and a remote one that cannot be reached is an error", async (t) => {
    const { warnings } = await open(t, { url: app });
    assert.deepEqual(warnings, [], "loopback is not");
    await assert.rejects(
      openPostgres({ url: "postgres://app:secret-word@192.0.2.1/x", within: { connect: 300 } }),
      refused(/192\.0\.2\.1:5432\/x cannot be reached/),
    );
  });

  test("if no connection is free, opening a ledger fails, and a transaction in progress still commits", async (t) => {
    const database = await open(t, { url: app });
    const store = await database.open({ ledger: "crowded", log: undefined });
    const [transaction, other] = [await store.begin(), await database.open({ ledger: "crowded-2", log: undefined })];
    const lock = await other.begin();
    await there.run("ALTER ROLE app CONNECTION LIMIT 0");
    await assert.rejects(
      database.open({ ledger: "crowded-3", log: undefined }),
      (error) => error instanceof NotKept && /no free connection/.test(error.message),
    );
    await there.run("ALTER ROLE app CONNECTION LIMIT -1");
    await lock.abort();
    await transaction.commit([storedRow(1)], []);
  });

  test("a store on a read-only database has no room and starts no transaction", async (t) => {
    const database = await open(t, { url: app });
    const store = await database.open({ ledger: "reading", log: undefined });
    assert.equal(await store.hasRoom(), true);
    await there.run("ALTER ROLE app SET default_transaction_read_only = on");
    const later = await open(t, { url: app });
    await assert.rejects(later.open({ ledger: "reading-2", log: undefined }), (error) => error instanceof NotKept);
    const known = await later.open({ ledger: "reading", log: undefined });
    assert.equal(await known.hasRoom(), false);
    await assert.rejects(known.begin(), (error) => error instanceof NotKept && /only reads/.test(error.message));
    await there.run("ALTER ROLE app RESET default_transaction_read_only");
  });
}
