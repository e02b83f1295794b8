/**
 * Goal: gates that share a ledger treat the key of an agent's host alike, whichever of them made it. Method: two gates as
 * processes on the run's PostgreSQL. Positive control: gates that forget the kind when they read a row.
 */
import assert from "node:assert/strict";
import { after, suite, test } from "node:test";
import type { Desk } from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { ask } from "../support/gate.ts";
import { sharedPostgres, type Databases } from "../support/databases.ts";
import { twoDesks } from "../support/two-desks.ts";

const contract = `contract: pay
platform: { type: object, properties: { cwd: { type: string }, wallet: { type: string } } }
host_facts: [cwd]
tools:
  pay.send:
    input: { type: object, additionalProperties: false, required: [amount], properties: { amount: { type: number, minimum: 0 } } }
    requires: [platform.present, has(platform.wallet) || has(platform.cwd)]
    otherwise: ALLOW
counters:
  owned: { of: pay.send, per: gate, when: has(platform.wallet) }
rules:
  - { rule: owner, on: pay.send, when: counters.owned > 0, verdict: BLOCK, reason: "{counters.owned} named a wallet" }
  - { rule: large, on: pay.send, when: input.amount > 1000, verdict: ESCALATE, reason: it is a large payment }
`;

const server = await sharedPostgres({ after });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of hosts' keys", { skip: server }, () => undefined);
else hostKeys(server);

const call = (amount: number): object => ({
  tool_name: "pay.send",
  tool_input: { amount },
  platform_state: { cwd: "/home/anna", wallet: "w" },
});

/** Asks both gates with a key that one of them made, and verifies the ledger. */
async function asksBoth([one, other]: readonly [Desk, Desk]): Promise<void> {
  const { json: made } = await one.operates("/admin/keys", { name: "laptop", kind: "host" });
  const headers = { authorization: `Bearer ${made.key}` };
  // The other gate follows within a second.
  while ((await ask(other, "/approvals/apr_1_0", { headers })).status === 401)
    await new Promise((resolve) => setTimeout(resolve, 50));
  for (const gate of [other, one, other]) {
    assert.equal((await ask(gate, "/receipts", { headers })).status, 403);
    assert.equal((await gate.asks(call(1), made.key)).verdict, "ALLOW", "no wallet of a host's key was counted");
  }
  const { approval, receipt } = await other.asks(call(1200), made.key);
  assert.equal((await one.as("anna", `/approvals/${approval.id}`)).json.key_kind, "host");
  const { json } = await ask(one, `/receipts/${receipt.seq}`);
  assert.deepEqual([json.key_kind, json.platform_state], ["host", { cwd: "/home/anna", wallet: "w" }]);
  assert.equal((await ask(one, "/ledger/verify")).json.ok, true);
}

function hostKeys(there: Databases): void {
  suite("keys of hosts at two gates", () => {
    test("a host's key that one gate made is a host's key at the other gate too", async (t) => {
      await asksBoth(await twoDesks(t, await there.create(), { contract }));
    });

    control("positive control: gates that forget the kind open other routes", async (t) => {
      const defects = [
        { within: "readRecord", find: "kind === undefined ? {} : { kind }", put: "{}" },
        { within: "readRecord", find: "written.kind === undefined || kind !== undefined", put: "true" },
      ];
      await assert.rejects(async () => asksBoth(await twoDesks(t, await there.create(), { contract, defects })));
    });
  });
}
