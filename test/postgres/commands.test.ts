/**
 * Goal: verify, export, report, replay and explain give the same results for a database as for a folder, for the root
 * and for a tenant, while a gate serves it. Method: the program, on the run's server.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { command } from "../support/command.ts";
import { openDatabase, type TestDatabase } from "../support/databases.ts";
import { ask, check, desk, key, spawnGate, temporaryFolder, writeContracts } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const lineWith = (text: string, pattern: RegExp): string => text.split("\n").find((line) => pattern.test(line)) ?? "";

const server = await openDatabase({ after });

if (typeof server === "string") test("PostgreSQL: commands", { skip: server }, () => undefined);
else commands(server);

function commands(there: TestDatabase): void {
  test("verify, report, replay and explain read a ledger in a database", async (t: TestContext) => {
    const cwd = temporaryFolder(t);
    writeContracts(cwd, { contracts: { "desk.yaml": desk } });
    writeFileSync(join(cwd, "tenants.yaml"), "tenants:\n  acme: { mandate: contracts/desk.yaml, mode: enforce }\n");
    const env = { SVC_DATABASE_URL: there.url(), SVC_API_KEY: key, SVC_TENANTS: "tenants.yaml", SVC_MODE: "enforce" };
    const gate = await spawnGate(t, [], { cwd, env });
    for (const tool of ["note.add", "safe.open", "mail.send"]) await check(gate, { tool_name: tool, tool_input: {} });
    const { key: operator } = JSON.parse(readFileSync(join(cwd, "data", "operator.json"), "utf8")) as { key: string };
    const made = await ask(gate, "/t/acme/admin/keys", {
      method: "POST",
      headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
      body: '{"name":"agent","scopes":["check","receipts"]}',
    });
    const acme = { address: `${gate.address}/t/acme` };
    await check(acme, { tool_name: "safe.open", tool_input: {} }, { authorization: `Bearer ${made.json.key}` });
    const run = (...args: readonly string[]): ReturnType<typeof command> => command(args, { folder: cwd, env });
    const walked = await run("verify", "--database");
    says("whole-ledger", lineWith(walked.stdout, /^ok: 4 /));
    const tenants = await run("verify", "--database", "acme", "--deep");
    assert.match(tenants.stdout, /^ok: 1 /, tenants.stderr);
    says("replay-of-tenant", lineWith(tenants.stdout, /^ +replay /));
    const roots = await run("verify", "--database", "--deep");
    assert.match(roots.stdout, /^ok: 4 /, roots.stderr);
    says("replay-of-root", lineWith(roots.stdout, /^ +replay /));
    assert.match((await run("report", "--database")).stdout, /safe\.open|desk\.\$otherwise/);
    const replayed = await run("replay", "--database");
    assert.deepEqual([replayed.code, replayed.stderr], [0, ""], replayed.stdout);
    assert.match((await run("explain", "--receipt", "1", "--database", "acme")).stdout, /BLOCK/);
    const exported = join(cwd, "exported");
    assert.match((await run("export", exported, "--database")).stdout, /exported: 4 rows of /);
    const again = await run("verify", "--deep", exported);
    says("whole-export", lineWith(again.stdout, /^ok: 4 /));
    says("replay-of-export", lineWith(again.stdout, /^ +replay /));
    const lines = await run("export", "-", "--database", "acme", "--format", "jsonl");
    assert.match(lines.stdout, /^\{"seq":1,.*"tool":"safe\.open",.*"input":\{\},"platform":null\}\n$/, lines.stderr);
    const nobody = await run("verify", "--database", "nobody");
    assert.equal(nobody.code, 2);
    says("no-such-ledger", nobody.stderr);
    const rows = await there.run("SELECT count(*) AS count FROM svc_gate.ledgers");
    assert.equal(Number(rows[0]?.["count"]), 2, "asking for a ledger starts none");
    await there.run("UPDATE svc_gate.receipts SET leaf = replace(leaf, 'BLOCK', 'ALLOW') WHERE ledger = 'tenant.acme'");
    assert.match((await run("verify", "--database", "acme")).stderr, /^BROKEN at row 1 of 1/, "positive control");
  });
}
