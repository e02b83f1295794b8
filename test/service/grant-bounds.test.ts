/**
 * Goal: a grant binds what the person saw: members that the call lacked stay absent, and what the rule reads does not become worse
 * (findings P3 and P12), whatever the names of members are. Method: a person makes grants at one gate, and calls meet them at
 * another. Positive control: a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { large, payments, type Desk } from "../support/approvals.ts";
import type { Answer } from "../support/gate.ts";
import { runShared } from "../support/shared-scenarios.ts";

const hourMs = 3_600_000;

/** Payments of which a person may grant twenty within an hour, to the same payee, with any member besides. */
const open = payments
  .replace(
    "approval: { by: [finance] }",
    "approval: { by: [finance], grants: { at_most: 1h, uses: 20, pin: [input.to] } }",
  )
  .replace("> 2500", "> 250000")
  .replace("additionalProperties: false", "additionalProperties: true")
  .replace("price: { type: number },", "price: { type: number }, vip: { type: boolean },");

const paying = (amount: number, over: object = {}): object => ({
  ...large,
  ...over,
  tool_input: { amount, to: "anna", ...(over as { readonly tool_input?: object }).tool_input },
});

async function grants(desk: Desk, id: string, grant: object): Promise<Answer> {
  const { json } = await desk.as("anna", `/approvals/${id}`);
  const amounts = { "input.amount": 40_000 };
  return desk.as("anna", "/grants", { approval: id, hash: json.hash, amounts, ...grant });
}

async function verdictOf(desk: Desk, call: object): Promise<string> {
  return (await desk.asks(call)).verdict;
}

await runShared("members that the call of a grant lacks", [
  {
    rule: "R9: a person must type the amount, and only for numbers that a counter adds up",
    options: { contract: open },
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      for (const amounts of [{}, { "input.amount": 5, "input.tip": 5 }, { "input.amount": -1 }])
        assert.equal((await grants(desk, approval.id, { amounts })).status, 400, JSON.stringify(amounts));
    },
    defect: { within: "amountsFor", find: "wanted[member] === undefined", put: "false" },
  },
  {
    rule: "[P3] a member that the call lacked stays absent, at every depth",
    options: { contract: open },
    run: async (desk, other) => {
      const own = { opts: { fast: true, a: {} }, list: [{ x: 1 }], "a.b": 1 };
      const { approval } = await desk.asks(paying(1200, { tool_input: own }));
      const { status, json, text } = await grants(desk, approval.id, {});
      assert.equal(status, 201, text);
      assert.deepEqual(json.free, ['input."a.b"', "input.list", "input.note", "input.opts.a", "input.opts.fast"]);
      const covered = (input: object): Promise<string> =>
        verdictOf(other, paying(1100, { tool_input: { ...own, ...input } }));
      assert.equal(await covered({ opts: { fast: false, a: {} }, list: [], "a.b": 2 }), "ALLOW", "free members");
      for (const more of [
        { iban: "DE00" },
        { iban: null },
        { iban: {} },
        { opts: { fast: true, a: {}, to: "eve" } },
        { opts: { fast: true, a: { to: "eve" } } },
        { opts: { fast: { to: "eve" }, a: {} } },
        { opts: "eve" },
        { "opts.fast": 1 },
        { a: { b: 1 } },
        { Opts: { fast: true } },
      ])
        assert.equal(await covered(more), "ESCALATE", JSON.stringify(more));
    },
    defect: { within: "hasNewMember", first: "return false;" },
  },
  {
    rule: "[P3] a person can free a member that the call lacks, and the grant lists it; other members stay bound",
    options: { contract: open },
    run: async (desk, other) => {
      const { approval } = await desk.asks(paying(1200, { tool_input: { opts: { fast: true } } }));
      for (const [free, says] of [
        [["input.to"], 'a grant cannot free "input.to": it is bound, or it contains a member that is'],
        [["input.amount"], 'a grant cannot free "input.amount": it is bound, or it contains a member that is'],
        [["input.opts"], 'the call has "input.opts", and a grant frees only members that the call lacks'],
      ] as const) {
        const { status, json } = await grants(desk, approval.id, { free });
        assert.deepEqual([status, json.detail], [422, says]);
      }
      for (const free of ["input.memo", ["memo"], ["platform.price"], [1]])
        assert.equal((await grants(desk, approval.id, { free })).status, 400, JSON.stringify(free));
      const { json } = await grants(desk, approval.id, { free: ["input.memo", "input.opts.more"] });
      const expected = ["input.memo", "input.note", "input.opts.fast", "input.opts.more"];
      assert.deepEqual(json.free, expected);
      const [shown] = (await desk.as("anna", "/grants")).json.grants;
      assert.deepEqual(shown.free, expected);
      const covered = (input: object): Promise<string> => verdictOf(other, paying(1100, { tool_input: input }));
      assert.equal(await covered({ memo: { a: { b: 1 } }, opts: { more: [1] } }), "ALLOW");
      assert.equal(await covered({ memos: 1 }), "ESCALATE");
    },
    defect: { within: "hasNewMember", find: "!isAmong(path, free)", put: "true" },
  },
  {
    rule: "[P3] a person can pin a member that the call lacks, as an absent fact",
    options: { contract: open },
    run: async (desk, other) => {
      const { approval } = await desk.asks(large);
      const { status, text } = await grants(desk, approval.id, { pins: ["input.iban", "platform.vip"] });
      assert.equal(status, 201, text);
      assert.equal(await verdictOf(other, paying(1100)), "ALLOW");
      assert.equal(await verdictOf(other, paying(1100, { tool_input: { iban: "DE00" } })), "ESCALATE");
      const vip = { platform_state: { wallet: "w", vip: true } };
      assert.equal(await verdictOf(other, paying(1100, vip)), "ESCALATE");
    },
    defect: { within: "pinDigest", find: "text ?? null", put: "text ?? Math.random()" },
  },
]);

/** A rule that reads numbers which no counter adds up, a text, a truth value and facts. */
const buying = `contract: pay
platform:
  type: object
  required: [price, vip]
  properties: { price: { type: number }, vip: { type: boolean }, trust: { type: number }, note: { type: string }, now: { type: number } }
tools:
  buy:
    input:
      type: object
      additionalProperties: false
      required: [pieces, color]
      properties: { pieces: { type: number }, color: { type: string }, rebate: { type: number }, memo: { type: string } }
    requires: platform.present
    otherwise: ALLOW
rules:
  - rule: dear
    on: buy
    when: >-
      (input.pieces * platform.price > 100 || platform.vip || input.color == "gold" || input.?rebate.orValue(0) > 50)
      && platform.?trust.orValue(0) < 10
    verdict: ESCALATE
    approval: { by: [finance], grants: { at_most: 1h, uses: 50 } }
    reason: "{input.pieces} pieces at {platform.price} ({platform.?note.orValue('')})"
`;

const buy = (input: object = {}, facts: object = {}): object => ({
  tool_name: "buy",
  tool_input: { pieces: 3, color: "red", ...input },
  session_id: "s1",
  platform_state: { price: 50, vip: false, trust: 5, note: "n", now: 1, ...facts },
});

await runShared("what the rule of a grant reads", [
  {
    rule: "[P3] a person who mistypes a member is told so, where the schema closes the input",
    options: { contract: buying },
    run: async (desk) => {
      const { approval } = await desk.asks(buy());
      for (const [grant, says] of [
        [
          { pins: ["input.colr"] },
          'neither the call nor a schema of its tool has "input.colr"; did you mean "input.color"?',
        ],
        [
          { pins: ["input.color.name"] },
          'neither the call nor a schema of its tool has "input.color.name"; did you mean "input.color"?',
        ],
        [
          { pins: ["platform.vipp"] },
          'neither the call nor a schema of its tool has "platform.vipp"; did you mean "platform.vip"?',
        ],
        [{ free: ["input.account"] }, 'a call of the tool cannot have "input.account"'],
        [{ free: ["input.memo.text"] }, 'a call of the tool cannot have "input.memo.text"'],
        [{ pins: ["input.memo", "platform.trust"] }, undefined],
      ] as const) {
        const { status, json } = await grants(desk, approval.id, { amounts: {}, ...grant });
        assert.deepEqual([status, json.detail], says === undefined ? [201, undefined] : [422, says]);
      }
    },
    defect: { within: "hopeIn", first: 'return "named";' },
  },
  {
    rule: "[P12] numbers move only to the safe side, and texts, truth values and absent members stay as they were",
    options: { contract: buying },
    run: async (desk, other) => {
      const { approval } = await desk.asks(buy());
      const { json: card } = await desk.as("anna", `/approvals/${approval.id}`);
      assert.deepEqual(card.grants_allowed, {
        at_most_ms: hourMs,
        uses: 50,
        pins: ["input.color", "platform.vip"],
        sums: [],
        most: ["input.pieces", "input.rebate", "platform.price"],
        least: ["platform.trust"],
        free: ["platform.note"],
      });
      const { status, json, text } = await desk.as("anna", "/grants", { approval: approval.id, hash: card.hash });
      assert.deepEqual([status, json.free], [201, ["platform.note"]], text);
      const [shown] = (await desk.as("anna", "/grants")).json.grants;
      assert.deepEqual(
        [shown.most, shown.least, shown.free],
        [card.grants_allowed.most, ["platform.trust"], json.free],
      );
      for (const call of [
        buy(),
        buy({ pieces: 2.5 }),
        buy({ pieces: 3.0 }),
        buy({}, { price: 49 }),
        buy({}, { trust: 6 }),
        buy({}, { note: "another", now: 2 }),
      ])
        assert.equal(await verdictOf(other, call), "ALLOW", JSON.stringify(call));
      for (const call of [
        buy({ pieces: 4 }),
        buy({ pieces: -3 }, { price: -50 }),
        buy({}, { price: 1e12 }),
        buy({}, { vip: true }),
        buy({ color: "gold" }),
        buy({}, { trust: 4 }),
        buy({}, { trust: -1 }),
        buy({}, { trust: undefined }),
        buy({ rebate: 10 }),
        buy({ memo: "of a stranger" }),
      ])
        assert.equal(await verdictOf(other, call), "ESCALATE", JSON.stringify(call));
    },
    defect: { within: "isBounded", first: "return true;" },
  },
  {
    rule: "[P12] a grant from a call with a negative number binds every number that its rule reads",
    options: { contract: buying },
    run: async (desk, other) => {
      const { approval } = await desk.asks(buy({ pieces: -3 }, { price: -50 }));
      const { json: card } = await desk.as("anna", `/approvals/${approval.id}`);
      assert.equal((await desk.as("anna", "/grants", { approval: approval.id, hash: card.hash })).status, 201);
      assert.equal(await verdictOf(other, buy({ pieces: -3 }, { price: -50 })), "ALLOW");
      for (const [pieces, price] of [
        [-4, -50],
        [-3, -51],
        [-3, -49],
        [-2.5, -50],
      ] as const)
        assert.equal(await verdictOf(other, buy({ pieces }, { price })), "ESCALATE", `${pieces} ${price}`);
    },
    defect: { within: "isBounded", find: "isFirm || isNegative(value)", put: "false" },
  },
  {
    rule: "[P12] a text that the rule reads is bound, and the person need not pin it",
    options: { contract: buying },
    run: async (desk, other) => {
      const { approval } = await desk.asks(buy({ color: "gold", pieces: 1 }));
      const { json: card } = await desk.as("anna", `/approvals/${approval.id}`);
      assert.equal((await desk.as("anna", "/grants", { approval: approval.id, hash: card.hash })).status, 201);
      assert.equal(await verdictOf(other, buy({ color: "gold", pieces: 1 })), "ALLOW");
      assert.equal(await verdictOf(other, buy({ color: "red", pieces: 1 }, { vip: true })), "ESCALATE");
    },
    defect: { within: "ApprovableCall.#offer", find: 'pick("same", "form")', put: "[]" },
  },
]);

/** Names with a dot or a hyphen, and an empty one; some of them look like the path of another member. */
const oddNames = `contract: pay
platform:
  type: object
  required: [side]
  properties:
    side: { type: number }
    "p.q": { type: string }
    p: { type: object, properties: { q: { type: string } } }
    vip-list: { type: string }
tools:
  trade:
    input:
      type: object
      additionalProperties: false
      required: [qty]
      properties:
        qty: { type: number }
        x-to: { type: string }
        "": { type: string }
        "a.b": { type: string }
        x-memo: { type: string }
        a: { type: object, properties: { b: { type: string } }, additionalProperties: false }
    requires: platform.present
    otherwise: ALLOW
    approval: { unbound: [input.x-memo] }
rules:
  - rule: big
    on: trade
    when: >-
      platform.side * input.qty < -100 || platform[?"p.q"].orValue("") == "hot" || platform[?"vip-list"].orValue("") == "hot"
      || input[?"a.b"].orValue("") == "hot" || (session.present && input.qty < 5) || platform.side > 1000
    verdict: ESCALATE
    approval: { by: [finance], grants: { at_most: 1h, uses: 50, pin: [input.x-to] } }
    reason: "a big trade"
`;

const trade = (input: object = {}, facts: object = {}, session = "s1"): object => ({
  tool_name: "trade",
  tool_input: { qty: 60, "x-to": "bob", "": "e", a: { b: "cold" }, ...input },
  ...(session !== "" && { session_id: session }),
  platform_state: { side: -2, p: { q: "cold" }, ...facts },
});

await runShared("names and signs in what a grant binds", [
  {
    rule: "[P3, P12] the spelling that the card shows of an odd name binds this member, and no other one",
    options: { contract: oddNames },
    run: async (desk, other) => {
      const { approval } = await desk.asks(trade());
      const { json: card } = await desk.as("anna", `/approvals/${approval.id}`);
      const { free, pins } = card.grants_allowed;
      assert.deepEqual(free, ['input.""', "input.a.b", 'input."x-memo"'].toSorted());
      assert.deepEqual(
        pins,
        [
          'input."a.b"',
          'input."x-to"',
          'platform."p.q"',
          'platform."vip-list"',
          "platform.side",
          "has(session)",
        ].toSorted(),
      );
      for (const pin of ['input.""', 'input["a"].b']) {
        const { status, json, text } = await grants(desk, approval.id, { amounts: {}, pins: [pin] });
        assert.equal(status, 201, text);
        assert.ok(!json.free.includes(pin) && json.free.length === 2, text);
      }
      await Promise.all(
        (await desk.as("anna", "/grants")).json.grants.map(({ id }: { readonly id: string }) =>
          desk.as("anna", `/grants/${id}/revoke`, {}),
        ),
      );
      const { status, text } = await grants(desk, approval.id, { amounts: {}, any_session: true });
      assert.equal(status, 201, text);
      for (const call of [
        trade(),
        trade({ "": "f", a: { b: "warm" } }),
        trade({ "x-memo": "another" }),
        trade({}, { p: { q: "hot" } }),
        trade({}, {}, "s2"),
      ])
        assert.equal(await verdictOf(other, call), "ALLOW", JSON.stringify(call));
      for (const call of [
        trade({ "x-to": "eve" }),
        trade({ "a.b": "hot" }),
        trade({}, { "p.q": "hot" }),
        trade({}, { "vip-list": "hot" }),
        trade({}, {}, ""),
      ])
        assert.equal(await verdictOf(other, call), "ESCALATE", JSON.stringify(call));
    },
    defect: { within: "memberBelow", find: String.raw`/^\w+$/.test(name) ? name : JSON.stringify(name)`, put: "name" },
  },
  {
    rule: "[P12] a factor that is negative and stays the same binds the other factor too",
    options: { contract: oddNames },
    run: async (desk, other) => {
      const { approval } = await desk.asks(trade());
      const { status, text } = await grants(desk, approval.id, { amounts: {} });
      assert.equal(status, 201, text);
      assert.equal(await verdictOf(other, trade()), "ALLOW");
      for (const qty of [61, 1e9]) assert.equal(await verdictOf(other, trade({ qty })), "ESCALATE", `${qty}`);
    },
    defect: { within: "isBounded", find: "Object.keys(pins)", put: "[]" },
  },
]);
