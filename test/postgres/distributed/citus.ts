/**
 * Goal: ledgers on a distributed engine keep the promises of one node: every answered check once, in one chain, with
 * exact counters, whatever happens to a node. Method: a Citus coordinator with two workers on loopback; the suite of
 * all engines. Two gates serve load on several tenants while a worker is killed (SIGKILL) and started again. `npm run
 * distributed` runs it; DISTRIBUTED_KILLS sets the number of kills.
 */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Agent } from "node:http";
import { basename, join } from "node:path";
import { after, before, suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { openPostgres } from "../../../packages/gate/src/ledger/store/postgres/postgres.ts";
import type { Database } from "../../../packages/gate/src/ledger/store/store.ts";
import { startGate, type GateProcess } from "../../support/gate-process.ts";
import { temporaryFolder } from "../../support/ledger-fixture.ts";
import { findCitus, shardsOf, startCluster } from "./cluster.ts";
import type { PostgresServer } from "../../support/postgres-server.ts";
import { storeSuite } from "../../support/store-suite.ts";
import { ask, Callers, contract, lostOf, problemsOf, type Row, type Tenant } from "./load.ts";

const kills = Number(process.env["DISTRIBUTED_KILLS"] ?? 4);
const ids = Array.from({ length: 8 }, (_, at) => `tenant-${at + 1}`);

/** All gates of this file share the root's ledger, and so its key. */
const signingKey = generateKeyPairSync("ed25519").privateKey.export({ format: "pem", type: "pkcs8" });

const citus = findCitus();
if ("missing" in citus) throw new Error(citus.missing);
const cluster = await startCluster({ after }, citus.binaries);

suite("Citus: the store", () => {
  let database: Database;
  before(async () => {
    database = await openPostgres({ url: cluster.servingUrl });
  });
  after(() => database.close());

  storeSuite("Citus", {
    kind: "shared",
    open: (folder) => database.open({ ledger: basename(folder), log: undefined }),
    sharer: join(import.meta.dirname, "..", "..", "support", "store-sharer.ts"),
    env: () => ({ SVC_DATABASE_URL: cluster.servingUrl }),
    intrude: async (folder) => {
      await cluster.coordinator.run(
        `INSERT INTO svc_gate.receipts (ledger, seq, tool, verdict, leaf, evidence)
           VALUES ('${basename(folder)}', 2, 't', 'ALLOW', 'x', 'y')`,
      );
    },
    intruded: /duplicate key/,
  });
});

suite("Citus: gates", () => {
  test(`two gates under load with ${kills} kills of a worker and a move lose no answered check, and counters are exact`, async (t) => {
    const { gates, tenants } = await startGates(t, "agent");
    const urls = gates.map(({ url }) => url);
    const callers = new Callers(urls, tenants, 3);
    t.after(() => callers.stop());
    for (let kill = 0; kill < kills; kill += 1) {
      await callers.more(ids, 40);
      const worker = cluster.workers[kill % 2] ?? assert.fail();
      await worker.kill();
      await callers.more(await tenantsElsewhere(worker), 40);
      await worker.start();
    }
    await callers.more(ids, 40);
    await moveTenant(ledgerOf(ids[0] ?? ""));
    await callers.more(ids, 40);
    await callers.stop();
    let rows = 0;
    for (const tenant of tenants) rows += await assertKept(tenant, callers, urls);
    const answers = `${callers.answers.length} answered, ${callers.unanswered} without a verdict`;
    t.diagnostic(`${kills} kills, ${answers}, ${rows} rows, 0 lost`);
    assert.ok(callers.unanswered > 0, "the kills were felt");
  });

  test("if a worker dies after an unreported commit, the answer still comes, with exactly one receipt", async (t) => {
    const { gates, tenants } = await startGates(t, "lost-commit");
    const [{ id, key }] = tenants as readonly [Tenant];
    const worker = await cluster.workerOf(ledgerOf(id));
    const kept = (await rowsOf(ledgerOf(id))).length;
    // A commit that waits for a missing standby is on the worker's disk but is not confirmed.
    await worker.run("ALTER SYSTEM SET synchronous_standby_names TO 'nobody'");
    await worker.run("SELECT pg_reload_conf()");
    const body = JSON.stringify({ tool_name: "payment.send", tool_input: { amount: 1 }, session_id: "lost" });
    const waiting = ask(`${gates[0]?.url}/t/${id}/check`, { agent: new Agent(), key, body });
    while ((await worker.run("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")).length === 0)
      await wait(20);
    await worker.kill();
    writeFileSync(join(worker.folder, "postgresql.auto.conf"), "");
    await worker.start();
    const { receipt } = await waiting;
    const rows = await rowsOf(ledgerOf(id));
    assert.equal(rows.length, kept + 1);
    assert.deepEqual(lostOf([{ tenant: id, verdict: "ALLOW", ...receipt }], rows), []);
    assert.equal(receipt.seq, rows.length);
  });

  test("each tenant's rows are in one shard, and both workers have tenants", async () => {
    const shards = await shardsOf(cluster.coordinator, ids.map(ledgerOf));
    assert.deepEqual(new Set(shards.map(({ port }) => port)), new Set(cluster.workers.map(({ port }) => port)));
    for (const { ledger, shard, port } of shards) {
      const rows = (await rowsOf(ledger)).length;
      assert.ok(rows > 0, ledger);
      for (const worker of cluster.workers)
        assert.equal(
          await rowsIn(worker, shard, ledger),
          worker.port === port ? rows : undefined,
          `${ledger} at ${worker.port}`,
        );
    }
  });

  test("on the workers too, a transaction sees only the rows of its own ledger", async () => {
    const [own, other] = [ledgerOf(ids[0] ?? ""), ledgerOf(ids[1] ?? "")];
    const told = "-c citus.propagate_set_commands=local";
    assert.ok((await seen(own, own, told)) > 0);
    assert.equal(await seen(own, other, told), 0);
    assert.equal(await seen(own, own, ""), 0, "workers that are not told which ledger it is show nothing");
  });
});

/** Checks that every answer is stored once and unchanged, and that the stored rows are valid. */
async function assertKept({ id, key }: Tenant, callers: Callers, urls: readonly string[]): Promise<number> {
  const rows = await rowsOf(ledgerOf(id));
  const answers = callers.answers.filter(({ tenant }) => tenant === id);
  assert.deepEqual(problemsOf(rows).slice(0, 5), [], id);
  assert.deepEqual(lostOf(answers, rows).slice(0, 5), [], id);
  assert.equal(new Set(answers.map(({ seq }) => seq)).size, answers.length, `${id}: a receipt for each answer`);
  for (const url of urls) await assertVerifies(`${url}/t/${id}`, key, rows.length);
  assertNoticed(rows);
  return rows.length;
}

async function assertVerifies(url: string, key: string, rows: number): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, connection: "close" };
  const response = await fetch(`${url}/ledger/verify`, { headers });
  const verified = (await response.json()) as { readonly ok: boolean; readonly rows: number };
  assert.deepEqual({ ok: verified.ok, rows: verified.rows }, { ok: true, rows });
}

/** Positive control: the checks notice a missing row, a wrong counter and an answer without its row. */
function assertNoticed(rows: readonly Row[]): void {
  const [first, second] = rows;
  assert.ok(first !== undefined && second !== undefined);
  assert.ok(problemsOf(rows.toSpliced(3, 1)).length > 0);
  assert.ok(problemsOf([first, { ...second, evidence: first.evidence }]).length > 0);
  const answer = { tenant: "", seq: rows.length, hash: "0".repeat(64), verdict: "ALLOW" };
  assert.equal(lostOf([answer], rows).length, 1);
  assert.equal(lostOf([answer], rows.slice(0, -1)).length, 1);
}

interface Started {
  readonly gates: readonly GateProcess[];
  readonly tenants: readonly Tenant[];
}

/** Starts two gates that share the cluster's ledgers, and makes a key for each tenant that both gates know. */
async function startGates(t: TestContext, keyName: string): Promise<Started> {
  const folder = temporaryFolder(t);
  const contracts = join(folder, "load.yaml");
  const tenantsFile = join(folder, "tenants.yaml");
  writeFileSync(contracts, contract);
  const entries = ids.map((id) => `  ${id}: { mandate: load.yaml, mode: enforce }\n`);
  writeFileSync(tenantsFile, `tenants:\n${entries.join("")}`);
  const gates: GateProcess[] = [];
  for (const name of ["one", "two"]) {
    mkdirSync(join(folder, name));
    const settings = {
      SVC_DATABASE_URL: cluster.servingUrl,
      SVC_MANDATE: contracts,
      SVC_MODE: "enforce",
      SVC_TENANTS: tenantsFile,
      SVC_DATA_DIR: join(folder, name),
      SVC_SIGNING_KEY: signingKey,
    };
    const gate = await startGate({ settings });
    t.after(() => gate.kill());
    gates.push(gate);
  }
  const { key: operator } = JSON.parse(readFileSync(join(folder, "one", "operator.json"), "utf8")) as { key: string };
  const tenants = await Promise.all(
    ids.map(async (id) => ({ id, key: await makeKey(`${gates[0]?.url}/t/${id}`, operator, keyName) })),
  );
  for (const { url } of gates) for (const { id, key } of tenants) await known(`${url}/t/${id}/rules`, key);
  return { gates, tenants };
}

async function makeKey(url: string, operator: string, name: string): Promise<string> {
  const response = await fetch(`${url}/admin/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json", connection: "close" },
    body: JSON.stringify({ name, scopes: ["check", "rules", "receipts"] }),
  });
  const made = (await response.json()) as { readonly key: string };
  assert.equal(response.status, 201, JSON.stringify({ ...made, key: undefined }));
  return made.key;
}

/** Waits until the gate knows the key: a gate learns within a second of keys that another gate has made. */
async function known(url: string, key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, connection: "close" };
  while ((await fetch(url, { headers })).status === 401) await wait(50);
}

function ledgerOf(tenant: string): string {
  return `tenant.${tenant}`;
}

async function tenantsElsewhere({ port }: PostgresServer): Promise<readonly string[]> {
  const shards = await shardsOf(cluster.coordinator, ids.map(ledgerOf));
  return ids.filter((id) => shards.some((shard) => shard.ledger === ledgerOf(id) && shard.port !== port));
}

async function rowsOf(ledger: string): Promise<readonly Row[]> {
  const rows = await cluster.coordinator.run(
    `SELECT seq::int, leaf, evidence FROM svc_gate.receipts WHERE ledger = '${ledger}' ORDER BY seq`,
  );
  return rows as unknown as readonly Row[];
}

/** Moves a ledger's shard of all tables to the other worker, as a rebalancing does. */
async function moveTenant(ledger: string): Promise<void> {
  const from = await cluster.workerOf(ledger);
  const to = cluster.workers.find((worker) => worker !== from) ?? assert.fail();
  const [shard] = await shardsOf(cluster.coordinator, [ledger]);
  await cluster.coordinator.run(
    `SELECT citus_move_shard_placement(${shard?.shard}, '127.0.0.1', ${from.port}, '127.0.0.1', ${to.port}, 'block_writes')`,
  );
  await cluster.coordinator.run("CALL citus_cleanup_orphaned_resources()");
  assert.equal(await cluster.workerOf(ledger), to);
}

/** Returns how many rows of a ledger the serving role sees in a transaction of one ledger. */
async function seen(transactionOf: string, ledger: string, options: string): Promise<number> {
  const client = new pg.Client({ connectionString: cluster.servingUrl, options });
  await client.connect();
  try {
    await client.query("BEGIN");
    await client.query(`SET LOCAL svc.ledger TO '${transactionOf}'`);
    const { rows } = await client.query("SELECT count(*)::int AS rows FROM svc_gate.receipts WHERE ledger = $1", [
      ledger,
    ]);
    return Number(rows[0]?.rows);
  } finally {
    await client.end();
  }
}

/** Undefined if the shard is not on this worker. */
async function rowsIn(worker: PostgresServer, shard: string, ledger: string): Promise<number | undefined> {
  const table = `svc_gate.receipts_${shard}`;
  const [row] = await worker.run(`SELECT to_regclass('${table}') IS NOT NULL AS here`);
  if (row?.["here"] !== true) return undefined;
  const [found] = await worker.run(`SELECT count(*)::int AS rows FROM ${table} WHERE ledger = '${ledger}'`);
  return Number(found?.["rows"]);
}
