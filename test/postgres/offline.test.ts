/**
 * Goal: a command on a ledger that no gate serves never starts a ledger, because a tenant's name may be mistyped.
 * Method: each such command runs with a name that does not exist, on folders and on the test's PostgreSQL; then the
 * ledgers are counted. UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { openPostgres } from "../../packages/gate/src/ledger/in-database.ts";
import { openLedger } from "../../packages/gate/src/ledger/mod.ts";
import { command } from "../support/command.ts";
import { check, desk, key, spawnGate, temporaryFolder, writeContracts } from "../support/gate.ts";
import { engine } from "../support/ledger-fixture.ts";
import { empty, openDatabase, type TestDatabase } from "../support/databases.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const server = await openDatabase({ after }, empty);

const why = ["--reason", "request 4711"] as const;
const erase = ["erase", "1", "--part", "input", ...why] as const;

if (typeof server === "string") test("PostgreSQL: ledgers that no gate serves", { skip: server }, () => undefined);
else offline(server);

function offline(there: TestDatabase): void {
  const ledgers = async (): Promise<readonly unknown[]> =>
    (await there.run("SELECT ledger FROM svc_gate.ledgers ORDER BY ledger")).map(({ ledger }) => ledger);

  test("[issue 12, item 5] in a database without a ledger only `keys create` starts one", async (t: TestContext) => {
    const cwd = temporaryFolder(t);
    const env = { SVC_DATABASE_URL: there.url() };
    const run = (...args: readonly string[]): ReturnType<typeof command> => command(args, { folder: cwd, env });
    const early = await run("keys", "list");
    assert.deepEqual([early.code, early.stdout], [2, ""]);
    says("schema-before-it-is-made", early.stderr.trimEnd());
    assert.deepEqual((await run("migrate")).code, 0);
    for (const args of [["keys", "list"], ["keys", "list", "--tenant", "typo"], ["keys", "revoke", "ci"], erase]) {
      const { code, stderr } = await run(...args);
      assert.equal(code, 2, args.join(" "));
      says("no-ledger-in-the-database", stderr.trimEnd());
    }
    const odd = await run("keys", "create", "ci", "--scopes", "chekc");
    says("scope-with-a-slip", odd.stderr.trimEnd());
    assert.deepEqual(await ledgers(), []);
    assert.ok(!existsSync(join(cwd, "data")), "nothing is left in the data folder either");
    const made = await run("keys", "create", "ci", "--quiet");
    assert.deepEqual([made.code, made.stderr], [0, ""]);
    assert.deepEqual(await ledgers(), ["root"]);
    assert.match((await run("keys", "list")).stdout, /\nci +active /);
  });

  test("[issue 12, item 5] a mistyped tenant name is an error that repeats the name, and starts no ledger", async (t) => {
    const cwd = temporaryFolder(t);
    writeContracts(cwd, { contracts: { "desk.yaml": desk } });
    writeFileSync(join(cwd, "tenants.yaml"), "tenants:\n  acme: { mandate: contracts/desk.yaml, mode: enforce }\n");
    await there.run("DROP SCHEMA svc_gate CASCADE");
    const env = { SVC_DATABASE_URL: there.url(), SVC_API_KEY: key, SVC_TENANTS: "tenants.yaml" };
    const run = (...args: readonly string[]): ReturnType<typeof command> => command(args, { folder: cwd, env });
    const gate = await spawnGate(t, [], { cwd, env });
    const agent = (await run("keys", "create", "agent", "--tenant", "acme", "--quiet")).stdout.trim();
    const acme = { address: `${gate.address}/t/acme` };
    const call = { tool_name: "note.add", tool_input: { text: "KESTREL" } };
    await check(acme, call, { authorization: `Bearer ${agent}` });
    gate.kill("SIGTERM");
    assert.equal(await gate.exit, 0, gate.stderr());
    const before = await ledgers();
    assert.deepEqual(before, ["root", "tenant.acme"]);
    for (const args of [erase, ["resume", "--after-restore", ...why], ["resume", "--reset", "desk.visits", ...why]]) {
      const { code, stderr } = await run(...args, "--tenant", "typo");
      assert.equal(code, 2, args.join(" "));
      says("tenant-without-a-ledger-in-the-database", stderr.trimEnd());
    }
    assert.deepEqual(await ledgers(), before);
    assert.ok(!existsSync(join(cwd, "data", "tenants")), "nothing is left in the data folder either");
    const erased = await run(...erase, "--tenant", "acme");
    assert.equal(erased.code, 0, `positive control: ${erased.stderr}`);
    says("erased-in-a-tenant", erased.stdout.trimEnd());
    const database = await openPostgres({ url: there.url() });
    t.after(() => database.close());
    const shared = { database, ledger: "tenant.typo" };
    const folder = join(cwd, "data");
    await (await openLedger({ folder, shared, engine })).close();
    const started = [...before, "tenant.typo"];
    assert.deepEqual(
      await ledgers(),
      started,
      "positive control: without `mustExist` the ledger would have been started",
    );
  });
}

test("[issue 12, item 5] the error for a mistyped tenant in a folder lists the tenants with a ledger", async (t) => {
  const cwd = temporaryFolder(t);
  const run = (...args: readonly string[]): ReturnType<typeof command> => command(args, { folder: cwd });
  await (await openLedger({ folder: join(cwd, "data"), engine })).close();
  const none = await run(...erase, "--tenant", "typo");
  says("no-tenant-has-a-ledger", none.stderr.trimEnd());
  const tenants = join(cwd, "data", "tenants");
  for (const tenant of ["acme", "blue"]) {
    const ledger = await openLedger({ folder: join(tenants, tenant), engine });
    await ledger.close();
  }
  for (const args of [erase, ["resume", "--after-restore", ...why], ["resume", "--reset", "desk.visits", ...why]]) {
    const { code, stderr } = await run(...args, "--tenant", "typo");
    assert.equal(code, 2);
    says("tenant-without-a-ledger", stderr.trimEnd());
  }
  assert.ok(!existsSync(join(tenants, "typo")), "the commands start no ledger");
  await (await openLedger({ folder: join(tenants, "typo"), engine })).close();
  assert.ok(
    existsSync(join(tenants, "typo")),
    "positive control: without `mustExist` the ledger would have been started",
  );
});

test("offline commands work with a rotated signing key, and the next start records the rotation", async (t) => {
  const cwd = temporaryFolder(t);
  const env = { SVC_API_KEY: key };
  writeContracts(cwd, { contracts: { "desk.yaml": desk } });
  const run = (...args: readonly string[]): ReturnType<typeof command> => command(args, { folder: cwd, env });
  const stop = async ({ kill, exit, stderr }: Awaited<ReturnType<typeof spawnGate>>): Promise<void> => {
    kill("SIGTERM");
    assert.equal(await exit, 0, stderr());
  };
  const gate = await spawnGate(t, [], { cwd, env });
  await check(gate, { tool_name: "note.add", tool_input: { text: "KESTREL" } });
  await stop(gate);
  for (const args of [
    ["keygen", "--rotate"],
    ["keys", "create", "ci"],
    ["erase", "1", "--part", "input", ...why],
  ]) {
    const { code, stderr } = await run(...args);
    assert.equal(code, 0, stderr);
  }
  const acts = async (): Promise<readonly unknown[]> => {
    const ledger = await openLedger({ folder: join(cwd, "data"), engine });
    const changes = await ledger.rows.changes(0);
    await ledger.close();
    return changes.map(({ act }) => act).filter((act) => act !== "reload");
  };
  assert.deepEqual(await acts(), ["keys.create", "erase"]);
  await stop(await spawnGate(t, [], { cwd, env }));
  assert.deepEqual(await acts(), ["keys.create", "erase", "signer.rotate"]);
  const { code, stdout } = await run("verify");
  assert.equal(code, 0, stdout);
});
