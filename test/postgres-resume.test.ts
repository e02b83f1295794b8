/**
 * Goal: a database that was restored from a backup goes on as a folder does: no gate starts on it behind the pin, the loss is
 * a row, counters are unknown until what was lost is entered. Method: a database is copied as a backup would, its gate
 * answers more calls, and the copy is served in its place; on a server of the test's own.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { check, finish, key, spawnGate, temporaryFolder, writeContracts, type Spawned } from "./e2e/gate.ts";
import { startPostgres, type PostgresServer } from "./postgres-server.ts";

const server = await startPostgres({ after });

if (typeof server === "string") test("PostgreSQL: going on after a restore", { skip: server }, () => undefined);
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
  test("behind the pin a restored database is refused, resumed with a row, and entered later", async (t: TestContext) => {
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
    writeFileSync(join(cwd, "lost.yaml"), "desk.visits: [{ amount: 2 }]\n");
    const entered = await run("resume", "--enter", "lost.yaml", "--reason", "they were counted");
    assert.match(entered.stdout, /^row 5 enters what was lost of desk\.visits: known again/, entered.stderr);
    assert.match((await reasonsOf(restored, 1))[0] ?? "", /5 visits/);
    const deep = await run("verify", "--database", "--deep");
    assert.match(deep.stdout, /^ok: 6 rows[^]* 4 checks decided again come to what their receipts say/, deep.stderr);
    const replayed = await run("replay", "--database", "--json");
    assert.deepEqual(JSON.parse(replayed.stdout).disagreements, 0, replayed.stdout);
    const again = await run("resume", "--after-restore", "--reason", "again");
    assert.match(again.stderr, /nothing is lost: the head pin has seen row 6/);
  });
}
