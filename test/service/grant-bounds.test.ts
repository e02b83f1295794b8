/**
 * Goal: a grant binds what the person saw: members that the call lacked stay absent, and what the rule reads does not become worse
 * (findings P3 and P12). Method: scenarios against a gate over HTTP; verification accepts each ledger. Positive control:
 * the same scenario fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { assertLedgerHolds, large, payments, runScenarios, type Desk } from "../support/approvals.ts";
import type { Answer } from "../support/gate.ts";

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

runScenarios("members that the call of a grant lacks", [
  {
    rule: "R9: a person must type the amount, and only for numbers that a counter adds up",
    options: { contract: open },
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      for (const amounts of [{}, { "input.amount": 5, "input.tip": 5 }, { "input.amount": -1 }])
        assert.equal((await grants(desk, approval.id, { amounts })).status, 400, JSON.stringify(amounts));
    },
    defect: { within: "amountsFor", find: "asked[member] === undefined", put: "false" },
  },
  {
    rule: "[P3] a member that the call lacked stays absent, at every depth",
    options: { contract: open },
    run: async (desk) => {
      const own = { opts: { fast: true, a: {} }, list: [{ x: 1 }], "a.b": 1 };
      const { approval } = await desk.asks(paying(1200, { tool_input: own }));
      const { status, json, text } = await grants(desk, approval.id, {});
      assert.equal(status, 201, text);
      assert.deepEqual(json.free, ['input."a.b"', "input.list", "input.note", "input.opts.fast"]);
      const covered = (input: object): Promise<string> =>
        verdictOf(desk, paying(1100, { tool_input: { ...own, ...input } }));
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
      await assertLedgerHolds(desk);
    },
    defect: { within: "hasNewMember", first: "return false;" },
  },
  {
    rule: "[P3] a person can free a member that the call lacks, and the grant lists it; other members stay bound",
    options: { contract: open },
    run: async (desk) => {
      const { approval } = await desk.asks(paying(1200, { tool_input: { opts: { fast: true } } }));
      for (const [free, says] of [
        [["input.to"], 'a grant cannot free "input.to": it is bound, or it holds a member that is'],
        [["input.amount"], 'a grant cannot free "input.amount": it is bound, or it holds a member that is'],
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
      const covered = (input: object): Promise<string> => verdictOf(desk, paying(1100, { tool_input: input }));
      assert.equal(await covered({ memo: { a: { b: 1 } }, opts: { more: [1] } }), "ALLOW");
      assert.equal(await covered({ memos: 1 }), "ESCALATE");
      await assertLedgerHolds(desk);
    },
    defect: { within: "hasNewMember", find: "!isAmong(path, free)", put: "true" },
  },
  {
    rule: "[P3] a person can pin a member that the call lacks, as an absent fact",
    options: { contract: open },
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      const { status, text } = await grants(desk, approval.id, { pins: ["input.iban", "platform.vip"] });
      assert.equal(status, 201, text);
      assert.equal(await verdictOf(desk, paying(1100)), "ALLOW");
      assert.equal(await verdictOf(desk, paying(1100, { tool_input: { iban: "DE00" } })), "ESCALATE");
      const vip = { platform_state: { wallet: "w", vip: true } };
      assert.equal(await verdictOf(desk, paying(1100, vip)), "ESCALATE");
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

runScenarios("what the rule of a grant reads", [
  {
    rule: "[P3] a person who mistypes a member is told so, where the schema closes the input",
    options: { contract: buying },
    run: async (desk) => {
      const { approval } = await desk.asks(buy());
      for (const [grant, says] of [
        [{ pins: ["input.colr"] }, 'a call of the tool cannot have "input.colr"; did you mean "input.color"?'],
        [{ free: ["input.account"] }, 'a call of the tool cannot have "input.account"'],
        [{ pins: ["input.memo.text"] }, undefined],
      ] as const) {
        const { status, json } = await grants(desk, approval.id, { amounts: {}, ...grant });
        assert.deepEqual([status, json.detail], says === undefined ? [201, undefined] : [422, says]);
      }
    },
    defect: { within: "mayHave", first: "return true;" },
  },
  {
    rule: "[P12] numbers move only to the safe side, and texts, truth values and absent members stay as they were",
    options: { contract: buying },
    run: async (desk) => {
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
        assert.equal(await verdictOf(desk, call), "ALLOW", JSON.stringify(call));
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
        assert.equal(await verdictOf(desk, call), "ESCALATE", JSON.stringify(call));
      await assertLedgerHolds(desk);
    },
    defect: { within: "isBounded", first: "return true;" },
  },
  {
    rule: "[P12] a grant from a call with a negative number binds every number that its rule reads",
    options: { contract: buying },
    run: async (desk) => {
      const { approval } = await desk.asks(buy({ pieces: -3 }, { price: -50 }));
      const { json: card } = await desk.as("anna", `/approvals/${approval.id}`);
      assert.equal((await desk.as("anna", "/grants", { approval: approval.id, hash: card.hash })).status, 201);
      assert.equal(await verdictOf(desk, buy({ pieces: -3 }, { price: -50 })), "ALLOW");
      for (const [pieces, price] of [
        [-4, -50],
        [-3, -51],
        [-3, -49],
        [-2.5, -50],
      ] as const)
        assert.equal(await verdictOf(desk, buy({ pieces }, { price })), "ESCALATE", `${pieces} ${price}`);
    },
    defect: { within: "isBounded", find: "isFirm || isNegative(value)", put: "false" },
  },
  {
    rule: "[P12] a text that the rule reads is bound, and the person need not pin it",
    options: { contract: buying },
    run: async (desk) => {
      const { approval } = await desk.asks(buy({ color: "gold", pieces: 1 }));
      const { json: card } = await desk.as("anna", `/approvals/${approval.id}`);
      assert.equal((await desk.as("anna", "/grants", { approval: approval.id, hash: card.hash })).status, 201);
      assert.equal(await verdictOf(desk, buy({ color: "gold", pieces: 1 })), "ALLOW");
      assert.equal(await verdictOf(desk, buy({ color: "red", pieces: 1 }, { vip: true })), "ESCALATE");
    },
    defect: { within: "ApprovableCall.#offer", find: 'bound("same")', put: "[]" },
  },
]);
