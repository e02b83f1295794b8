/**
 * Goal: a restored database continues as a folder does: no gate starts on it behind the pin, the loss is a row, and
 * counters are unknown for every gate until a person resets them. Method: a database is copied as a backup would, its
 * gate answers more calls, and the copy is served instead, on the run's server.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { sentencesOf } from "../support/sentences.ts";
import { command } from "../support/command.ts";
import { check, finish, key, spawnGate, temporaryFolder, writeContracts, type Spawned } from "../support/gate.ts";
import { sharedPostgres, type Databases } from "../support/databases.ts";

const says = sentencesOf(import.meta.filename);

const server = await sharedPostgres({ after });

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

const lastLine = (text: string): string => text.trimEnd().split("\n").at(-1) ?? "";

function goingOn(there: Databases): void {
  test("a restored database behind its pin is refused until resume, and its counters stay unknown until reset", async (t: TestContext) => {
    const cwd = temporaryFolder(t);
    writeContracts(cwd, { contracts: { "desk.yaml": contract } });
    const database = await there.create();
    const env = {
      SVC_DATABASE_URL: database.url(),
      SVC_API_KEY: key,
      SVC_MODE: "enforce",
      SVC_PIN: join(cwd, "head.pin"),
      SVC_SIGNING_KEY: join(cwd, "signing.key"),
    };
    const reasonsOf = async (settings: typeof env, count: number): Promise<readonly string[]> => {
      const gate: Spawned = await spawnGate(t, [], { cwd, env: settings });
      const reasons: string[] = [];
      for (let call = 0; call < count; call += 1)
        reasons.push((await check(gate, { tool_name: "visit", tool_input: {}, session_id: "s" })).json.reason);
      gate.kill("SIGTERM");
      assert.equal(await gate.exit, 0, gate.stderr());
      return reasons;
    };
    await reasonsOf(env, 2);
    // The server copies a database only after every session on it has ended.
    const sessions = `SELECT 1 FROM pg_stat_activity WHERE datname = '${database.name}' AND pid <> pg_backend_pid()`;
    for (let n = 0; n < 600 && (await database.run(sessions)).length > 0; n += 1) await wait(100);
    const restored = { ...env, SVC_DATABASE_URL: (await there.create(database.name)).url() };
    const run = (...args: readonly string[]): ReturnType<typeof command> =>
      command(args, { folder: cwd, env: restored });
    await reasonsOf(env, 2);
    const refused = await finish(t, ["serve", "--port", "0"], { cwd, env: restored });
    assert.equal(refused.code, 1, refused.stderr);
    says("the ledger ends before the pin", lastLine(refused.stderr));
    for (const args of [
      ["backup", "b"],
      ["restore", "b"],
    ])
      says(`${args[0]} of a PostgreSQL`, lastLine((await run(...args)).stderr));
    const resumed = await run("resume", "--after-restore", "--reason", "a failover lost them", "--by", "Ada");
    says("rows are lost", resumed.stdout.split("\n")[0] ?? "");
    says("every call is stopped", (await reasonsOf(restored, 1))[0] ?? "");
    says("the stop is in force", (await run("stop", "--list")).stdout);
    const lifted = await run("stop", "--lift");
    says("the stop is lifted", lifted.stdout);
    says("visits is not known", (await reasonsOf(restored, 1))[0] ?? "");
    const reset = (...names: readonly string[]): ReturnType<typeof run> =>
      run("resume", "--reason", "nobody knows them", ...names.flatMap((name) => ["--reset", name]));
    says("no such counter", lastLine((await reset("desk.visit")).stderr));
    const first = await reset("desk.visits");
    assert.match(first.stdout, /^row 7\b[^\n]*\n {2}desk\.visits {2}/, first.stderr);
    assert.match((await reset("desk.visits")).stderr, /desk\.visits is known/);
    says("ever is not known", (await reasonsOf(restored, 1))[0] ?? "");
    // Another replica resets a counter meanwhile; this one follows the row.
    const beside: Spawned = await spawnGate(t, [], { cwd, env: restored });
    const visit = async (): Promise<string> =>
      (await check(beside, { tool_name: "visit", tool_input: {}, session_id: "s" })).json.reason;
    says("ever is not known", await visit());
    const second = await reset("desk.ever");
    assert.match(second.stdout, /^row 10\b[^\n]*\n {2}desk\.ever {2}/, second.stderr);
    assert.match(await visit(), /^Svc: allowed/);
    for (const reason of [/^Svc: allowed/, /^Svc: allowed/, /^Svc: 5 visits/]) assert.match(await visit(), reason);
    beside.kill("SIGTERM");
    assert.equal(await beside.exit, 0, beside.stderr());
    const deep = await run("verify", "--database", "--deep");
    assert.match(deep.stdout, /^ok: 14 rows/, deep.stderr);
    says("checks were decided again", deep.stdout.split("\n").find((line) => /\b10 checks\b/.test(line)) ?? "");
    const replayed = await run("replay", "--database", "--json");
    assert.deepEqual(JSON.parse(replayed.stdout).disagreements, 0, replayed.stdout);
    const again = await run("resume", "--after-restore", "--reason", "again");
    says("nothing is lost", lastLine(again.stderr));
  });
}
