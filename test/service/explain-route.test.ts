/**
 * Goal: POST /explain says how the gate reaches a verdict, and records, counts and reveals nothing. Method: a gate over
 * HTTP is compared with `svc-gate explain --json`, with its receipts and with POST /check. Positive controls: each rule
 * fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { explainCommand } from "../../packages/records/src/explain/command.ts";
import { limits } from "../../packages/core/src/wire/mod.ts";
import { approved, large, naming, payments, runScenarios, small, startDesk, type Desk } from "../support/approvals.ts";
import { ask, check, startGate, temporaryFolder, type Answer } from "../support/gate.ts";

/** A tool whose pattern takes some milliseconds to compile. */
const tool = (n: number): string => {
  const pattern = `"^(a|b|c${n}){1,50}x{1,50}[a-z0-9]{1,200}$"`;
  const input = `{ type: object, additionalProperties: false, properties: { a: { type: string, pattern: ${pattern} } } }`;
  return `{ input: ${input}, otherwise: ALLOW }`;
};

function explains({ address }: Pick<Desk, "address">, body: object | string, own?: string): Promise<Answer> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (own !== undefined) headers["authorization"] = `Bearer ${own}`;
  return ask({ address }, "/explain", {
    method: "POST",
    headers,
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** What the command prints for a receipt, without what only the command looks for. */
async function printedFor({ folder }: Desk, receipt: number): Promise<any> {
  const options = { contract: "", key: "default", mode: "enforce", json: true, dataDir: join(folder, "data") };
  const { text } = await explainCommand(undefined, { ...options, receipt: String(receipt) });
  const printed = JSON.parse(text);
  for (const counter of printed.counters) counter.counted = null;
  return printed;
}

const valuesOf = ({ counters }: any): unknown =>
  Object.fromEntries(counters.map(({ name, value }: any) => [name, value]));

const ruleOf = ({ rules }: any, id: string): any => rules.find((rule: any) => rule.id === id);

runScenarios("POST /explain", [
  {
    rule: "the explanation of a receipt under its own contract is what the command prints",
    run: async (desk) => {
      const id = await approved(desk);
      for (const call of [small, { ...small, tool_name: "pay.lost" }, naming(id)]) await desk.asks(call);
      for (const receipt of (await ask(desk, "/receipts")).json.receipts) {
        const { status, json, text } = await explains(desk, { receipt: receipt.seq, under: "recorded" });
        assert.equal(status, 200, text);
        assert.deepEqual(json, await printedFor(desk, receipt.seq));
        assert.deepEqual(
          [json.verdict, json.rule, json.reason, json.mode, json.recorded.agrees],
          [receipt.verdict, receipt.rule, receipt.reason, receipt.mode, true],
        );
      }
    },
    defect: { within: "recordedValues", find: "counters[name]", put: '"2499"' },
  },
  {
    rule: "a typed call sees only the counters in the request, and any other counter is 0",
    run: async (desk) => {
      await desk.asks(small);
      const typed = (await explains(desk, { call: large })).json;
      assert.deepEqual(valuesOf(typed), { "pay.spent": "0", "pay.tries": "0" });
      assert.deepEqual([typed.verdict, typed.rule, typed.recorded], ["ESCALATE", "pay.large", null]);
      const given = (await explains(desk, `{"call":${JSON.stringify(large)},"counters":{"spent":1300.50}}`)).json;
      assert.deepEqual(valuesOf(given), { "pay.spent": "1300.50", "pay.tries": "0" });
      assert.equal(given.rule, "pay.budget");
      const [sum] = ruleOf(given, "pay.budget").condition.parts;
      assert.deepEqual([sum.text, sum.came], ["counters.spent + input.amount", [{ value: "2500.5" }]]);
    },
    defect: { within: "explainJob", find: 'givenValues(given, "0")', put: 'givenValues(given, "5")' },
  },
  {
    rule: "a person starts from a call of a tool in force, which the gate explains",
    run: async (desk) => {
      const { tools, call } = (await ask(desk, "/rules/example")).json;
      assert.deepEqual([tools[0], tools.includes(large.tool_name)], [call.tool_name, true]);
      const chosen = (await ask(desk, `/rules/example?tool=${large.tool_name}`)).json;
      assert.deepEqual([chosen.tools, chosen.call.tool_name], [tools, large.tool_name]);
      for (const each of [call, chosen.call]) {
        const { status, json } = await explains(desk, { call: each });
        assert.deepEqual([status, json.mismatch], [200, null]);
      }
      const unknown = await ask(desk, "/rules/example?tool=lost");
      assert.deepEqual([unknown.status, unknown.json.code], [404, "not-found"]);
    },
    defect: { within: "rulesExample", find: "exampleCall(documents, tool)", put: "new Map()" },
  },
  {
    rule: "an explanation adds no row and changes no counter",
    run: async (desk) => {
      await desk.asks(small);
      const before = await desk.rows();
      for (const body of [{ call: large }, { receipt: before }, { call: small, contract: payments }, { call: {} }])
        await explains(desk, body);
      assert.equal(await desk.rows(), before);
      const seq = (await desk.asks(small)).receipt.seq;
      assert.equal((await desk.outcomeOf(seq)).counters["pay.spent"], "5");
    },
    defect: {
      within: "explain",
      module: "http/explain",
      first:
        'const value = { by: "default", act: "explain", body: {}, reason: "Svc: x" }; ' +
        "await call.gate.appendAdminEvent(async () => ({ ok: true, value }));",
    },
  },
  {
    rule: "a key without the scope `receipts` may explain calls, but no receipts",
    run: async (desk) => {
      await desk.asks(small);
      const { key } = (await desk.operates("/admin/keys", { name: "page", scopes: ["rules"] })).json;
      assert.equal((await explains(desk, { call: small }, key)).status, 200);
      const { status, json } = await explains(desk, { receipt: 1 }, key);
      assert.deepEqual([status, json.code], [403, "forbidden"]);
      assert.match(json.detail, /lacks the scope "receipts"/);
      const reader = (await desk.operates("/admin/keys", { name: "reader", scopes: ["receipts"] })).json.key;
      assert.equal((await explains(desk, { call: small }, reader)).status, 403);
    },
    defect: { within: "explain", module: "http/explain", find: 'key?.scopes.has("receipts") !== true', put: "false" },
  },
  {
    rule: "a call that POST /check refuses with 400 is refused with the same sentence",
    run: async (desk) => {
      for (const call of [
        {},
        { ...small, tool_name: "" },
        { ...small, tool_input: [] },
        { ...small, tool_nam: "x" },
        { ...small, session_id: "s".repeat(limits.sessionIdBytesMax + 1) },
        { ...small, platform_state: 1 },
        { ...small, call_id: "1" },
      ]) {
        const [explained, checked] = [await explains(desk, { call }), await check(desk, call)];
        assert.deepEqual([explained.status, explained.json], [400, checked.json]);
      }
    },
    // The thread refuses such a call too.
    defect: [
      { within: "readExplainRequest", module: "http/explain", find: "call.ok ? parsed : call", put: "parsed" },
      { within: "explainJob", find: "explained.problem", put: '"the call is wrong"' },
    ],
  },
  {
    rule: "a pasted contract decides alone, and its errors are those of the compiler",
    run: async (desk) => {
      const pasted = payments.replace("input.amount > 1000", "input.amount > 3");
      const { json } = await explains(desk, { call: small, contract: pasted });
      assert.deepEqual([json.verdict, json.rule], ["ESCALATE", "pay.large"]);
      assert.deepEqual(ruleOf(json, "pay.large").condition.place.file, "contract.yaml");
      assert.equal((await explains(desk, { call: small })).json.verdict, "ALLOW");
      const slip = payments.replace("input.amount > 1000", "input.amont > 1000");
      const refused = await explains(desk, { call: small, contract: slip });
      assert.deepEqual([refused.status, refused.json.code], [422, "contract-refused"]);
      assert.match(refused.json.detail, /^error\[[a-z-]+\]: .*`amont`[\s\S]*contract\.yaml:37:[\s\S]*1 error$/);
      const rule = (n: number): string =>
        `  - { rule: r${n}, on: [pay.send], when: nothing, verdict: BLOCK, reason: r }\n`;
      const many = payments + Array.from({ length: 60 }, (_, n) => rule(n)).join("");
      const { detail } = (await explains(desk, { call: small, contract: many })).json;
      assert.match(detail, /50 errors, and 10 more$/);
    },
    defect: {
      within: "jobOfCall",
      find: 'typeof under === "object" ? under : { rules: inForce.text }',
      put: "{ rules: inForce.text }",
    },
  },
  {
    rule: "under another contract a receipt keeps the values of the same counters, and others are unknown",
    run: async (desk) => {
      const often = { ...small, tool_input: { amount: 5, to: "often" } };
      await desk.asks(often);
      const { seq } = (await desk.asks(often)).receipt;
      const same = (await explains(desk, { receipt: seq })).json;
      assert.deepEqual([same.rule, valuesOf(same)], ["pay.many", { "pay.spent": "5", "pay.tries": "1" }]);
      const contract = payments.replace(
        "tries: { of: [pay.send], per: platform.wallet, within: 24h",
        "tries: { of: [pay.send], per: platform.wallet, within: 12h",
      );
      const unknown = (await explains(desk, { receipt: seq, contract })).json;
      assert.deepEqual(valuesOf(unknown), { "pay.spent": "5", "pay.tries": null });
      const { json } = await explains(desk, { receipt: seq, contract, counters: { tries: 1, spent: 9 } });
      assert.deepEqual(valuesOf(json), { "pay.spent": "5", "pay.tries": "1" });
      assert.equal(json.recorded.agrees, true);
      assert.equal(unknown.recorded.agrees, false);
    },
    defect: { within: "otherValues", find: "known.get(idOf(lookup)) ?? valueGiven(lookup)", put: "valueGiven(lookup)" },
  },
  {
    rule: "the gate explains at most a few calls a second, and says when to ask again",
    run: async (desk) => {
      const sent = Array.from({ length: 3 * limits.explainsBurst }, () => explains(desk, { receipt: 999 }));
      const answers = await Promise.all(sent);
      const limited = answers.filter(({ json }) => json.code === "rate-limited");
      assert.ok(limited.length >= limits.explainsBurst, `${limited.length} were refused`);
      assert.equal(limited.length + answers.filter(({ status }) => status === 404).length, answers.length);
      for (const { status, headers } of limited) assert.deepEqual([status, headers.get("retry-after")], [429, "1"]);
      assert.equal((await check(desk, small)).status, 200, "positive control: checks have another rate");
    },
    defect: { within: "charge", module: "http/explain", find: "charged?.ok !== false", put: "true" },
  },
]);

/** Two seconds without work. */
const sleeps = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000)";

suite("POST /explain refuses", () => {
  test("a body with other members, or with members that exclude each other", async (t) => {
    const desk = await startDesk(t);
    const { seq } = (await desk.asks(small)).receipt;
    const wrong: readonly (readonly [body: object | string, sentence: RegExp])[] = [
      [{}, /either "call".* or "receipt"/],
      [{ call: small, receipt: 1 }, /either "call"/],
      [{ call: "x" }, /"call" must be an object, not a string/],
      [{ receipt: 1.5 }, /"receipt" must be the number of a receipt/],
      [{ receipt: seq, under: "x" }, /"under" must be in-force or recorded/],
      [{ call: small, under: "recorded" }, /only with "receipt"/],
      [{ call: small, under: "in-force", contract: payments }, /exclude each other/],
      [{ call: small, contract: 1 }, /"contract" must be the text/],
      [{ receipt: seq, under: "recorded", counters: { spent: 1 } }, /cannot change what the receipt recorded/],
      [{ call: small, counters: { spent: -1 } }, /"spent" must be a number of 0 or more/],
      [{ call: small, cal: 1 }, /did you mean "call"/],
      ["{", /^line 1, column 2/],
    ];
    for (const [body, sentence] of wrong) {
      const { status, json } = await explains(desk, body);
      assert.deepEqual([status, sentence.test(json.detail)], [400, true], JSON.stringify([body, json]));
    }
    const unknown = await explains(desk, { call: small, counters: { spend: 1 } });
    assert.deepEqual([unknown.status, unknown.json.code], [400, "invalid-request"]);
    assert.match(unknown.json.detail, /the counter spend does not exist; the counters are pay\.spent/);
    assert.equal((await explains(desk, { receipt: seq })).status, 200, "positive control");
  });

  test("a row that is not a check, and a receipt that does not exist or has erased parts", async (t) => {
    const desk = await startDesk(t);
    const change = await explains(desk, { receipt: 1 });
    assert.deepEqual([change.status, /not a check/.test(change.json.detail)], [400, true], change.text);
    assert.equal((await explains(desk, { receipt: 999 })).status, 404);
    const { seq } = (await desk.asks(small)).receipt;
    assert.equal((await explains(desk, { receipt: seq })).status, 200, "positive control");
    await desk.operates("/admin/erase", { rows: [[seq, seq]], parts: ["input"], reason: "asked for" });
    const erased = await explains(desk, { receipt: seq });
    assert.deepEqual([erased.status, /was erased/.test(erased.json.detail)], [400, true], erased.text);
  });

  test("an explanation that takes too long, sooner for a pasted contract; meanwhile checks are answered", async (t) => {
    const slow = { ...small, session_id: "slow" };
    const desk = await startDesk(t, {
      defects: [
        { within: "explainJob", first: 'if (call.body.includes("slow")) for (;;);' },
        { within: "explainJob", first: `if (call.body.includes("sleepy")) ${sleeps};` },
        { within: "workMsMax", find: "10_000", put: "3000" },
        { within: "workMsMax", find: "5000", put: "1000" },
      ],
    });
    for (const [body, seconds] of [
      [{ call: slow }, "3"],
      [{ call: slow, contract: payments }, "1"],
    ] as const) {
      const refused = explains(desk, body);
      const { receipt } = await desk.asks(small);
      const { status, json } = await refused;
      const sentence = `an explanation must take at most ${seconds} s and 256 MB`;
      assert.deepEqual([status, json.code, json.detail], [422, "contract-refused", sentence]);
      assert.equal((await explains(desk, { receipt: receipt.seq })).status, 200, "positive control: a later one");
    }
    // A thread that waits for a processor does not work.
    const slept = await explains(desk, { call: { ...small, session_id: "sleepy" }, contract: payments });
    assert.equal(slept.status, 200, slept.text);
  });

  test("no explanation for the pauses of its thread, which are not work", async (t) => {
    const tools = Array.from({ length: 150 }, (_, n) => `  t${n}: ${tool(n)}\n`).join("");
    const desk = await startDesk(t, {
      defects: [
        { within: "Turns.rest", first: "await setTimeout(200);" },
        { within: "workMsMax", find: "5000", put: "4000" },
      ],
    });
    const since = performance.now();
    const { status, text } = await explains(desk, { call: small, contract: `contract: big\ntools:\n${tools}` });
    assert.equal(status, 200, text);
    assert.ok(performance.now() - since > 4000, "positive control: it paused for longer than it may work");
  });

  test("every body if the gate was started without explanations", async (t) => {
    const gate = await startGate(t, { hooks: {} });
    const { status, json } = await explains(gate, { call: small });
    assert.deepEqual([status, json.code], [404, "not-found"]);
    assert.equal((await ask(gate, "/report")).status, 404);
    assert.equal((await explains(await startGate(t), { call: small })).status, 200, "positive control");
  });
});

test("below a tenant, POST /explain decides under the tenant's contract, and explains the tenant's receipts", async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, "acme"));
  writeFileSync(join(folder, "acme", "pay.yaml"), payments.replace("input.amount > 1000", "input.amount > 3"));
  writeFileSync(join(folder, "tenants.yaml"), "tenants:\n  acme: { mandate: acme/pay.yaml, mode: enforce }\n");
  const desk = await startDesk(t, { folder, env: { SVC_TENANTS: join(folder, "tenants.yaml") } });
  const { key } = (await desk.operates("/t/acme/admin/keys", { name: "page", scopes: ["check", "rules", "receipts"] }))
    .json;
  const acme = { address: `${desk.address}/t/acme` };
  assert.equal((await explains(acme, { call: small }, key)).json.verdict, "ESCALATE");
  assert.equal((await explains(desk, { call: small })).json.verdict, "ALLOW", "positive control: the root");
  await check(acme, small, { authorization: `Bearer ${key}` });
  const { json } = await explains(acme, { receipt: 1, under: "recorded" }, key);
  assert.deepEqual([json.verdict, json.recorded.agrees], ["ESCALATE", true]);
  assert.equal((await explains(acme, { call: small })).status, 401, "the root's key");
  const headers = { authorization: `Bearer ${key}` };
  const report = (await ask(acme, "/report", { headers })).json;
  assert.deepEqual([report.receipts, report.by_rule[0].rule], [1, "pay.large"]);
});
