/**
 * Goal: docs/guides/outcomes.md works as it says. Method: its contract runs in a gate, and its programs run with both
 * keys. Its tests of the contract pass. Positive controls: without the report of the bookkeeping, the budget stays full,
 * and a changed step fails a case.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { promisify } from "node:util";
import { testCommand } from "../../../packages/workbench/src/test/command.ts";
import { startDesk } from "../../support/approvals.ts";
import { control } from "../../support/controls/control.ts";
import { ask, key, temporaryFolder } from "../../support/gate.ts";
import { tillOf, type Till } from "../../support/outcomes.ts";
import { ShownPage } from "../../support/shown-page.ts";

const guide = new ShownPage("guides/outcomes.md", "outcomes");
const clients = fileURLToPath(new URL("../../../clients/python", import.meta.url));
const run = promisify(execFile);

/** The guide's programs, with stand-ins for the reader's own functions. `fails` is what `pay` raises. */
function program(fails: string, isSettled: boolean): string {
  const lines = [
    "import sys; sys.path.insert(0, sys.argv[1])",
    "from svc_gate import SvcGate, Verdict",
    "url, books_key, order = sys.argv[2], sys.argv[4], 'o1'",
    "class Declined(Exception): pass",
    "def pay(arguments):",
    `    ${fails === "" ? "pass" : `raise ${fails}()`}`,
    "receipts = {}",
    "keep, kept, warn = receipts.__setitem__, receipts.get, print",
    "gate = SvcGate(url, api_key=sys.argv[3])",
    "arguments, facts = {'order': order, 'usd': 90}, {'customer': 'c'}",
    guide.block("agent"),
    isSettled ? guide.block("books") : "",
    "print(verdict.verdict, receipts[order]['seq'])",
  ];
  return lines.join("\n");
}

async function till(t: Parameters<typeof startDesk>[0]): Promise<Till> {
  const desk = await startDesk(t, { contract: guide.block("orders.yaml") });
  assert.match(guide.block("key"), /^svc-gate keys create books --scopes outcome$/m, "the key of `tillOf`");
  return tillOf(desk);
}

async function runs(gate: Till, fails: string, isSettled = true): Promise<number> {
  const args = ["-c", program(fails, isSettled), clients, gate.address, key, gate.books];
  const { stdout } = await run("python3", args);
  const [verdict, seq] = stdout.trim().split(" ");
  assert.equal(verdict, "ALLOW", stdout);
  return Number(seq);
}

/** Whether a payment of an amount fits the budget. */
async function fits(gate: Till, usd: number): Promise<string> {
  const call = { tool_name: "order.pay", tool_input: { order: "next", usd }, platform_state: { customer: "c" } };
  return (await gate.asks(call)).reason;
}

const full = /90 USD is over the budget/;

for (const fails of ["Declined", "TimeoutError"])
  test(`a payment that ends with ${fails} is taken back by the bookkeeping`, async (t) => {
    const gate = await till(t);
    const seq = await runs(gate, fails);
    const shown = JSON.parse(guide.block("receipt"));
    const { outcome } = (await ask(gate, `/receipts/${seq}`)).json;
    assert.deepEqual([outcome.status, Object.keys(outcome)], [shown.status, Object.keys(shown)]);
    assert.match(await fits(gate, 450), /first payment of a customer/, "the budget is free, and nothing was done");
  });

control("positive control: without the bookkeeping the amount stays in the budget", async (t) => {
  const gate = await till(t);
  await runs(gate, "Declined", false);
  assert.match(await fits(gate, 450), full);
});

test("a payment counts as done when the bookkeeping says so, and the next one may be larger", async (t) => {
  const gate = await till(t);
  const seq = await runs(gate, "", false);
  assert.match(await fits(gate, 200), /first payment/, "the agent's word is only a claim");
  const { hash } = (await ask(gate, `/receipts/${seq}`)).json;
  assert.equal((await gate.reports("books", { receipt: { seq, hash } }, "done")).status, 200);
  assert.doesNotMatch(await fits(gate, 200), /first payment/);
  const [, path = ""] = /"\$SVC_GATE(\/[^"]*)"/.exec(guide.block("missing")) ?? [];
  const listed = await ask(gate, path);
  assert.equal(listed.json.receipts.length, 1, "the second payment has no outcome yet");
});

test("the guide's tests of the contract pass, and each changed step fails a case", async (t) => {
  const folder = temporaryFolder(t);
  const tests = guide.block("orders.test.yaml");
  const passes = async (text: string): Promise<number> => {
    writeFileSync(join(folder, "orders.yaml"), guide.block("orders.yaml"));
    writeFileSync(join(folder, "orders.test.yaml"), text);
    const options = { coverage: false, filter: undefined, json: false, junit: undefined, min: undefined, watch: false };
    return (await testCommand([folder], options)).exitCode;
  };
  assert.equal(await passes(tests), 0);
  for (const [from, to] of [
    ["failed, key: default", "failed"],
    ["failed, call: first", "unknown, call: first"],
    [", expect: outcome-refused", ""],
    [", amount: 42", ""],
  ] as const) {
    assert.ok(tests.includes(from), from);
    assert.equal(await passes(tests.replace(from, to)), 1, from);
  }
});
