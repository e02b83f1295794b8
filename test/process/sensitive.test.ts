/**
 * Goal: what a contract lists under `sensitive:` can be erased by itself at a gate, its bytes are nowhere afterwards, and all
 * that reads evidence shows what is left. Method: a gate that serves a contract which lists members; the program is run
 * against it; files are searched before and after.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { filesWith } from "../support/erased-bytes.ts";
import { ask, check, finish, startGate, type Running } from "../support/gate.ts";

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
  return { gate, data, run: (...args) => finish(t, args, { cwd: gate.folder, env: { SVC_DATA_DIR: data } }) };
}

const place = (gate: Running, amount: unknown): Promise<{ readonly json: any }> =>
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
  await place(gate, 10);
  await place(gate, 20);
  const misfit = (await place(gate, "ten")).json;
  assert.equal(misfit.verdict, "BLOCK", "what fits no schema is apart too");
  assert.equal((await shown(gate, 1)).tool_input.customer.email, "KESTREL@example.org");
  assert.equal((await shown(gate, 3)).evidence.length, 8);

  const why = ["--reason", "request 4711"];
  const erased = await run("erase", "1-3", "--part", "input.customer.email", ...why);
  assert.deepEqual([erased.code, erased.stdout], [0, "erased 9 parts of 3 receipts; row 4 says so\n"], erased.stderr);
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
  assert.match(
    (await run("explain", "--receipt", "1")).stderr,
    /receipt 1 cannot be explained: reason, outcome, input\.customer\.email of it were erased\n {2}row 4, /,
  );
  assert.match(
    (await run("replay")).stdout,
    /3 receipts cannot be decided again:\n {2}3 from receipt 1 on: a part of its evidence was erased/,
  );
  const blocked = (await place(gate, 75)).json;
  assert.equal(blocked.verdict, "BLOCK", "counters are what they were");

  const again = await run("erase", "1", "--part", "input.customer.email", ...why);
  assert.equal(again.stdout, "already erased: input.customer.email of 1 receipt\n");
  const some = await run("erase", "1-5", "--part", "input.customer.email", ...why);
  assert.match(some.stdout, /^erased 3 parts of 1 receipt; row 6 says so\n {2}rows that record acts of people, 1 of/);
  const rest = await run("erase", "1", "--part", "platform", ...why);
  assert.equal(rest.stdout, "erased 2 parts of 1 receipt; row 7 says so\n");
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
  await place(gate, 10);
  await place(gate, 20);
  await run("erase", "1", "--part", "input.customer.email", "--reason", "request 4711");
  const folder = join(gate.folder, "out");
  await gate.stop(); // Its last signed head is kept by then.
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
  await place(gate, 10);
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
  assert.equal(most.code, 1, "a name that was mistyped is no erasure that is done");
  const elsewhere = (part: string, stands: string): string =>
    `  ${part} is not a part of its own of 1 receipt (3): if it was sent, it is in their ${stands}`;
  assert.deepEqual((most.stderr + most.stdout).split("\n").slice(0, 4), [
    "erased 8 parts of 2 receipts; row 4 says so",
    elsewhere("platform.owner", "platform"),
    elsewhere("input.customer.email", "input"),
    "  input.customer.fax is not a part of its own of any of them: it must be a member that their contract lists under `sensitive:`",
  ]);
  const said = (await shown(gate, 4)).tool_input.parts;
  assert.deepEqual(said, ["input.customer.email", "outcome", "platform.owner", "reason"], "no name that says nothing");
  for (const [part, code, says] of [
    [
      "input.customer.emails",
      1,
      /^nothing was erased\n {2}input\.customer\.emails is not a part of its own of any of them: it must be a member/,
    ],
    [
      "inputs.a",
      2,
      /there is no part .inputs\.a.; parts are call, input, outcome, platform, reason, and what a contract/,
    ],
    [`input.${"a".repeat(130)}`, 2, /there is no part/],
  ] as const) {
    const ran = await run("erase", "1", "--part", part, ...why);
    assert.match(ran.stdout + ran.stderr, says);
    assert.equal(ran.code, code);
  }
});
