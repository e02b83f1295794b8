/**
 * Goal: contracts/payments.yaml keeps the budget over HTTP when payments are checked together against the same facts,
 * with and without the facts' timestamp. Method: a gate of its own and simultaneous calls. Control: the same contract
 * without its rule on calls in flight lets both through.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { control } from "../support/controls/control.ts";
import { check, root, startGate, type Running } from "../support/gate.ts";

const contract = readFileSync(join(root, "contracts", "payments.yaml"), "utf8");
const withoutRule = contract.replace(
  /( {2}- rule: within-budget-in-flight\n(?: {4}.*\n)*?)( {4}verdict:)/,
  "$1    mode: observe\n$2",
);
const now = Math.floor(Date.now() / 1000);

function pay(session: string, facts: object): object {
  return {
    tool_name: "payment.send",
    tool_input: { amount: 30, currency: "USD", payee_address: "p", offer_expires_epoch: now + 600 },
    session_id: session,
    platform_state: { approved_payees: ["p"], historical_price_usd: 30, now_epoch: now, ...facts },
  };
}

/** Returns how many of the simultaneous payments may run, each in its own session. */
async function allowedOf(gate: Running, many: number, facts: object): Promise<number> {
  const calls = Array.from({ length: many }, (_, at) => check(gate, pay(`run-${at}`, facts)));
  return (await Promise.all(calls)).filter(({ json }) => json.verdict === "ALLOW").length;
}

test("of eight simultaneous payments against one snapshot, only those within the budget run", async (t) => {
  const gate = await startGate(t, { contracts: { "payments.yaml": contract } });
  assert.equal(await allowedOf(gate, 8, { monthly_spend_usd: 130 }), 2);
  assert.equal(await allowedOf(gate, 8, { monthly_spend_usd: 190 }), 0);
});

test("with the snapshot's time, payments in flight count against the budget in addition to its spending", async (t) => {
  const gate = await startGate(t, { contracts: { "payments.yaml": contract } });
  assert.equal(await allowedOf(gate, 8, { monthly_spend_usd: 130, as_of_epoch: now - 5 }), 2);
  assert.equal(await allowedOf(gate, 8, { monthly_spend_usd: 120, as_of_epoch: now - 5 }), 0);
});

control("positive control: without the rule on payments in flight, all eight payments run", async (t) => {
  assert.notEqual(withoutRule, contract);
  const gate = await startGate(t, { contracts: { "payments.yaml": withoutRule } });
  assert.equal(await allowedOf(gate, 8, { monthly_spend_usd: 130 }), 8);
});
