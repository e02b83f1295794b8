/**
 * Goal: after a person's yes, nothing that the asking rule reads and no part of the binding has changed unseen (findings
 * P9 and P12). Method: a person approves at one gate, facts or the contract change, and the call uses the approval at
 * another gate. Positive control: a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { approved, naming, type Desk } from "../support/approvals.ts";
import { runShared } from "../support/shared-scenarios.ts";

const contract = `contract: pay
platform:
  type: object
  additionalProperties: true
  properties:
    price: { type: number }
    vip: { type: boolean }
    region: { type: string }
    payees: { type: array, items: { type: string } }
    owner: { type: object, properties: { name: { type: string }, level: { type: number } } }
    balance: { type: string }
    customer: { type: string }
    limit: { type: [number, "null"] }
tools:
  buy:
    input:
      type: object
      additionalProperties: false
      required: [pieces]
      properties: { pieces: { type: number }, note: { type: string }, to: { type: string } }
    requires: platform.present
    approval: { unbound: [input.note] }
    otherwise: ALLOW
  sell: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }
rules:
  - rule: dear
    on: buy
    when: >-
      platform.?price.orValue(0) > 100 || platform.?vip.orValue(false) || platform.?region.orValue("") == "far"
      || "eve" in platform.?payees.orValue([]) || (has(platform.owner) && has(platform.owner.level) && platform.owner.level > 5)
    verdict: ESCALATE
    approval: { drift: 1 }
    reason: "the price is {platform.?price}, the balance {platform.?balance}, the limit {platform.?limit}"
`;

const facts = {
  price: 101,
  vip: false,
  region: "far",
  payees: ["anna", "eve"],
  owner: { name: "ben", level: 3 },
  balance: "ok",
  customer: "c1",
};
const buy = (over: object = {}, input: object = {}): object => ({
  tool_name: "buy",
  tool_input: { pieces: 1, ...input },
  session_id: "s1",
  platform_state: { ...facts, ...over },
});

/** Facts after the yes, each of which the person did not see. */
const changes: readonly object[] = [
  { vip: true },
  { vip: undefined },
  { region: "near" },
  { region: undefined },
  { payees: ["eve", "anna"] },
  { payees: ["anna", "eve", "joe"] },
  { owner: { name: "ben", level: 4.5 } },
  { owner: undefined },
  { price: 103 },
  { price: undefined },
  { balance: "empty" },
];

/** Facts after the yes that are as good as those that the person saw. */
const same: readonly object[] = [
  {},
  { price: 101.9 },
  { owner: { level: 3, name: "ben" } },
  { owner: { name: "cleo", level: 3.5 } },
  { customer: "c2", other: 7 },
];

async function reload(desk: Desk, text: string): Promise<void> {
  writeFileSync(join(desk.folder, "contracts", "pay.yaml"), text);
  const { status, text: said } = await desk.operates("/admin/reload", {});
  assert.equal(status, 200, said);
}

/** A contract after the yes whose approvals are bound to less, or whose facts count for more. */
const wider: Readonly<Record<string, string>> = {
  "unbound has more": contract.replace("unbound: [input.note]", "unbound: [input.note, input.to]"),
  "subject is new": contract.replace("tools:\n", "subject: [platform.customer]\ntools:\n"),
  "host_facts is new": contract.replace("tools:\n", "host_facts: [price]\ntools:\n"),
  "numbers is new": contract.replace("  buy:\n", "  buy:\n    numbers: double\n"),
  "free is new": contract.replace("{ drift: 1 }", "{ drift: 1, free: [platform.vip] }"),
};

/** Names with a dot or a hyphen; one of them looks like the path of another fact. */
const oddNames = `contract: pay
platform:
  type: object
  properties:
    "p.q": { type: string }
    p: { type: object, properties: { q: { type: string } } }
    "pin.x": { type: string }
    free-x: { type: string }
tools:
  buy:
    input:
      type: object
      required: [pieces]
      additionalProperties: false
      properties: { pieces: { type: number }, x-note: { type: string }, "x.note": { type: string } }
    approval: { unbound: [input.x-note] }
    otherwise: ALLOW
rules:
  - rule: dear
    on: buy
    when: >-
      !platform.present || platform[?"p.q"].orValue("") == "hot" || platform[?"free-x"].orValue("") == "hot" || input.pieces > 5
    verdict: ESCALATE
    approval: { pins: ['platform["pin.x"]'], free: [platform.free-x] }
    reason: "a dear thing"
`;
const odd = { "p.q": "hot", p: { q: "cold" }, "pin.x": "a", "free-x": "cold" };
const oddBuy = (over: object | null = {}, input: object = {}): object => ({
  tool_name: "buy",
  tool_input: { pieces: 6, ...input },
  session_id: "s1",
  ...(over !== null && { platform_state: { ...odd, ...over } }),
});

await runShared("after a yes", [
  {
    rule: "[P9, P12] odd names of facts and members, and whether there are facts at all, are bound like any other",
    options: { contract: oddNames },
    run: async (one, other) => {
      const { approval } = await one.asks(oddBuy());
      const { json } = await one.as("anna", `/approvals/${approval.id}`);
      assert.deepEqual(json.may_differ, ['input."x-note"', 'platform."free-x"']);
      const cases = [
        [{}, {}, {}, "ALLOW"],
        [{}, { p: { q: "hot" } }, {}, "ALLOW"],
        [{}, { "free-x": "hot" }, { "x-note": "another" }, "ALLOW"],
        [{}, { "p.q": "cold" }, {}, "ESCALATE"],
        [{}, { "pin.x": "b" }, {}, "ESCALATE"],
        [{}, {}, { "x.note": "another" }, "ESCALATE"],
        [null, null, {}, "ALLOW"],
        [null, { "p.q": undefined, "pin.x": undefined }, {}, "ESCALATE"],
      ] as const;
      for (const [index, [seen, now, input, verdict]] of cases.entries()) {
        const pieces = 7 + index;
        const id = await approved(one, oddBuy(seen, { pieces }));
        const answer = await other.asks(naming(id, oddBuy(now, { pieces, ...input })));
        assert.equal(answer.verdict, verdict, JSON.stringify(now));
      }
    },
    defect: { within: "findPresencePath", find: 'core.root === "platform.present"', put: "false" },
  },
  {
    rule: "[P12] a fact that may be null is the same null, or a person is asked again; the gate serves on",
    options: { contract },
    run: async (one, other) => {
      const cases = [
        [null, null, "ALLOW"],
        [5, 5.5, "ALLOW"],
        [null, 5, "ESCALATE"],
        [5, null, "ESCALATE"],
        [null, undefined, "ESCALATE"],
        [undefined, null, "ESCALATE"],
      ] as const;
      for (const [pieces, [seen, now, verdict]] of cases.entries()) {
        const id = await approved(one, buy({ limit: seen }, { pieces }));
        const answer = await other.asks(naming(id, buy({ limit: now }, { pieces })));
        assert.equal(answer.verdict, verdict, `${seen} ${now}`);
      }
    },
    defect: { within: "isNoRisk", find: 'before === "null" || text === "null"', put: "false" },
  },
  {
    rule: "[P12] a fact that the rule or its reason reads is what the person saw, or near it, or a person is asked again",
    options: { contract },
    run: async (one, other) => {
      for (const [pieces, change] of changes.entries()) {
        const id = await approved(one, buy({}, { pieces }));
        const { verdict, approval, reason } = await other.asks(naming(id, buy(change, { pieces })));
        const isHarmless = verdict === "ALLOW" && approval?.status === undefined;
        assert.ok(!isHarmless, reason);
        if (verdict === "ESCALATE") assert.notEqual(approval.id, id, JSON.stringify(change));
        else assert.fail(`${JSON.stringify(change)}: ${verdict} ${reason}`);
      }
    },
    defect: { within: "isNoRisk", find: "drift === null", put: "false" },
  },
  {
    rule: "[P12] a fact that no rule reads, and a number within the drift, may change after the yes",
    options: { contract },
    run: async (one, other) => {
      for (const change of same) {
        const id = await approved(one, buy());
        assert.equal((await other.asks(naming(id, buy(change)))).verdict, "ALLOW", JSON.stringify(change));
      }
    },
    defect: {
      within: "causeOf",
      module: "compile/causes",
      find: "facts.filter(({ path }) => !isFree(path))",
      put: 'facts.map(({ path }) => ({ path, as: "value" }))',
    },
  },
  {
    rule: "[P12] a fact that the contract lists as free may change, and the card says so",
    options: { contract: contract.replace("{ drift: 1 }", "{ drift: 1, free: [platform.vip, platform.owner] }") },
    run: async (one, other) => {
      const id = await approved(one, buy());
      const { json } = await one.as("anna", `/approvals/${id}`);
      assert.deepEqual(json.may_differ, ["input.note", "platform.owner", "platform.owner.level", "platform.vip"]);
      const used = await other.asks(naming(id, buy({ vip: true, owner: { name: "x", level: 99 } })));
      assert.equal(used.verdict, "ALLOW", used.reason);
      const next = await approved(one, buy());
      assert.equal((await other.asks(naming(next, buy({ vip: true, region: "near" })))).verdict, "ESCALATE");
    },
    defect: {
      within: "causeOf",
      module: "compile/causes",
      find: "facts.filter(({ path }) => !isFree(path))",
      put: "facts",
    },
  },
  {
    rule: "[P9] a reload that changes what an approval is bound to lets a person be asked again",
    options: { contract },
    run: async (one, other) => {
      for (const [what, text] of Object.entries(wider)) {
        await reload(one, contract);
        const id = await approved(one, buy());
        await reload(other, text);
        const { verdict, reason } = await other.asks(naming(id, buy({}, { to: undefined })));
        assert.equal(verdict, "ESCALATE", `${what}: ${reason}`);
      }
    },
    defect: {
      within: "causeOf",
      module: "compile/causes",
      find: "canonical({ ...own, binding, rule: id, schemas, terms: termsJson(terms) })",
      put: "canonical({ ...own, rule: id, schemas })",
    },
  },
  {
    rule: "[P9] a text that nobody saw does not use an approval after a reload that widens `unbound`",
    options: { contract },
    run: async (one, other) => {
      const id = await approved(one, buy());
      await reload(other, wider["unbound has more"] ?? "");
      assert.equal((await other.asks(naming(id, buy({}, { to: "a stranger" })))).verdict, "ESCALATE");
    },
    defect: {
      within: "causeOf",
      module: "compile/causes",
      find: "canonical({ ...own, binding, rule: id, schemas, terms: termsJson(terms) })",
      put: "canonical({ ...own, rule: id, schemas })",
    },
  },
  {
    rule: "[P9] a reload that changes another tool keeps the approval",
    options: { contract },
    run: async (one, other) => {
      const id = await approved(one, buy());
      await reload(other, contract.replace("  sell: {", "  sell: { approval: { unbound: [] }, numbers: double,"));
      assert.equal((await other.asks(naming(id, buy()))).verdict, "ALLOW");
    },
    defect: { within: "isSameCause", first: "return false;" },
  },
]);
