/**
 * Goal: `--accept change` applies to one start only: a tenant that is closed and opened again uses the policy that a
 * replica has put in force since. Method: two gates on the run's server; one of them keeps a single tenant open.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { ask, startGate, temporaryFolder, type Answer, type Running } from "../support/gate.ts";
import { openDatabase, type TestDatabase } from "../support/databases.ts";

const server = await openDatabase({ after });

if (typeof server === "string") test("PostgreSQL: tenants", { skip: server }, () => undefined);
else test("a reopened tenant keeps the contract that another gate put in force meanwhile", (t) => comesBack(t, server));

const ids = ["acme", "blue"];

/** Gates that share ledgers share the key that signs their heads. */
const keyFile = join(temporaryFolder({ after }), "signing.key");

function start(t: TestContext, there: TestDatabase, verdict: string, accept: string): Promise<Running> {
  const folder = temporaryFolder(t);
  for (const id of ids) {
    mkdirSync(join(folder, id));
    const tool = `{ input: { type: object, additionalProperties: true }, otherwise: ${verdict} }`;
    writeFileSync(join(folder, id, "desk.yaml"), `contract: desk\ntools:\n  door.open: ${tool}\n`);
  }
  const tenants = join(folder, "tenants.yaml");
  const entries = ids.map((id) => `  ${id}: { mandate: ${id}/desk.yaml, mode: enforce }\n`);
  writeFileSync(tenants, `tenants:\n${entries.join("")}`);
  const flags = { "database-url": there.url(), tenants, "tenants-open": "1", accept, "signing-key": keyFile };
  return startGate(t, { folder, flags });
}

function post(gate: Running, path: string, body: object, bearer = operatorKey(gate)): Promise<Answer> {
  const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
  return ask(gate, path, { method: "POST", headers, body: JSON.stringify(body) });
}

function operatorKey({ folder }: Running): string {
  return (JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")) as { key: string }).key;
}

async function comesBack(t: TestContext, there: TestDatabase): Promise<void> {
  const one = await start(t, there, "ALLOW", "change");
  const keys = new Map<string, string>();
  for (const id of ids) keys.set(id, (await post(one, `/t/${id}/admin/keys`, { name: "agent" })).json.key);
  const verdict = async (gate: Running, id: string): Promise<string> => {
    const { json } = await post(gate, `/t/${id}/check`, { tool_name: "door.open", tool_input: {} }, keys.get(id));
    return json.verdict;
  };
  assert.deepEqual([await verdict(one, "acme"), await verdict(one, "blue")], ["ALLOW", "ALLOW"], "acme gave way");
  const other = await start(t, there, "BLOCK", "");
  assert.equal(await verdict(other, "acme"), "ALLOW", "positive control: a start alone changes nothing");
  assert.equal((await post(other, "/t/acme/admin/reload", {})).json.changed, true);
  assert.deepEqual([await verdict(one, "acme"), await verdict(other, "acme")], ["BLOCK", "BLOCK"]);
}
