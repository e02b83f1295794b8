/**
 * Goal: a database of before the tree gets one, whole and signed, when a later gate opens it, whoever goes on meanwhile; and
 * rows that an earlier gate adds past the tree are noticed. Method: the schema of version 1 and a gate of that time, played
 * by its own statements; what the later gate made of it is worked out again from the leaves.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import pg from "pg";
import { leafHash, openLedger, type Ledger } from "../src/ledger/mod.ts";
import { zeroHash } from "../src/ledger/leaf.ts";
import { ledgerSeal } from "../src/ledger/stores/postgres-rows.ts";
import { migrations } from "../src/ledger/stores/postgres-schema.ts";
import { migratePostgres, openPostgres, type Database } from "../src/ledger/stores/postgres.ts";
import type { StoredRow, StoreTurn } from "../src/ledger/stores/store.ts";
import { openCheckpoint } from "../src/ledger/tree/checkpoint.ts";
import { Frontier } from "../src/ledger/tree/merkle.ts";
import { Turn } from "../src/ledger/turn.ts";
import { append, contracts, engine, entry, sha256, temporaryFolder } from "./ledger-fixture.ts";
import { startPostgres, type PostgresServer } from "./postgres-server.ts";

const server = await startPostgres({ after });

if (typeof server === "string") test("PostgreSQL: growing the tree", { skip: server }, () => undefined);
else growing(server);

const log = "example.org/older";
const earlierEngine = "svc-gate/0.9.0";
const ledgerId = "root";

/** A database as the first version left it, and a gate of that time on it. */
interface Older {
  readonly folder: string;
  readonly url: string;
  readonly client: pg.Client;
}

async function older(t: TestContext, there: PostgresServer): Promise<Older> {
  const name = `older_${randomUUID().replaceAll("-", "")}`;
  await there.run(`CREATE DATABASE ${name}`);
  const url = there.url().replace(/\/postgres$/, `/${name}`);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  t.after(() => client.end());
  await client.query("CREATE SCHEMA svc_gate; CREATE TABLE svc_gate.migrations (number int PRIMARY KEY)");
  for (const step of migrations[0] ?? []) await client.query(step);
  await client.query("INSERT INTO svc_gate.migrations (number) VALUES (1)");
  const secret = "0".repeat(64);
  const described = [ledgerId, log, secret, ledgerSeal(ledgerId, log, secret), sha256(contracts[0]), earlierEngine];
  await client.query(
    `INSERT INTO svc_gate.ledgers (ledger, log, counter_secret, seal, seq, changed, counters, contract, mode, engine)
       VALUES ($1, $2, $3, $4, 0, 0, 0, $5, 'enforce', $6)`,
    described,
  );
  const contract = [ledgerId, sha256(contracts[0]), contracts[0]];
  await client.query("INSERT INTO svc_gate.contracts (ledger, digest, text) VALUES ($1, $2, $3)", contract);
  return { folder: temporaryFolder(t), url, client };
}

class Superseded extends Error {}

/**
 * One batch of the earlier gate, in a transaction that holds the head's lock.
 *
 * @throws {Superseded} where another engine has taken over, unless it does not look
 */
async function writeEarlier({ client }: Older, count: number, looks = true): Promise<void> {
  await client.query("BEGIN");
  const sql = "SELECT seq::int AS seq, leaf, engine FROM svc_gate.ledgers WHERE ledger = $1 FOR UPDATE";
  const found = await client.query<{ seq: number; leaf: string | null; engine: string }>(sql, [ledgerId]);
  const [head] = found.rows;
  assert.ok(head);
  if (looks && head.engine !== earlierEngine) {
    await client.query("ROLLBACK");
    throw new Superseded(head.engine);
  }
  const { seq, leaf } = head;
  const rows = await rowsAfter({ seq, hash: leaf === null ? zeroHash : leafHash(leaf), at: 0 }, count);
  for (const row of rows)
    await client.query(
      `INSERT INTO svc_gate.receipts (ledger, seq, session, tool, verdict, leaf, evidence)
         VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      [ledgerId, row.seq, row.session, row.tool, row.verdict, row.leaf, row.evidence],
    );
  const last = rows.at(-1);
  const moved = [ledgerId, last?.seq, last?.leaf];
  await client.query("UPDATE svc_gate.ledgers SET seq = $2, leaf = $3 WHERE ledger = $1", moved);
  await client.query("COMMIT");
}

/** Rows, made the way every gate makes them. */
async function rowsAfter(head: Turn["head"], count: number): Promise<readonly StoredRow[]> {
  const made: StoredRow[] = [];
  const store: StoreTurn = {
    head: undefined,
    changed: 0,
    inForce: undefined,
    frontier: undefined,
    signer: undefined,
    at: undefined,
    values: () => Promise.resolve([]),
    keepCounter: () => Promise.resolve(),
    commit: (rows) => Promise.resolve(void made.push(...rows)),
    abort: () => Promise.resolve(),
  };
  const digest = (text: string): string => sha256(text);
  const counterOf = (): never => assert.fail("it keeps no counters");
  const signing = { tree: new Frontier(), sign: () => Promise.resolve(""), committed: () => undefined };
  const turn = new Turn({ head, log, engine: earlierEngine, store, digest, counterOf, ...signing });
  for (let row = 0; row < count; row += 1) turn.append(entry(), []);
  await turn.commit();
  return made;
}

/** Has the earlier gate write until it is superseded; `wrote` tells of each batch. */
async function keepWriting(at: Older, wrote: () => void): Promise<unknown> {
  try {
    for (;;) {
      await writeEarlier(at, 3);
      wrote();
    }
  } catch (error) {
    return error;
  }
}

async function open(t: TestContext, { url }: Older): Promise<Database> {
  const database = await openPostgres({ url });
  t.after(() => database.close());
  return database;
}

function laterGate({ folder }: Older, database: Database): Promise<Ledger> {
  const signingKeyFile = join(folder, "signing.key");
  return openLedger({ folder, shared: { database, ledger: ledgerId }, engine, signingKeyFile });
}

interface Kept {
  readonly seq: number;
  readonly frontier: string | null;
  readonly checkpoint: string | null;
  readonly engine: string;
}

async function kept({ client }: Older): Promise<Kept> {
  const sql = "SELECT seq::int AS seq, frontier, checkpoint, engine FROM svc_gate.ledgers WHERE ledger = $1";
  const [row] = (await client.query<Kept>(sql, [ledgerId])).rows;
  assert.ok(row);
  return row;
}

/** The head row has the tree of the leaves and the signature of the gate's key over it; so many rows. */
async function assertSigned(at: Older, ledger: Ledger): Promise<number> {
  const { rows } = await at.client.query<{ leaf: string }>("SELECT leaf FROM svc_gate.receipts ORDER BY seq");
  const tree = new Frontier();
  for (const { leaf } of rows) tree.append(leafHash(leaf));
  const { seq, frontier, checkpoint } = await kept(at);
  assert.deepEqual([seq, frontier], [rows.length, `${rows.length} ${tree.text()}`]);
  const opened = openCheckpoint(checkpoint ?? "", ledger.verifiers);
  assert.ok(opened.ok, opened.ok ? "" : opened.problem);
  assert.deepEqual([opened.value.size, opened.value.root], [rows.length, tree.root()]);
  assert.equal(await ledger.checkpoint(), checkpoint);
  assert.equal((await ledger.verify()).broken, undefined);
  return rows.length;
}

function growing(there: PostgresServer): void {
  suite("PostgreSQL: a ledger of before the tree", () => {
    test("gets one when it is opened, beside an earlier gate that writes on until it is taken over from", async (t) => {
      const at = await older(t, there);
      for (let batch = 0; batch < 3; batch += 1) await writeEarlier(at, 100);
      await assert.rejects(openPostgres({ url: at.url }), /at version 1, and this gate needs version 2/);
      const more = Promise.withResolvers<void>();
      const ended = keepWriting(at, more.resolve);
      assert.deepEqual(await migratePostgres({ url: at.url }), [2]);
      await more.promise;
      const database = await open(t, at);
      const ledger = await laterGate(at, database);
      assert.ok((await ended) instanceof Superseded, String(await ended));
      const size = await assertSigned(at, ledger);
      assert.ok(size > 300, `${size} rows: it wrote meanwhile`);
      await append(ledger, [[entry(), []]]);
      assert.equal(await assertSigned(at, ledger), size + 1);
      const other = await laterGate(at, database);
      await append(other, [[entry(), []]]);
      assert.equal(await assertSigned(at, ledger), size + 2, "and another goes on from there");
    });

    test("is grown by two that open it at once, and both go on", async (t) => {
      const at = await older(t, there);
      for (let batch = 0; batch < 3; batch += 1) await writeEarlier(at, 100);
      await migratePostgres({ url: at.url });
      const database = await open(t, at);
      await (await laterGate(at, database)).close();
      await at.client.query("UPDATE svc_gate.ledgers SET frontier = NULL, checkpoint = NULL");
      await at.client.query("DELETE FROM svc_gate.nodes");
      const ledgers = await Promise.all([laterGate(at, database), laterGate(at, database)]);
      for (const ledger of ledgers) {
        await assertSigned(at, ledger);
        await append(ledger, [[entry(), []]]);
      }
      assert.equal(await assertSigned(at, ledgers[0]), 302);
    });

    test("that has rows past its tree is not gone on with: an earlier gate is noticed, and the next start grows it", async (t) => {
      const at = await older(t, there);
      await writeEarlier(at, 100);
      await migratePostgres({ url: at.url });
      const database = await open(t, at);
      const ledger = await laterGate(at, database);
      await append(ledger, [[entry(), []]]);
      assert.equal(await assertSigned(at, ledger), 101, "positive control: without one it goes on");
      await assert.rejects(writeEarlier(at, 1), Superseded);
      await writeEarlier(at, 1, false);
      const signed = (await kept(at)).checkpoint;
      await assert.rejects(ledger.begin(), /does not reach its last row 102: a gate of an earlier version has written/);
      assert.equal((await kept(at)).checkpoint, signed, "and nothing was signed over it");
      assert.match((await ledger.verify()).broken?.problem ?? "", /the tree that is kept at the head/);
      assert.equal(await assertSigned(at, await laterGate(at, database)), 102);
    });

    test("is signed only where its rows follow each other", async (t) => {
      const at = await older(t, there);
      await writeEarlier(at, 40);
      await migratePostgres({ url: at.url });
      const database = await open(t, at);
      const spoilt = `UPDATE svc_gate.receipts SET leaf = replace(leaf, '"ALLOW"', '"BLOCK"') WHERE seq = 7`;
      await at.client.query(spoilt);
      await assert.rejects(laterGate(at, database), /the ledger is damaged at row 8: the leaf does not follow/);
      assert.deepEqual([(await kept(at)).frontier, (await kept(at)).checkpoint], [null, null]);
      await at.client.query(spoilt.replace('"ALLOW"', '"x"').replace('"BLOCK"', '"ALLOW"').replace('"x"', '"BLOCK"'));
      assert.equal(await assertSigned(at, await laterGate(at, database)), 40, "positive control: put back, it is");
    });
  });
}
