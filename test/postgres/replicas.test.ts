/**
 * Goal: gates that share a ledger decide as one. Counters stay exact under concurrent load, a reload or revocation at
 * one gate applies to all, and a later version can take over. Method: gates as processes on the run's PostgreSQL,
 * each with a wrong clock; independent code sums their rows again.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import pg from "pg";
import { openLedger, readPin, type Ledger } from "../../packages/gate/src/ledger/mod.ts";
import { leafHash } from "../../packages/core/src/record/entry/mod.ts";
import { Frontier } from "../../packages/core/src/record/tree/merkle.ts";
import { openPostgres } from "../../packages/gate/src/ledger/store/postgres/postgres.ts";
import { planted, type Bug } from "../support/campaign/bugs.ts";
import { Load } from "../support/campaign/clients.ts";
import { contractOf } from "../support/campaign/contract.ts";
import { Dice } from "../support/campaign/random.ts";
import { compareWithLedger } from "../support/campaign/ledger-comparison.ts";
import { control } from "../support/controls/control.ts";
import {
  ask,
  check,
  finish,
  key,
  spawnGate,
  temporaryFolder,
  type Answer,
  type ProcessOptions,
  type Spawned,
} from "../support/gate.ts";
import { append, engine, entry } from "../support/ledger-fixture.ts";
import { mutatedEnvironment, preload as mutationPreload } from "../support/mutation/sources.ts";
import { databasesOn, sharedPostgres, type Databases } from "../support/databases.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { printSeed, seedOf } from "../support/random-test.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

function refusedAs(name: string): (error: Error) => boolean {
  return ({ message }) => {
    says(name, message);
    return true;
  };
}

/** Returns the message of the log line that contains `part`. */
function messageWith(log: string, part: string): string {
  return String(JSON.parse(log.split("\n").find((line) => line.includes(part)) ?? "{}").msg);
}

const seed = seedOf("REPLICAS_SEED");
const preload = pathToFileURL(join(import.meta.dirname, "..", "support", "campaign", "gate-preload.ts")).href;
const server = await sharedPostgres({ after });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of replicas", { skip: server }, () => undefined);
else replicas(server);

/** A database of one test, and the settings of gates that serve from it. */
interface Setup {
  readonly folder: string;
  /** The URL for the superuser. */
  readonly owner: string;
  /** The URL for gates. */
  readonly url: string;
}

async function newSetup(t: TestContext, there: Databases): Promise<Setup> {
  const database = await there.create();
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "contract.yaml"), contractOf(5));
  return { folder, owner: database.url(), url: database.gateUrl };
}

interface Wrong {
  readonly clockMs?: number;
  readonly version?: string;
  readonly bug?: Bug;
}

interface Replica extends Spawned {
  readonly operatorKey: string;
}

interface Start extends Wrong {
  readonly tenants?: string;
}

function settingsOf({ folder, url }: Setup, name: string, start: Start = {}): ProcessOptions {
  const { clockMs = 0, version, bug, tenants } = start;
  return {
    preload: [preload, mutationPreload],
    env: {
      SVC_API_KEY: key,
      SVC_MODE: "enforce",
      SVC_LOG: "warn",
      SVC_MANDATE: join(folder, "contract.yaml"),
      SVC_DATA_DIR: join(folder, name),
      SVC_DATABASE_URL: url,
      SVC_SIGNING_KEY: join(folder, "signing.key"),
      ...(tenants === undefined ? {} : { SVC_TENANTS: tenants }),
      CAMPAIGN_CLOCK: JSON.stringify([clockMs]),
      ...mutatedEnvironment([
        ...(version === undefined ? [] : [{ within: "version", value: JSON.stringify(version) }]),
        ...(bug === undefined ? [] : planted[bug]),
      ]),
    },
  };
}

async function startReplica(t: TestContext, at: Setup, name: string, start?: Start): Promise<Replica> {
  mkdirSync(join(at.folder, name));
  const gate = await spawnGate(t, [], settingsOf(at, name, start));
  const file = readFileSync(join(at.folder, name, "operator.json"), "utf8");
  return { ...gate, operatorKey: (JSON.parse(file) as { readonly key: string }).key };
}

interface KeptRow {
  readonly seq: number;
  readonly leaf: string;
}

async function rowsOf(owner: string): Promise<readonly KeptRow[]> {
  return asOwner(owner, "SELECT seq::int AS seq, leaf FROM svc_gate.receipts ORDER BY seq");
}

/** Removes all rows after the first, as if the server had been replaced by one that had only that row. */
async function takeBack(owner: string, first: KeptRow | undefined): Promise<void> {
  const tree = new Frontier();
  tree.append(leafHash(first?.leaf ?? ""));
  await asOwner(owner, "DELETE FROM svc_gate.receipts WHERE seq > 1");
  const head = "UPDATE svc_gate.ledgers SET seq = 1, leaf = $1, frontier = $2";
  await asOwner(owner, head, first?.leaf, `1 ${tree.text()}`);
}

async function asOwner(owner: string, sql: string, ...values: readonly unknown[]): Promise<readonly KeptRow[]> {
  const client = new pg.Client({ connectionString: owner });
  await client.connect();
  const { rows } = await client.query<KeptRow>(sql, [...values]);
  await client.end();
  return rows;
}

function act(gate: Replica, path: string, body: object = {}): Promise<Answer> {
  return ask(gate, path, {
    method: "POST",
    headers: { authorization: `Bearer ${gate.operatorKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

const spend = (account: string): object => ({
  tool_name: "spend",
  tool_input: { id: `${account}.0`, account, amount: 1 },
});

const hour = 3_600_000;

/**
 * If a machine pauses for seconds, its gates wait for the head in vain a few times; a broken gate does so many times.
 */
const failedMax = 20;

interface Shared {
  readonly count: number;
  readonly answers: number;
  readonly bug?: Bug;
}

/** Runs this many gates on one tenant, each called as fast as it answers; returns the results. */
async function loadOnOneTenant(t: TestContext, there: Databases, { count, answers, bug }: Shared) {
  const at = await newSetup(t, there);
  const from = Date.now();
  const file = join(at.folder, "tenants.yaml");
  writeFileSync(file, "tenants:\n  acme: { mandate: contract.yaml, mode: enforce }\n");
  const clocks = [0, 5 * hour, -7 * hour, 400 * 24 * hour].slice(0, count);
  const start = { tenants: file, ...(bug === undefined ? {} : { bug }) };
  const gates = await Promise.all(
    clocks.map((clockMs, number) => startReplica(t, at, `replica-${number}`, { ...start, clockMs })),
  );
  const [first] = gates;
  assert.ok(first);
  const made = await act(first, "/t/acme/admin/keys", { name: "agent", scopes: ["check", "receipts"] });
  assert.equal(made.status, 201, made.text);
  const urls = gates.map(({ address }) => `${address}/t/acme`);
  const headers = { authorization: `Bearer ${made.json.key}` };
  for (const url of urls) while ((await ask({ address: url }, "/receipts", { headers })).status !== 200) await wait(50);
  const load = new Load({ urls, dice: new Dice(seed), pauseMs: 0, accounts: "a", key: made.json.key });
  load.start(8);
  const failed = (): number => load.results.filter(({ kind }) => kind !== "answered").length;
  while (load.answered < answers && failed() < failedMax) await wait(20);
  await load.end();
  const verified = await ask({ address: urls.at(-1) ?? "" }, "/ledger/verify", { headers });
  const findings = await compareWithLedger(at.owner, "tenant.acme", load.results, { from, to: Date.now() });
  return { load, findings, verified };
}

function replicas(there: Databases): void {
  suite("PostgreSQL: replicas under load", () => {
    for (const count of [2, 4]) {
      test(`${count} replicas with different clocks keep counters exact and write one row for each answer`, async (t) => {
        printSeed(t, { cases: 800, seed, variable: "REPLICAS_SEED" });
        const { load, findings, verified } = await loadOnOneTenant(t, there, { count, answers: 800 });
        const { rows, checks, unanswered, lost, twice, keptThoughRefused, problems } = findings;
        assert.deepEqual(
          { lost, twice, keptThoughRefused, problems },
          { lost: [], twice: [], keptThoughRefused: [], problems: [] },
        );
        assert.deepEqual([checks, unanswered], [load.answered, 0]);
        assert.deepEqual([verified.json.ok, verified.json.rows], [true, rows]);
        const verdicts = new Set(
          load.results.map((results) => (results.kind === "answered" ? results.verdict : results.kind)),
        );
        assert.ok(verdicts.has("ALLOW") && verdicts.has("BLOCK"), "budgets were spent, and kept");
      });
    }

    const controls = [
      ["remembers-counters", /row \d+ read /],
      ["goes-by-its-own-clock", /row \d+ has a time that is not the database's/],
    ] as const;
    for (const [bug, seen] of controls) {
      control(`positive control: a gate that ${bug.replaceAll("-", " ")} is noticed`, async (t) => {
        const { findings } = await loadOnOneTenant(t, there, { count: 2, answers: 200, bug });
        assert.match(findings.problems.join("\n"), seen);
      });
    }
  });

  suite("PostgreSQL: rows that a gate treats as durable", () => {
    test("a gate accepts the loss of a row that it only read, not of a row it wrote", async (t) => {
      const at = await newSetup(t, there);
      const database = await openPostgres({ url: at.url });
      t.after(() => database.close());
      const pinFile = join(at.folder, "pin");
      const open = (pin?: string): Promise<Ledger> =>
        openLedger({ folder: at.folder, shared: { database, ledger: "certain" }, engine, pinFile: pin });
      const [other, ledger] = [await open(), await open(pinFile)];
      await append(other, [[entry(), []]]);
      const [kept] = await rowsOf(at.owner);
      await append(other, [[entry(), []]]);
      const seen = await ledger.begin();
      assert.equal(seen.head.seq, 2);
      await seen.abort();
      await takeBack(at.owner, kept);
      const again = await ledger.begin();
      assert.equal(again.head.seq, 1, "the row was of a server that nobody waited for");
      again.append(entry({ reason: "Svc: another row 2" }), []);
      await again.commit();
      await ledger.close();
      assert.equal((await readPin(pinFile))?.seq, 2);
      await takeBack(at.owner, kept);
      await assert.rejects(ledger.begin(), refusedAs("behind-what-this-gate-wrote"));
      await assert.rejects(open(pinFile), refusedAs("behind-the-head-pin"));
    });
  });

  suite("PostgreSQL: settings that all replicas share", () => {
    test("a contract and a mode put in force on one replica decide the next call on another", async (t) => {
      const at = await newSetup(t, there);
      const [one, other] = [await startReplica(t, at, "one"), await startReplica(t, at, "other")];
      const before = await check(other, spend("a"));
      assert.deepEqual([before.json.verdict, before.json.mode], ["ALLOW", "enforce"]);
      writeFileSync(join(at.folder, "contract.yaml"), contractOf(1));
      const reloaded = await act(one, "/admin/reload");
      assert.equal(reloaded.status, 200, reloaded.text);
      const blocked = await check(other, spend("a"));
      assert.deepEqual(
        [blocked.json.verdict, blocked.json.receipt.seq],
        ["BLOCK", 3],
        "and its counter kept its history",
      );
      assert.equal((await ask(other, "/rules")).text, (await ask(one, "/rules")).text);
      assert.equal((await act(other, "/admin/reload", { mode: "observe" })).status, 200);
      const observed = await check(one, spend("a"));
      assert.deepEqual([observed.json.verdict, observed.json.mode], ["ALLOW", "observe"]);
      const { json: page } = await ask(one, "/receipts?kind=all");
      assert.deepEqual(
        page.receipts.map(({ act: name, verdict, mode }: Record<string, unknown>) => [name ?? verdict, mode]),
        [
          ["BLOCK", "observe"],
          ["reload", "observe"],
          ["BLOCK", "enforce"],
          ["reload", "enforce"],
          ["ALLOW", "enforce"],
        ],
      );
    });

    test("a replica that starts with other files uses the contract that is in force", async (t) => {
      const at = await newSetup(t, there);
      const one = await startReplica(t, at, "one");
      assert.equal((await check(one, spend("a"))).json.verdict, "ALLOW");
      writeFileSync(join(at.folder, "contract.yaml"), contractOf(1));
      const other = await startReplica(t, at, "other");
      assert.equal((await check(other, spend("a"))).json.verdict, "ALLOW");
      assert.equal((await ask(other, "/rules")).text, (await ask(one, "/rules")).text);
      says("other-files-than-in-force", messageWith(other.stderr(), "contract"));
    });

    test("all replicas accept a key that one replica makes, and refuse a key that one revokes", async (t) => {
      const at = await newSetup(t, there);
      const [one, other] = [await startReplica(t, at, "one"), await startReplica(t, at, "other")];
      const made = await act(one, "/admin/keys", { name: "agent", scopes: ["check"] });
      assert.equal(made.status, 201, made.text);
      const asks = async (gate: Replica): Promise<number> =>
        (await check(gate, spend("a"), { authorization: `Bearer ${made.json.key}` })).status;
      assert.equal(await asks(one), 200);
      while ((await asks(other)) !== 200) await wait(50);
      assert.equal((await act(one, "/admin/keys/agent/revoke")).status, 200);
      assert.equal(await asks(one), 401);
      while ((await asks(other)) !== 401) await wait(50);
      assert.equal((await check(other, spend("a"))).status, 200, "positive control: another key is as good as before");
    });

    test("a later version takes the ledger over, and the earlier version then refuses every check", async (t) => {
      const at = await newSetup(t, there);
      const earlier = await startReplica(t, at, "earlier");
      assert.equal((await check(earlier, spend("a"))).status, 200);
      const later = await startReplica(t, at, "later", { version: "99.0.0" });
      assert.equal((await check(earlier, spend("a"))).status, 200, "until the later one has decided something");
      assert.equal((await check(later, spend("a"))).status, 200);
      const refused = await check(earlier, spend("a"));
      assert.deepEqual([refused.status, refused.json.code], [503, "superseded"]);
      assert.match(refused.json.detail, /svc-gate\/99\.0\.0/);
      const { json: page } = await ask(earlier, "/receipts?kind=all");
      const engines = page.receipts.map(({ leaf }: { readonly leaf: string }) => JSON.parse(leaf).engine);
      assert.deepEqual(engines, ["svc-gate/99.0.0", "svc-gate/1.0.0", "svc-gate/1.0.0"]);
      assert.equal((await ask(later, "/ledger/verify")).json.ok, true);
    });

    test("without its database a gate keeps running and refuses requests, and a new gate does not start", async (t) => {
      const own = await startPostgres(t);
      assert.ok(typeof own !== "string");
      const at = await newSetup(t, await databasesOn(own));
      const gate = await startReplica(t, at, "one");
      assert.equal((await check(gate, spend("a"))).status, 200);
      await own.stop();
      const logged = gate.stderr().length;
      gate.kill("SIGHUP");
      while (!/"level":50/.test(gate.stderr().slice(logged))) await wait(20);
      const refused = await check(gate, spend("a"));
      assert.deepEqual([refused.status, refused.json.code], [503, "ledger-unavailable"]);
      assert.equal((await act(gate, "/admin/reload")).status, 503);
      assert.equal((await act(gate, "/admin/keys", { name: "agent" })).status, 503);
      for (const path of ["/receipts", "/receipts/1", "/ledger/verify", "/health"])
        assert.equal((await ask(gate, path)).status, 503, path);
      const { code, stderr } = await finish(t, ["serve", "--port", "0"], settingsOf(at, "other"));
      assert.equal(code, 1);
      const [line = "", ...more] = stderr.split("\n");
      assert.deepEqual(more, [""], stderr);
      says("database-away", line, { "/away": new URL(at.url).pathname });
      await own.start();
      const again = await check(gate, spend("a"));
      assert.deepEqual([again.status, again.json.receipt.seq], [200, 2]);
    });

    test("each tenant has its own ledger in the database, and a connection sees one ledger at a time", async (t) => {
      const at = await newSetup(t, there);
      const file = join(at.folder, "tenants.yaml");
      writeFileSync(
        file,
        "tenants:\n  acme: { mandate: contract.yaml, mode: enforce }\n  blue: { mandate: contract.yaml }\n",
      );
      const [one, other] = [
        await startReplica(t, at, "one", { tenants: file }),
        await startReplica(t, at, "other", { tenants: file }),
      ];
      const bearers = new Map<string, string>();
      for (const tenant of ["acme", "blue"]) {
        const made = await act(one, `/t/${tenant}/admin/keys`, { name: "agent", scopes: ["check"] });
        bearers.set(tenant, made.json.key);
      }
      const asks = (gate: Replica, tenant: string, of = tenant): Promise<Answer> =>
        check({ address: `${gate.address}/t/${tenant}` }, spend("a"), { authorization: `Bearer ${bearers.get(of)}` });
      while ((await asks(other, "blue")).status !== 200) await wait(50);
      assert.equal((await asks(one, "acme")).json.receipt.seq, 1, "its history starts with its own first call");
      assert.equal((await asks(other, "acme")).json.receipt.seq, 2, "and goes on wherever it is asked");
      assert.equal((await asks(other, "acme", "blue")).status, 401);
      const client = new pg.Client({ connectionString: at.url });
      await client.connect();
      t.after(() => client.end());
      const seen = async (): Promise<readonly unknown[]> =>
        (await client.query("SELECT DISTINCT ledger FROM svc_gate.receipts")).rows.map(({ ledger }) => ledger);
      assert.deepEqual(await seen(), []);
      await client.query("SET svc.ledger TO 'tenant.acme'");
      assert.deepEqual(await seen(), ["tenant.acme"]);
    });
  });
}
