// An agent's loop with one check, at the one place where tools run. It is offline: the model is a script.
//
//     npm start                              # in another terminal; SVC_MODE=enforce npm start refuses for real
//     node examples/agent-loop.mjs           # or with the gate's address as an argument
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SvcGate, SvcGateError } from "../clients/javascript/svc-gate.mjs";

const payee = "0x52908400098527886E0F7030069857D2E4169EE7";
const lookAlike = `${payee.slice(0, -1)}8`;

const wallet = { spent: 150 };
const parked = [];

const tools = {
  "payment.send": ({ amount, payee_address }) => {
    wallet.spent += amount;
    return `paid ${amount} USD to ${payee_address}`;
  },
  "files.delete": ({ path }) => `deleted ${path}`,
};

const nowEpoch = () => Math.floor(Date.now() / 1000);

/** The platform's facts, from its own books: no part of them comes from the model. */
const facts = () => ({
  monthly_spend_usd: wallet.spent,
  approved_payees: [payee],
  historical_price_usd: 10,
  now_epoch: nowEpoch(),
});

/** Replaces a model: proposes one call after another, and receives each result. */
function* scriptedModel() {
  const offer = { currency: "USD", merchant: "maps", resource: "map-tiles", offer_expires_epoch: nowEpoch() + 600 };
  yield { name: "payment.send", input: { amount: 10, payee_address: payee, ...offer } };
  yield { name: "payment.send", input: { amount: 20, payee_address: payee, ...offer } };
  const result = yield { name: "payment.send", input: { amount: 10, payee_address: lookAlike, ...offer } };
  if (result.includes("not registered")) {
    // It can read the reason, and correct its request.
    yield { name: "payment.send", input: { amount: 12, payee_address: payee, ...offer } };
  }
  yield { name: "files.delete", input: { path: "reports" } };
}

/** The one place where tools run: nothing reaches a tool without an ALLOW. */
async function runTool(gate, name, input) {
  const { verdict, reason, allowed, escalated, unreached, receipt } = await gate.check(name, input, facts());
  if (!unreached) console.log(`  ${verdict}: ${reason}`);
  if (receipt) console.log(`  receipt ${receipt.seq}, ${receipt.hash.slice(0, 12)}`);
  if (allowed) return tools[name](input);
  if (escalated) {
    parked.push([name, reason]);
    return `waits for a person: ${reason}`;
  }
  if (unreached) {
    // No verdict: tell operations. The model must not read about the infrastructure.
    console.error(`the run was stopped, because the gate gave no verdict. For operations: ${reason}`);
    process.exit(1);
  }
  return `refused: ${reason}`;
}

/** The key that the gate knows: SVC_API_KEY if the gate was started with it, else the one that the gate made. */
function findKey() {
  if (process.env.SVC_API_KEY) return process.env.SVC_API_KEY;
  const root = fileURLToPath(new URL("..", import.meta.url));
  const file = join(process.env.SVC_DATA_DIR ?? join(root, "data"), "first-key");
  if (existsSync(file)) return readFileSync(file, "utf8").trim();
  throw new Error(`There is no API key: SVC_API_KEY is not set, and ${file} does not exist.\n${keyAdvice}`);
}

const keyAdvice =
  "If the gate was started with SVC_API_KEY, set the same value here. " +
  "If not, unset SVC_API_KEY here, and start the gate with `npm start`: it writes its key to data/first-key.";

async function main([address = "http://127.0.0.1:8787"]) {
  const gate = new SvcGate(address, { apiKey: findKey() }); // one session: this run
  console.log(`mode: ${(await gate.health()).mode}`);
  await gate.rules(); // a wrong key fails here, before any tool call
  const model = scriptedModel();
  for (let step = model.next(); !step.done;) {
    const { name, input } = step.value;
    console.log(`\n${name} ${input.amount ?? input.path}`);
    const result = await runTool(gate, name, input);
    console.log(`  to the model: ${result}`);
    step = model.next(result);
  }
  console.log(`\nfor a person: ${parked.length}`);
  for (const [name, reason] of parked) console.log(`  ${name}: ${reason}`);
  console.log(`ledger: ${(await gate.verify()).ok ? "whole" : "BROKEN"}`);
}

main(process.argv.slice(2)).catch((error) => {
  const isOfKey = error.status === 401 || error.status === 403;
  const advice = isOfKey ? keyAdvice : "Is a gate running? Start one with `npm start`.";
  console.error(error instanceof SvcGateError ? `${error.message}\n${advice}` : error.message);
  process.exitCode = 1;
});
