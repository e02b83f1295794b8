/**
 * Goal: `svc-gate analyze` reports each part of an approval that changes nothing, that nobody can give or that applies to
 * any subject, and reports no other. Method: one contract, with one part replaced for each case; each table has cases
 * with a finding and cases that differ from them in one part and have none.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { analyze, type KnownKey } from "../../../../packages/workbench/src/analysis/mod.ts";
import { analyzeCommand } from "../../../../packages/workbench/src/commands/analyze.ts";
import { readKeys } from "../../../../packages/workbench/src/commands/keys-file.ts";
import { recompile, renderDiagnostic } from "../../../../packages/readers/src/contract.ts";

interface Parts {
  readonly mandate?: string;
  readonly platform?: string;
  readonly top?: string;
  readonly tool?: string;
  readonly otherwise?: string;
  readonly rules?: string;
  readonly counters?: string;
}

const asks = "{ rule: large, on: t, when: input.usd > 100, verdict: ESCALATE, reason: large }";
const blocks = "{ rule: huge, on: t, when: input.usd > 500, verdict: BLOCK, final: true, reason: huge }";

function textOf(parts: Parts): string {
  const part = (key: string, text: string | undefined, indent = ""): string =>
    text === undefined ? "" : `${indent}${key}: ${text}\n`;
  return [
    `--- # mandate.yaml\nmandate: m\ncontracts: [c.yaml]\n${parts.mandate ?? ""}`,
    "--- # c.yaml\ncontract: c\n",
    `platform: ${parts.platform ?? "{ type: object, required: [price], properties: { price: { type: number } } }"}\n`,
    parts.top ?? "",
    "requires: platform.present\ntools:\n  t:\n    input:\n      type: object\n      additionalProperties: false\n",
    "      required: [usd, user]\n      properties:\n",
    "        usd: { type: number, minimum: 0 }\n        user: { type: string }\n        note: { type: string }\n",
    part("approval", parts.tool, "    "),
    `    otherwise: ${parts.otherwise ?? "ALLOW"}\n`,
    part("counters", parts.counters),
    `rules: [${parts.rules ?? asks}]\n`,
  ].join("");
}

const judged: ReadonlySet<string> = new Set([
  "unused-approval",
  "open-subject",
  "quorum-with-self",
  "no-approver",
  "unused-counter",
  "session-budget",
  "session-not-required",
  "agent-controlled-key",
]);

function found(parts: Parts, keys?: readonly KnownKey[]): readonly string[] {
  const compiled = recompile(textOf(parts));
  if (!compiled.ok) assert.fail(compiled.problem.map(renderDiagnostic).join("\n\n"));
  return analyze(compiled.value, keys)
    .filter(({ code }) => judged.has(code))
    .map(({ code, span }) => `${code}: ${span.file.text.slice(span.from, span.to)}`);
}

type Case = readonly [what: string, parts: Parts, expected: readonly string[]];

function cases(table: readonly Case[]): void {
  for (const [what, parts, expected] of table)
    test(`analyze reports ${expected.length === 0 ? "nothing" : expected.join(" and ")} for ${what}`, () =>
      assert.deepEqual(found(parts), expected));
}

const withApproval = (rule: string, approval: string): string => rule.replace(/ \}$/, `, approval: ${approval} }`);
const soft = blocks.replace("final: true, ", "");
const price = asks.replace("input.usd > 100", "input.usd > platform.price");
const two = "{ rule: small, on: t, when: input.usd < 1, verdict: ESCALATE, approval: { of: 3 }, reason: small }";

suite("unused-approval", () => {
  const gone = "{ type: object, properties: { price: { type: number } } }";
  cases([
    ["a rule that asks", { rules: withApproval(asks, "{ of: 2 }") }, []],
    ["a final BLOCK", { rules: `${asks}, ${withApproval(blocks, "{ of: 2 }")}` }, ["unused-approval: { of: 2 }"]],
    ["a BLOCK that assist mode softens", { rules: `${asks}, ${withApproval(soft, "{ of: 2 }")}` }, []],
    [
      "a rule with ALLOW",
      { otherwise: "ESCALATE", rules: withApproval(asks.replace("ESCALATE", "ALLOW"), "{ of: 2 }") },
      ["unused-approval: { of: 2 }"],
    ],
    ["a tool that never asks", { tool: "{ by: [a], of: 2 }", rules: blocks }, ["unused-approval: { by: [a], of: 2 }"]],
    ["a tool with an ESCALATE", { tool: "{ by: [a], of: 2 }" }, []],
    ["a tool with a BLOCK that assist mode softens", { tool: "{ of: 2 }", rules: soft }, []],
    ["a tool with an ESCALATE under otherwise", { tool: "{ of: 2 }", otherwise: "ESCALATE", rules: blocks }, []],
    [
      "a tool with a rule in observe mode",
      { tool: "{ of: 2 }", rules: asks.replace("verdict", "mode: observe, verdict") },
      [],
    ],
    [
      "a tool's part that its only rule replaces",
      { tool: "{ by: [a], of: 2 }", rules: withApproval(asks, "{ of: 3 }") },
      ["unused-approval: 2"],
    ],
    [
      "a tool's `batch` that its only rule replaces",
      { tool: "{ by: [a], batch: false }", rules: withApproval(asks, "{ batch: true }") },
      ["unused-approval: { by: [a], batch: false }"],
    ],
    ["a tool's part that one rule of two replaces", { tool: "{ of: 2 }", rules: `${asks}, ${two}` }, []],
    ["a contract that never asks", { top: "approval: { of: 2 }\n", rules: blocks }, ["unused-approval: { of: 2 }"]],
    [
      "a contract's part that its tool replaces",
      { top: "approval: { of: 2 }\n", tool: "{ of: 3 }" },
      ["unused-approval: { of: 2 }"],
    ],
    ["a contract's part that its tool does not replace", { top: "approval: { of: 2 }\n", tool: "{ by: [a] }" }, []],
    ["texts that a tool leaves out of approvals", { tool: "{ unbound: [input.note] }" }, []],
    [
      "texts that a tool without approvals leaves out",
      { tool: "{ unbound: [input.note] }", rules: blocks },
      ["unused-approval: { unbound: [input.note] }"],
    ],
    [
      "a pin on a fact that is absent whenever the rule fires",
      {
        platform: gone,
        rules: withApproval(asks.replace("input.usd > 100", '"!has(platform.price)"'), "{ pins: [platform.price] }"),
      },
      ["unused-approval: platform.price"],
    ],
    [
      "a pin on a fact that may be absent",
      { platform: gone, rules: withApproval(asks, "{ pins: [platform.price] }") },
      [],
    ],
    [
      "a pin on a subject",
      { top: "subject: [platform.price]\n", rules: withApproval(asks, "{ pins: [platform.price] }") },
      ["unused-approval: platform.price"],
    ],
    ["the drift of a rule that reads a number", { rules: withApproval(price, "{ drift: 1 }") }, []],
    [
      "the drift of a rule that frees its number",
      { rules: withApproval(price, "{ drift: 1, free: [platform.price] }") },
      ["unused-approval: 1"],
    ],
    ["the drift of a rule that reads none", { rules: withApproval(asks, "{ drift: 1 }") }, ["unused-approval: 1"]],
    [
      "the drift of a rule that pins its number",
      { rules: withApproval(price, "{ drift: 1, pins: [platform.price] }") },
      ["unused-approval: 1"],
    ],
  ]);
});

suite("limits on what parked calls reserve", () => {
  const counter = (per: string): string =>
    `{ parked: { of: t, per: ${per}, sum: input.usd, counting: possible, within: 1d } }`;
  const reading = (read: string): string =>
    `${asks}, { rule: queue, on: t, when: ${read} > 500, verdict: BLOCK, reason: too much }`;
  const ofSession = { counters: counter("session"), top: "", rules: reading("counters.parked.held") };
  cases([
    ["a limit on what a key holds", { counters: counter("key"), rules: reading("counters.parked.held") }, []],
    [
      "a limit on what a session holds, without a required session",
      ofSession,
      ["session-not-required: counters.parked.held > 500"],
    ],
    [
      "a budget of a session",
      { ...ofSession, rules: reading("counters.parked") },
      ["session-budget: session", "session-not-required: counters.parked > 500"],
    ],
    [
      "a limit on what is held for a name that the agent chooses",
      { counters: counter("input.user"), rules: reading("counters.parked.held") },
      ["agent-controlled-key: input.user"],
    ],
    [
      "a budget of equal calls, and so of each other input again",
      { counters: counter("[key, call]"), rules: reading("counters.parked") },
      ["agent-controlled-key: key"],
    ],
    [
      "a budget of a session beside a limit on equal calls, which backs nothing",
      {
        ...ofSession,
        counters: `{ parked: { of: t, per: session, counting: possible, within: 1d }, equal: { of: t, per: [key, call], within: 1d } }`,
        rules: `${reading("counters.parked")}, { rule: loops, on: t, when: counters.equal > 20, verdict: BLOCK, reason: x }`,
      },
      ["session-budget: session", "session-not-required: counters.parked > 500"],
    ],
    [
      "a limit on the number of equal calls",
      { counters: counter("[key, call]").replace("sum: input.usd, ", ""), rules: reading("counters.parked") },
      [],
    ],
  ]);
});

suite("open-subject", () => {
  const facts = (name: string, type = "string"): string =>
    `{ type: object, required: [${name}], properties: { ${name}: { type: ${type} } } }`;
  const read = (name: string): string =>
    `{ rule: own, on: t, when: '${name} == "x"', verdict: BLOCK, final: true, reason: x }`;
  const named = (name: string, more: Parts = {}): Parts => ({
    platform: facts(name),
    rules: `${asks}, ${read(`platform.${name}`)}`,
    ...more,
  });
  const texts = ["id", "email", "plan"].map((name) => `${name}: { type: string }`).join(", ");
  const ofCustomer = (top: string): Parts => ({
    platform: facts("customer", `object, required: [id, email, plan], properties: { ${texts} }`),
    top,
    rules: `${asks}, ${read("platform.customer.email")}`,
  });
  const shows = asks.replace("reason: large", 'reason: "large for {platform.plan}"');
  const differs = asks.replace("input.usd > 100", '"input.user != platform.plan"');
  cases([
    ["a wallet", named("wallet"), ["open-subject: wallet"]],
    ["a user's id", named("user_id"), ["open-subject: user_id"]],
    ["a customer's email beside the id of the subject", ofCustomer("subject: [platform.customer.id]\n"), []],
    [
      "a wallet beside an id that is bound",
      {
        platform:
          "{ type: object, required: [id, wallet], properties: { id: { type: string }, wallet: { type: string } } }",
        top: "subject: [platform.id]\n",
        rules: `${asks}, ${read("platform.wallet")}`,
      },
      ["open-subject: wallet"],
    ],
    [
      "an account beside the id of a payment",
      {
        platform: facts(
          "payment",
          "object, required: [id, account], properties: { id: { type: string }, account: { type: string } }",
        ),
        top: "subject: [platform.payment.id]\n",
        rules: `${asks}, ${read("platform.payment.account")}`,
      },
      ["open-subject: account"],
    ],
    [
      "a customer's email beside an id that nothing binds",
      ofCustomer("subject: [platform.customer.plan]\n"),
      ["open-subject: email"],
    ],
    ["a customer's name in another spelling", named("customerName"), ["open-subject: customerName"]],
    ["the working folder", named("cwd"), ["open-subject: cwd"]],
    ["a property of a user", named("user_tier"), []],
    ["another text", named("plan"), []],
    ["a wallet of a subject", named("wallet", { top: "subject: [platform.wallet]\n" }), []],
    ["a wallet that nothing reads", { platform: facts("wallet") }, []],
    ["a wallet of a tool that never asks", named("wallet", { rules: read("platform.wallet") }), []],
    [
      "a wallet that keys a counter",
      named("wallet", {
        counters: "{ spent: { of: t, per: platform.wallet, sum: input.usd, within: 1h } }",
        rules: `${asks}, { rule: b, on: t, when: counters.spent > 5, verdict: BLOCK, reason: x }`,
      }),
      [],
    ],
    [
      "a numeric account that keys a counter",
      {
        platform: facts("account_no", "integer"),
        counters: "{ spent: { of: t, per: platform.account_no, sum: input.usd, within: 1h } }",
        rules: `${asks}, { rule: b, on: t, when: counters.spent > 5, verdict: BLOCK, reason: x }`,
      },
      ["open-subject: account_no"],
    ],
    ["a wallet that every rule pins", named("wallet", { tool: "{ pins: [platform.wallet] }" }), []],
    [
      "a wallet that one rule of two pins",
      named("wallet", {
        rules: `${withApproval(asks, "{ pins: [platform.wallet] }")}, ${two}, ${read("platform.wallet")}`,
      }),
      ["open-subject: wallet"],
    ],
    [
      "a user that a BLOCK ties to the input",
      named("user", {
        rules: `${asks}, { rule: own, on: t, when: "input.user != platform.user", verdict: BLOCK, reason: x }`,
      }),
      [],
    ],
    [
      "a user that a BLOCK ties to the input only sometimes",
      named("user", {
        rules: `${asks}, { rule: own, on: t, when: "input.usd > 3 && input.user != platform.user", verdict: BLOCK, reason: x }`,
      }),
      ["open-subject: user"],
    ],
    ["a text in a reason that a person reads", { platform: facts("plan"), rules: shows }, ["open-subject: plan"]],
    [
      "such a text with listed values",
      { platform: facts("plan").replace("type: string", "enum: [a, b]"), rules: shows },
      [],
    ],
    [
      "a text in the reason of a BLOCK",
      {
        platform: facts("plan"),
        rules: `${asks}, ${shows.replace("rule: large", "rule: b").replace("ESCALATE", "BLOCK")}`,
      },
      [],
    ],
    ["a text that must equal the input", { platform: facts("plan"), rules: differs }, ["open-subject: plan"]],
    ["a text that equals the input", { platform: facts("plan"), rules: differs.replace("!=", "==") }, []],
  ]);

  test("a fact that only `subject` or a pin names is not an unused fact", () => {
    const codes = (parts: Parts): readonly string[] => {
      const compiled = recompile(textOf(parts));
      return compiled.ok ? analyze(compiled.value).map(({ code }) => code) : ["does not compile"];
    };
    const platform = facts("wallet");
    assert.deepEqual(codes({ platform }), ["unused-fact"]);
    assert.deepEqual(codes({ platform, top: "subject: [platform.wallet]\n" }), []);
    assert.deepEqual(codes({ platform, rules: withApproval(asks, "{ pins: [platform.wallet] }") }), []);
  });
});

suite("quorum-with-self", () => {
  const self = "approvals: { self: true }\n";
  cases([
    ["two people and `self: true`", { mandate: self, tool: "{ of: 2 }" }, ["quorum-with-self: 2"]],
    ["one person and `self: true`", { mandate: self }, []],
    [
      "two people and `self: true` of the rule",
      { rules: withApproval(asks, "{ self: true, of: 2 }") },
      ["quorum-with-self: 2"],
    ],
    ["two people without `self: true`", { tool: "{ of: 2 }" }, []],
    [
      "two people of the mandate and `self: true`",
      { mandate: `${self}approval: { of: 2 }\n` },
      ["quorum-with-self: large"],
    ],
  ]);
});

suite("no-approver", () => {
  const key = (name: string, person: string | null, more: Partial<KnownKey> = {}): KnownKey => ({
    name,
    person,
    groups: ["finance"],
    scopes: ["approve"],
    allowsTool: () => true,
    ...more,
  });
  const anna = key("anna", "anna");
  const ben = key("ben", "ben");
  const agent = key("agent", "anna", { scopes: ["check"], groups: [] });
  const needs = { tool: "{ by: [finance] }" };
  const both = { tool: "{ by: [finance], of: 2 }" };
  const self = "approvals: { self: true }\n";
  const table: readonly (readonly [
    what: string,
    parts: Parts,
    keys: readonly KnownKey[],
    expected: readonly string[],
  ])[] = [
    ["no keys", needs, [], ["no-approver: finance"]],
    ["a key of the group", needs, [anna], []],
    ["a key of another group", needs, [key("anna", "anna", { groups: ["legal"] })], ["no-approver: finance"]],
    ["a key of any group for a rule that names none", {}, [key("anna", "anna", { groups: [] })], []],
    ["a key of a program", needs, [key("bot", null)], ["no-approver: finance"]],
    [
      "a key that also checks",
      needs,
      [key("anna", "anna", { scopes: ["approve", "check"] })],
      ["no-approver: finance"],
    ],
    ["two keys of one person", both, [anna, key("anna-phone", "anna")], ["no-approver: 2"]],
    ["keys of two people", both, [anna, ben], []],
    ["an approver who also owns the agent's key", needs, [anna, agent], ["no-approver: large"]],
    ["an agent's key that may not ask about the tool", needs, [anna, { ...agent, allowsTool: () => false }], []],
    ["one more approver than the agent's owner", needs, [anna, ben, agent], []],
    ["an agent's owner who may approve", { ...needs, mandate: self }, [anna, agent], []],
  ];
  for (const [what, parts, keys, expected] of table)
    test(`analyze reports ${expected.join() || "nothing"} with ${what}`, () =>
      assert.deepEqual(found(parts, keys), expected));

  const listed = {
    name: "anna",
    tenant: null,
    state: "active",
    scopes: ["approve"],
    tools: null,
    person: "anna",
    groups: ["finance"],
  };
  const fileOf = (t: TestContext, text: string): string => {
    const folder = mkdtempSync(join(tmpdir(), "svc-gate-keys-"));
    t.after(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "keys.json"), text);
    return join(folder, "keys.json");
  };
  const read = async (t: TestContext, keys: readonly object[]): Promise<readonly string[]> =>
    (await readKeys(fileOf(t, JSON.stringify({ keys })))).map(({ name }) => name);

  test("a file of keys gives the valid keys of its only tenant, or of the root", async (t) => {
    const revoked = { ...listed, name: "old", state: "revoked" };
    const ofAcme = { ...listed, name: "acme-anna", tenant: "acme" };
    assert.deepEqual(await read(t, [listed, revoked]), ["anna"]);
    assert.deepEqual(await read(t, [ofAcme]), ["acme-anna"]);
    assert.deepEqual(await read(t, [ofAcme, listed]), ["anna"]);
    await assert.rejects(read(t, [ofAcme, { ...listed, tenant: "blue" }]), /keys of several tenants/);
  });

  test("a file that is not a list of keys is refused", async (t) => {
    for (const text of ["", "[]", "{}", '{"keys": [1]}', '{"keys": [{"name": "anna"}]}'])
      await assert.rejects(readKeys(fileOf(t, text)), /is not a list of keys/);
    await assert.rejects(readKeys("/nowhere/keys.json"), /cannot be read/);
  });

  test("the command reads the keys and fails if nobody can approve a call", async (t) => {
    const contract = fileOf(
      t,
      (textOf(needs).split("--- # c.yaml\n")[1] ?? "").replace(/^platform.*\n|^requires.*\n/gm, ""),
    );
    const exitCode = async (groups: readonly string[]): Promise<number> => {
      const keys = fileOf(t, JSON.stringify({ keys: [{ ...listed, groups }] }));
      return (await analyzeCommand(contract, { json: false, deny: false, keys })).exitCode;
    };
    assert.deepEqual([await exitCode(["finance"]), await exitCode(["legal"])], [0, 1]);
  });
});
