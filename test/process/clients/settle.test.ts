/**
 * Goal: `settle` of both clients works with a real gate. Method: a client asks about a payment that a person must decide
 * and settles the verdict, while this test decides each approval that it opens.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { runtimes } from "../../../clients/conformance/runtimes.ts";
import { startDesk, type Desk } from "../../support/approvals.ts";
import { key } from "../../support/gate.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const clients = fileURLToPath(new URL("../../../clients", import.meta.url));
const scripts = {
  python: [
    "import sys; sys.path.insert(0, sys.argv[1] + '/python')",
    "from svc_gate import SvcGate",
    "gate, call = SvcGate(sys.argv[2], api_key=sys.argv[3]), {'amount': 1, 'to': 'anna'}",
    "first = gate.check('pay.send', call, {'wallet': 'w', 'price': 20})",
    "facts = lambda: {'wallet': 'w', 'price': 30}",
    "verdict = gate.settle(first, 'pay.send', call, facts, timeout=60)",
    "print(verdict.verdict, verdict.approval['status'], verdict.reason, sep='\\n')",
  ].join("\n"),
  node: [
    "const [, clients, url, apiKey] = process.argv;",
    "const { SvcGate } = await import(`file://${clients}/javascript/svc-gate.mjs`);",
    "const [gate, call] = [new SvcGate(url, { apiKey }), { amount: 1, to: 'anna' }];",
    "const first = await gate.check('pay.send', call, { wallet: 'w', price: 20 });",
    "const facts = async () => ({ wallet: 'w', price: 30 });",
    "const verdict = await gate.settle(first, 'pay.send', call, facts, { timeoutMs: 60_000 });",
    "console.log([verdict.verdict, verdict.approval.status, verdict.reason].join('\\n'));",
  ].join("\n"),
};
const { found } = runtimes();
const latest = [
  found.findLast(({ name }) => name.startsWith("python")),
  found.findLast(({ name }) => name.startsWith("node")),
].filter((one) => one !== undefined);

suite("a client settles a verdict with a real gate", () => {
  for (const { name, command } of latest) {
    test(`${name}: the price rises after the approval, so a person approves twice and the call runs`, async (t) => {
      const desk = await startDesk(t);
      const settled = settle(desk, command[0] ?? "");
      await decide(desk, "approve");
      await decide(desk, "approve");
      const [verdict, status, reason = ""] = await settled;
      assert.deepEqual([verdict, status], ["ALLOW", "used"]);
      says("approved", reason);
    });

    test(`${name}: a person denies the call, so it is blocked`, async (t) => {
      const desk = await startDesk(t);
      const settled = settle(desk, command[0] ?? "");
      await decide(desk, "deny");
      const [verdict, status, reason = ""] = await settled;
      assert.deepEqual([verdict, status], ["BLOCK", "denied"]);
      says("denied", reason);
    });
  }
});

const root = fileURLToPath(new URL("../../..", import.meta.url));
const contract = readFileSync(`${root}/contracts/payments.yaml`, "utf8");
/** The lines of README.md, as a program that prints the result. */
const readme = [
  "import sys; sys.path.insert(0, sys.argv[1] + '/python')",
  "from svc_gate import SvcGate",
  "gate, name = SvcGate(sys.argv[2], api_key=sys.argv[3]), 'payment.send'",
  "arguments = dict(amount=20, currency='USD', payee_address='p', offer_expires_epoch=2)",
  "facts = lambda: dict(monthly_spend_usd=0, approved_payees=['p'], historical_price_usd=10, now_epoch=1)",
  "run_tool = lambda *_: 'ran'",
  /<!-- docs: settle -->\n```python\n([\s\S]*?)```/.exec(readFileSync(`${root}/README.md`, "utf8"))?.[1] ?? "",
  "print(result)",
].join("\n");

suite("examples of a call that a person decides", () => {
  for (const { name, command } of latest) {
    const isPython = name.startsWith("python");
    const example = isPython ? "approved_payment.py" : "approved-payment.mjs";
    for (const decision of ["approve", "deny"] as const)
      test(`examples/${example}: the person's answer is ${decision}`, async (t) => {
        const desk = await startDesk(t, { contract });
        const printed = printedBy(command[0] ?? "", [`${root}/examples/${example}`, desk.address]);
        await decide(desk, decision);
        says(decision, (await printed).join("\n"));
      });
    if (isPython)
      test("the lines of README.md run a call after a person approves it", async (t) => {
        const desk = await startDesk(t, { contract });
        const printed = printedBy(command[0] ?? "", ["-c", readme, clients, desk.address, key]);
        await decide(desk, "approve");
        assert.deepEqual(await printed, ["ran"]);
      });
  }
});

async function settle({ address }: Desk, program: string): Promise<readonly string[]> {
  const script = /python/.test(program) ? ["-c", scripts.python] : ["--input-type=module", "-e", scripts.node];
  return printedBy(program, [...script, clients, address, key]);
}

/** Runs a program to its end. Returns the lines that it prints. */
async function printedBy(program: string, args: readonly string[]): Promise<readonly string[]> {
  const env = { PATH: process.env["PATH"] ?? "", PYTHONDONTWRITEBYTECODE: "1", SVC_API_KEY: key };
  const child = spawn(program, args, { env });
  let text = "";
  child.stdout.on("data", (chunk) => (text += chunk));
  child.stderr.on("data", (chunk) => (text += chunk));
  await once(child, "close");
  return text.trim().split(/\r?\n/);
}

/** Waits until a call waits for a person, and decides it. */
async function decide(desk: Desk, decision: "approve" | "deny"): Promise<void> {
  for (let turn = 0; turn < 2000; turn += 1) {
    const { json } = await desk.as("anna", "/approvals?state=pending");
    const [open] = json.approvals;
    if (open !== undefined) {
      assert.equal((await desk.decides("anna", open.id, decision)).status, 200);
      return;
    }
    await pause(50);
  }
  assert.fail("no call waits for a person");
}
