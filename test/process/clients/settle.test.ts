/**
 * Goal: `settle` of both clients works with a real gate. Method: a client asks about a payment that a person must decide
 * and settles the verdict, while this test decides each approval that it opens.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
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

async function settle({ address }: Desk, program: string): Promise<readonly string[]> {
  const script = /python/.test(program) ? ["-c", scripts.python] : ["--input-type=module", "-e", scripts.node];
  const child = spawn(program, [...script, clients, address, key]);
  let text = "";
  child.stdout.on("data", (chunk) => (text += chunk));
  child.stderr.on("data", (chunk) => (text += chunk));
  await once(child, "close");
  return text.trim().split(/\r?\n/);
}

/** Waits until a call waits for a person, and decides it. */
async function decide(desk: Desk, decision: "approve" | "deny"): Promise<void> {
  for (let turn = 0; turn < 300; turn += 1) {
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
