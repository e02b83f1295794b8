/**
 * Goal: a database that was restored from a backup goes on as a folder does: no gate starts on it behind the pin, the loss is
 * a row, counters are unknown until a person resets them, for every gate. Method: a database is copied as a backup would, its gate
 * answers more calls, and the copy is served in its place; on a server of the test's own.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { check, finish, key, spawnGate, temporaryFolder, writeContracts, type Spawned } from "../support/gate.ts";
import { startPostgres, type PostgresServer } from "../support/postgres-server.ts";

const server = await startPostgres({ after });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of resume", { skip: server }, () => undefined);
else goingOn(server);

const contract = `contract: desk
tools:
  visit: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }
counters:
  visits: { of: [visit], per: gate, within: 24h }
  ever: { of: [visit], per: session }
rules:
  - { rule: often, on: [visit], when: counters.visits >= 5, verdict: BLOCK, reason: "{counters.visits} visits" }
  - { rule: too-often, on: [visit], when: counters.ever > 90, verdict: BLOCK, reason: "{counters.ever} visits" }
`;

function goingOn(there: PostgresServer): void {
  test("a restored database behind its pin is refused until resume, and its counters stay unknown until reset", async (t: TestContext) => {
    const cwd = temporaryFolder(t);
    writeContracts(cwd, { contracts: { "desk.yaml": contract } });
    const urlOf = (database: string): string => Object.assign(new URL(there.url()), { pathname: `/${database}` }).href;
    const env = {
      SVC_DATABASE_URL: urlOf("gate"),
      SVC_API_KEY: key,
      SVC_MODE: "enforce",
      SVC_PIN: join(cwd, "head.pin"),
      SVC_SIGNING_KEY: join(cwd, "signing.key"),
    };
    const restored = { ...env, SVC_DATABASE_URL: urlOf("restored") };
    const reasonsOf = async (settings: typeof env, count: number): Promise<readonly string[]> => {
      const gate: Spawned = await spawnGate(t, [], { cwd, env: settings });
      const reasons: string[] = [];
      for (let call = 0; call < count; call += 1)
        reasons.push((await check(gate, { tool_name: "visit", tool_input: {}, session_id: "s" })).json.reason);
      gate.kill("SIGTERM");
      assert.equal(await gate.exit, 0, gate.stderr());
      return reasons;
    };
    const run = (...args: readonly string[]): ReturnType<typeof finish> => finish(t, args, { cwd, env: restored });
    await there.run("CREATE DATABASE gate");
    await reasonsOf(env, 2);
    await there.run("CREATE DATABASE restored TEMPLATE gate");
    await reasonsOf(env, 2);
    const refused = await run("serve", "--port", "0");
    assert.match(refused.stderr, /the ledger ends at row 2, and its head pin has seen row 4/);
    for (const command of [
      ["backup", "b"],
      ["restore", "b"],
    ])
      assert.match((await run(...command)).stderr, /SVC_DATABASE_URL names a PostgreSQL: .* with pg_basebackup/);
    const resumed = await run("resume", "--after-restore", "--reason", "a failover lost them");
    assert.match(resumed.stdout, /^row 3 records that rows 3 to 4 are lost/, resumed.stderr);
    assert.match((await reasonsOf(restored, 1))[0] ?? "", /the counter desk\.visits is not known/);
    const reset = (...names: readonly string[]): ReturnType<typeof run> =>
      run("resume", "--reason", "nobody knows them", ...names.flatMap((name) => ["--reset", name]));
    assert.match((await reset("desk.visit")).stderr, /called desk\.visit; did you mean desk\.visits\?/);
    const first = await reset("desk.visits");
    assert.match(first.stdout, /^row 5 resets counters:\n {2}desk\.visits {2}counts from zero/, first.stderr);
    assert.match((await reset("desk.visits")).stderr, /desk\.visits is known/);
    assert.match((await reasonsOf(restored, 1))[0] ?? "", /the counter desk\.ever is not known/);
    // Another replica resets a counter beside this one, which follows the row.
    const beside: Spawned = await spawnGate(t, [], { cwd, env: restored });
    const visit = async (): Promise<string> =>
      (await check(beside, { tool_name: "visit", tool_input: {}, session_id: "s" })).json.reason;
    assert.match(await visit(), /the counter desk\.ever is not known/);
    const second = await reset("desk.ever");
    assert.match(second.stdout, /^row 8 resets counters:\n {2}desk\.ever/, second.stderr);
    assert.match(await visit(), /^Svc: allowed/);
    for (const reason of [/^Svc: allowed/, /^Svc: allowed/, /^Svc: 5 visits/]) assert.match(await visit(), reason);
    beside.kill("SIGTERM");
    assert.equal(await beside.exit, 0, beside.stderr());
    const deep = await run("verify", "--database", "--deep");
    assert.match(deep.stdout, /^ok: 12 rows[^]* 9 checks decided again come to what their receipts say/, deep.stderr);
    const replayed = await run("replay", "--database", "--json");
    assert.deepEqual(JSON.parse(replayed.stdout).disagreements, 0, replayed.stdout);
    const again = await run("resume", "--after-restore", "--reason", "again");
    assert.match(again.stderr, /nothing is lost: the head pin has seen row 12/);
  });
}
