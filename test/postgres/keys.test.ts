/**
 * Goal: a gate on a shared database does not make a first key for itself. A start without any key is refused, and its
 * advice works, both before the first gate has started and while others serve. Method: the program runs on the run's
 * server.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { command } from "../support/command.ts";
import { check, finish, spawnGate, temporaryFolder, type Spawned } from "../support/gate.ts";
import { openDatabase, type TestDatabase } from "../support/databases.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const server = await openDatabase({ after });

if (typeof server === "string")
  test("PostgreSQL: a command makes the first key of a shared ledger", { skip: server }, () => undefined);
else keys(server);

function verdictWith(gate: Spawned, key: string): Promise<{ readonly status: number }> {
  return check(gate, { tool_name: "note.add", tool_input: {} }, { authorization: `Bearer ${key}` });
}

function keys(there: TestDatabase): void {
  test("a command makes the first key of a shared ledger, and all gates accept it", async (t: TestContext) => {
    const cwd = temporaryFolder(t);
    const shared = { SVC_DATABASE_URL: there.url(), SVC_SIGNING_KEY: join(cwd, "signing.key"), SVC_LOG: "silent" };
    const env = { ...shared, SVC_DATA_DIR: join(cwd, "one") };
    const refused = await finish(t, ["serve", "--port", "0"], { cwd, env });
    assert.equal(refused.code, 1);
    says("no API key", refused.stderr.split("\n")[0] ?? "");
    const made = await command(["keys", "create", "first", "--quiet"], { env });
    assert.deepEqual([made.code, made.stderr], [0, ""]);
    const first = made.stdout.trim();
    const one = await spawnGate(t, [], { cwd, env });
    const two = await spawnGate(t, [], { cwd, env: { ...env, SVC_DATA_DIR: join(cwd, "two") } });
    assert.deepEqual([(await verdictWith(one, first)).status, (await verdictWith(two, first)).status], [200, 200]);
    const beside = { env: { ...env, SVC_DATA_DIR: join(cwd, "nowhere") } };
    const listed = await command(["keys", "list"], beside);
    assert.match(listed.stdout, /\nfirst +active +check /);
    const revoked = await command(["keys", "revoke", "first"], beside);
    assert.deepEqual([revoked.code, revoked.stderr], [0, ""]);
    for (const gate of [one, two]) {
      while ((await verdictWith(gate, first)).status !== 401) await new Promise((resolve) => setTimeout(resolve, 50));
    }
    for (const gate of [one, two]) {
      gate.kill("SIGTERM");
      assert.equal(await gate.exit, 0, gate.stderr());
    }
  });
}
