/**
 * Goal: `SVC_RETENTION_DAYS` erases old evidence at a start, in the root and in each opened tenant, and checks go on.
 * Method: ledgers are written with receipts that are forty days and one hour old; a gate is polled until it has erased
 * the old ones. A test with its own clock covers the later runs, hour by hour.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { openLedger, readLedger } from "../../packages/gate/src/ledger/mod.ts";
import { control } from "../support/controls/control.ts";
import { append, contracts, engine, entry } from "../support/ledger-fixture.ts";
import { ask, check, desk, startGate, temporaryFolder, writeContracts, type Running } from "../support/gate.ts";

const dayMs = 86_400_000;

/** Three checks of forty days ago, and three of the last hour. */
async function writeLedger(folder: string): Promise<void> {
  const ledger = await openLedger({ folder, engine });
  await ledger.keepContract(contracts[0]);
  for (const at of [Date.now() - 40 * dayMs, Date.now() - 3_600_000])
    await append(ledger, [0, 1, 2].map(() => [entry({ at }), []])); // prettier-ignore
  await ledger.close();
}

/** Returns the rows in the folder whose parts are missing. */
async function clearedIn(folder: string): Promise<readonly number[]> {
  const ledger = await readLedger(folder);
  try {
    const rows = (await Array.fromAsync(ledger.scan(1))).flat();
    return rows.flatMap(({ seq, evidence }) => (evidence.includes("!") ? [seq] : []));
  } finally {
    await ledger.close();
  }
}

async function untilCleared(folder: string): Promise<readonly number[]> {
  for (;;) {
    const cleared = await clearedIn(folder);
    if (cleared.length > 0) return cleared;
    await wait(20);
  }
}

async function keyOf(gate: Running, tenant: string): Promise<string> {
  const { key } = JSON.parse(readFileSync(join(gate.folder, "data", "operator.json"), "utf8")) as { key: string };
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = '{"name":"agent","scopes":["check","receipts"]}';
  return (await ask(gate, `/t/${tenant}/admin/keys`, { method: "POST", headers, body })).json.key;
}

test("the gate erases old evidence at its start, and a tenant's when the tenant is opened", async (t) => {
  const folder = temporaryFolder(t);
  const [root, acme] = [join(folder, "data"), join(folder, "data", "tenants", "acme")];
  await writeLedger(root);
  await writeLedger(acme);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  writeFileSync(join(folder, "tenants.yaml"), "tenants:\n  acme: { mandate: contracts/desk.yaml, mode: enforce }\n");
  const flags = { "retention-days": "30", tenants: join(folder, "tenants.yaml"), mode: "enforce" };
  const gate = await startGate(t, { folder, contracts: { "desk.yaml": desk }, flags });
  assert.deepEqual(await untilCleared(root), [1, 2, 3]);
  assert.equal((await check(gate, { tool_name: "note.add", tool_input: {} })).json.verdict, "ALLOW");
  const { json } = await ask(gate, "/receipts?kind=all&limit=100");
  const acts = json.receipts.filter(({ act }: { readonly act?: string }) => act === "erase");
  assert.deepEqual(
    acts.map(({ key, tool_input: input }: any) => [key, input.rows]),
    [["retention", [[1, 3]]]],
  );
  assert.equal((await ask(gate, "/ledger/verify")).json.ok, true);
  const authorization = `Bearer ${await keyOf(gate, "acme")}`;
  assert.deepEqual(await clearedIn(acme), [], "nobody has asked the tenant yet");
  await ask(gate, "/t/acme/receipts?limit=1", { headers: { authorization } });
  assert.deepEqual(await untilCleared(acme), [1, 2, 3]);
});

control("positive control: a gate without the setting erases nothing", async (t) => {
  const folder = temporaryFolder(t);
  await writeLedger(join(folder, "data"));
  const gate = await startGate(t, { folder });
  await check(gate, { tool_name: "note.add", tool_input: {} });
  await gate.stop();
  assert.deepEqual(await clearedIn(join(folder, "data")), []);
});
