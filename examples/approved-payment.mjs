// A payment that a person decides. The tool runs only after the gate allows the same call again, on fresh facts.
//
//     SVC_MODE=enforce npm start              # in another terminal
//     node examples/approved-payment.mjs      # or with the gate's address as an argument
//
// docs/guides/approvals.md shows how a person approves or denies the call in a third terminal.

import { readFileSync } from "node:fs";
import { SvcGate } from "../clients/javascript/svc-gate.mjs";

const payee = "0x52908400098527886E0F7030069857D2E4169EE7";
const wallet = { spent: 150 };
const epoch = () => Math.floor(Date.now() / 1000);

/** The platform's facts at this moment, from its own books. */
const facts = () => ({
  monthly_spend_usd: wallet.spent,
  approved_payees: [payee],
  historical_price_usd: 10,
  now_epoch: epoch(),
});

function pay({ amount, payee_address: to }) {
  wallet.spent += amount;
  return `paid ${amount} USD to ${to}`;
}

const address = process.argv[2] ?? "http://127.0.0.1:8787";
const first = new URL("../data/first-key", import.meta.url);
const apiKey = process.env.SVC_API_KEY || readFileSync(first, "utf8").trim();
const gate = new SvcGate(address, { apiKey });
const offer = { currency: "USD", merchant: "maps", resource: "map-tiles", offer_expires_epoch: epoch() + 3600 };
const input = { amount: 20, payee_address: payee, ...offer };
let verdict = await gate.check("payment.send", input, facts());
console.log(`${verdict.verdict}: ${verdict.reason}`);
if (verdict.escalated) {
  verdict = await gate.settle(verdict, "payment.send", input, facts, { timeoutMs: 900_000 });
  console.log(`${verdict.verdict}: ${verdict.reason}`);
}
console.log(verdict.allowed ? pay(input) : "nothing was paid");
