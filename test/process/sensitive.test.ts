/**
 * Goal: members that a contract lists under `sensitive:` can be erased alone at a gate, no file contains their bytes
 * afterwards, and all readers of evidence show the rest. Method: a gate serves a contract with such a list; the program
 * runs against it; files are searched before and after.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { filesWith } from "../support/erased-bytes.ts";
import { command } from "../support/command.ts";
import { ask, check, startGate, type Running } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const orders = `
contract: orders
summary: An agent may place small orders.
sensitive: [input.customer.email, platform.owner]
platform:
  type: object
  properties: { owner: { type: string }, tier: { type: integer } }
tools:
  order.place:
    input:
      type: object
      additionalProperties: false
      required: [amount]
      properties:
        amount: { type: number, minimum: 0 }
        customer: { type: object, additionalProperties: true, properties: { email: { type: string } } }
    otherwise: { verdict: ALLOW, reason: "{input.amount} USD may be spent" }
counters:
  spent: { of: [order.place], per: session, sum: input.amount, within: 1d }
rules:
  - rule: small
    on: [order.place]
    when: counters.spent + input.amount > 100
    verdict: BLOCK
    reason: over 100 USD were spent
`;

type Run = (
  ...args: readonly string[]
) => Promise<{ readonly code: number | string; readonly stdout: string; readonly stderr: string }>;

async function serve(t: TestContext): Promise<{ readonly gate: Running; readonly run: Run; readonly data: string }> {
  const gate = await startGate(t, { contracts: { "orders.yaml": orders } });
  const data = join(gate.folder, "data");
  return { gate, data, run: (...args) => command(args, { env: { SVC_DATA_DIR: data } }) };
}

const placeOrder = (gate: Running, amount: unknown): Promise<{ readonly json: any }> =>
  check(gate, {
    tool_name: "order.place",
    tool_input: { amount, customer: { email: "KESTREL@example.org", name: "K" } },
    session_id: "a",
    platform_state: { owner: "SPARROW", tier: 3 },
  });

async function shown(gate: Running, seq: number): Promise<any> {
  const found = await ask(gate, `/receipts?kind=all&limit=1&before=${seq + 1}`);
  return found.json.receipts[0];
}

test("erasing one member keeps the other members, and every reader of receipts reports it", async (t) => {
  const { gate, run, data } = await serve(t);
  await placeOrder(gate, 10);
  await placeOrder(gate, 20);
  const misfit = (await placeOrder(gate, "ten")).json;
  assert.equal(misfit.verdict, "BLOCK", "what fits no schema is apart too");
  assert.equal((await shown(gate, 1)).tool_input.customer.email, "KESTREL@example.org");
  assert.equal((await shown(gate, 3)).evidence.length, 8);

  const why = ["--reason", "request 4711"];
  const erased = await run("erase", "1-3", "--part", "input.customer.email", ...why);
  assert.equal(erased.code, 0, erased.stderr);
  says("erased-9-parts", erased.stdout);
  const row = await shown(gate, 1);
  assert.deepEqual(row.erased, ["input.customer.email", "outcome", "reason"]);
  assert.deepEqual([row.tool_input.amount, row.tool_input.customer.name, row.verdict], [10, "K", "ALLOW"]);
  assert.match(JSON.stringify(row.tool_input.customer.email), /^\{"\.\.\.":"[\w-]{43}"\}$/);
  assert.deepEqual(row.platform_state, { owner: "SPARROW", tier: 3 });
  assert.deepEqual((await shown(gate, 4)).tool_input, {
    parts: ["input.customer.email", "outcome", "reason"],
    rows: [[1, 3]],
  });

  assert.deepEqual(filesWith(data, "KESTREL"), [], "nowhere, while the gate is serving");
  assert.ok(filesWith(data, "SPARROW").includes("ledger.db"), "positive control: the other member is found");

  assert.equal((await run("verify", "--deep", data)).code, 0);
  const [notExplained, erasure] = (await run("explain", "--receipt", "1")).stderr.split("\n");
  says("receipt-not-explained", String(notExplained));
  assert.match(String(erasure), /^ {2}row 4, /);
  const replayed = (await run("replay")).stdout.split("\n");
  const at = replayed.findIndex((line) => line.startsWith("  3 from receipt 1 "));
  says("receipts-not-decided-again", replayed.slice(at - 1, at + 1).join("\n"));
  const blocked = (await placeOrder(gate, 75)).json;
  assert.equal(blocked.verdict, "BLOCK", "counters are what they were");

  const again = await run("erase", "1", "--part", "input.customer.email", ...why);
  says("already-erased", again.stdout);
  const some = await run("erase", "1-5", "--part", "input.customer.email", ...why);
  const [parts, acts] = some.stdout.split("\n");
  says("erased-3-parts", String(parts));
  says("rows-of-acts", String(acts));
  const rest = await run("erase", "1", "--part", "platform", ...why);
  says("erased-2-parts", rest.stdout);
  assert.deepEqual((await shown(gate, 1)).erased, [
    "input.customer.email",
    "outcome",
    "platform",
    "platform.owner",
    "reason",
  ]);
  assert.equal((await run("verify", data)).code, 0);
});

test("an export contains the sensitive members except the erased ones", async (t) => {
  const { gate, run, data } = await serve(t);
  await placeOrder(gate, 10);
  await placeOrder(gate, 20);
  await run("erase", "1", "--part", "input.customer.email", "--reason", "request 4711");
  const folder = join(gate.folder, "out");
  await gate.stop(); // by then its last signed head is stored
  const exported = await run("export", folder);
  assert.equal(exported.code, 0, exported.stderr);
  assert.match((await run("verify", folder)).stdout, /erased {5}3 parts/);
  const lines = await run("export", "-", "--format", "jsonl");
  const [first, second] = lines.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(first.erased, ["reason", "outcome", "input.customer.email"]);
  assert.equal(second.input.customer.email, "KESTREL@example.org");
  assert.equal(filesWith(folder, "KESTREL").length, 1, "of the second row");
  assert.equal((await run("replay", data)).code, 0);
});

test("erase reports each named member that is not a part of its own", async (t) => {
  const { gate, run } = await serve(t);
  const email = "KESTREL@example.org";
  await placeOrder(gate, 10);
  await check(gate, {
    tool_name: "order.Place",
    tool_input: { customer: { email } },
    platform_state: { owner: "SPARROW" },
  });
  await check(gate, { tool_name: "order.place", tool_input: { amount: 1, customer: [{ email }] } });
  assert.equal((await shown(gate, 2)).rule, "$route");
  assert.deepEqual(
    [(await shown(gate, 2)).evidence.length, (await shown(gate, 3)).evidence.length],
    [8, 6],
    "of what no contract routes all that any lists is apart; what is in another place is not",
  );
  const why = ["--reason", "request 4711"];
  const most = await run("erase", "1-3", "--part", "platform.owner,input.customer.email,input.customer.fax", ...why);
  assert.equal(most.code, 1, "a mistyped name does not count as an erasure");
  const lines = (most.stderr + most.stdout).split("\n");
  for (const [at, name] of ["erased-8-parts", "owner-elsewhere", "email-elsewhere", "fax-in-no-receipt"].entries())
    says(name, String(lines[at]));
  const said = (await shown(gate, 4)).tool_input.parts;
  assert.deepEqual(said, ["input.customer.email", "outcome", "platform.owner", "reason"], "no name that says nothing");
  for (const [part, code, name] of [
    ["input.customer.emails", 1, "nothing-erased"],
    ["inputs.a", 2, "no-such-part"],
    [`input.${"a".repeat(130)}`, 2, "name-too-long"],
  ] as const) {
    const ran = await run("erase", "1", "--part", part, ...why);
    says(name, ran.stdout + ran.stderr);
    assert.equal(ran.code, code);
  }
});
