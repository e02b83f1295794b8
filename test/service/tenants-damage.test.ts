/**
 * Goal: a fault in one tenant during a reload affects and reveals nothing of the others, and a failed fold leaves
 * nothing behind that would stop the checks. Method: ledgers are damaged while a gate serves them.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { ask, check, key, spawnGate, startGate, temporaryFolder, type Answer, type Running } from "../support/gate.ts";

const contract = (more = ""): string => `contract: desk
tools:
  door.open: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }
${more}`;

const counted = contract(`counters:
  opened: { of: [door.open], per: session }
rules:
  - { rule: enough, on: [door.open], when: counters.opened >= 3, verdict: BLOCK, reason: enough }
`);

type Located = Pick<Running, "address" | "folder">;

function writeTenants(folder: string): string {
  for (const id of ["acme", "blue"]) {
    mkdirSync(join(folder, id), { recursive: true });
    writeFileSync(join(folder, id, "desk.yaml"), contract());
  }
  const file = join(folder, "tenants.yaml");
  writeFileSync(file, "tenants:\n  acme: { mandate: acme/desk.yaml }\n  blue: { mandate: blue/desk.yaml }\n");
  return file;
}

function post(gate: Located, path: string, body: object, bearer = operatorKey(gate)): Promise<Answer> {
  const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
  return ask(gate, path, { method: "POST", headers, body: JSON.stringify(body) });
}

function operatorKey({ folder }: Located): string {
  return (JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")) as { key: string }).key;
}

async function askOnce(gate: Located, tenant: string): Promise<void> {
  const { json } = await post(gate, `/t/${tenant}/admin/keys`, { name: "agent" });
  const answer = await post(gate, `/t/${tenant}/check`, { tool_name: "door.open", tool_input: {} }, json.key);
  assert.equal(answer.status, 200);
}

function damage(folder: string, sql: string): void {
  const database = new DatabaseSync(join(folder, "ledger.db"));
  database.exec(sql);
  database.close();
}

test("a damaged ledger of one tenant does not stop the reloads of others", async (t) => {
  const folder = temporaryFolder(t);
  const gate = await startGate(t, { folder, flags: { tenants: writeTenants(folder) } });
  await askOnce(gate, "acme");
  damage(join(folder, "data", "tenants", "acme"), "INSERT INTO receipts VALUES (9, NULL, 'x', 'ALLOW', '{}', '{}')");
  writeFileSync(join(folder, "acme", "desk.yaml"), contract("# another text\n"));
  const reloads = ["/t/acme/admin/reload", "/t/blue/admin/reload", "/admin/reload"];
  const answers = await Promise.all(reloads.map((path) => post(gate, path, {})));
  assert.deepEqual(
    answers.map(({ status }) => status),
    [503, 200, 200],
  );
});

test(
  "the gate keeps serving if a reload by SIGHUP fails for one tenant",
  { skip: process.platform === "win32" },
  async (t) => {
    const folder = temporaryFolder(t);
    const flags = ["--tenants", writeTenants(folder), "--data-dir", join(folder, "data")];
    const spawned = await spawnGate(t, flags, { cwd: folder, env: { SVC_API_KEY: key } });
    const gate = { ...spawned, folder };
    for (const id of ["acme", "blue"]) await askOnce(gate, id);
    damage(join(folder, "data", "tenants", "acme"), "UPDATE contracts SET text = text || ' '");
    writeFileSync(join(folder, "blue", "desk.yaml"), contract("# another text\n"));
    gate.kill("SIGHUP");
    const until = async (word: string): Promise<void> => {
      while (!gate.stderr().includes(word)) {
        const ended = await Promise.race([gate.exit, new Promise((resolve) => setTimeout(resolve, 20))]);
        assert.equal(ended, undefined, gate.stderr());
      }
    };
    await until('"level":50');
    await until('"put in force"');
    assert.equal((await check(gate, { tool_name: "door.open", tool_input: {} })).status, 200);
  },
);

test("an error in the tenants file shows one tenant's administrator nothing about other tenants", async (t) => {
  const folder = temporaryFolder(t);
  const file = writeTenants(folder);
  const gate = await startGate(t, { folder, flags: { tenants: file } });
  const { json } = await post(gate, "/t/acme/admin/keys", { name: "boss", scopes: ["admin"] });
  assert.equal((await post(gate, "/t/acme/admin/reload", {}, json.key)).status, 200, "positive control");
  writeFileSync(file, readFileSync(file, "utf8").replace("blue: { ", "blue: { mode: enforced, "));
  const told = await post(gate, "/t/acme/admin/reload", {}, json.key);
  assert.deepEqual([told.status, told.json.code], [422, "contract-refused"]);
  assert.doesNotMatch(told.text, /blue|enforced|yaml/);
  assert.match((await post(gate, "/admin/reload", {})).text, /enforced/, "the root's administrator is told");
});

test("a failed fold of counters stores nothing, and the gate continues to answer checks", async (t) => {
  const gate = await startGate(t, { contracts: { "desk.yaml": contract() } });
  const data = join(gate.folder, "data");
  const open = { tool_name: "door.open", tool_input: {}, session_id: "s" };
  assert.equal((await check(gate, open)).status, 200);
  damage(data, "CREATE TRIGGER full BEFORE INSERT ON effects BEGIN SELECT RAISE(ABORT, 'no room'); END");
  writeFileSync(join(gate.folder, "contracts", "desk.yaml"), counted);
  assert.equal((await post(gate, "/admin/reload", {})).status, 503);
  assert.equal((await check(gate, open)).json.verdict, "ALLOW", "by the old contract");
  damage(data, "DROP TRIGGER full");
  const { json } = await post(gate, "/admin/reload", {});
  assert.deepEqual([json.changed, json.counters[0].events], [true, 2], "nothing of the first fold was kept");
  assert.equal((await check(gate, open)).json.verdict, "ALLOW");
  assert.equal((await check(gate, open)).json.verdict, "BLOCK");
  const verified = await ask(gate, "/ledger/verify");
  assert.equal(verified.json.ok, true, verified.text);
});
