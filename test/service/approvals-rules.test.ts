/**
 * Goal: rules and complaints of the design of approvals that no other test cites by number. Method: each is a scenario
 * against a gate over HTTP, or a table of characters. Positive control: the same scenario fails on a gate with a planted
 * defect.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { visible } from "../../packages/core/src/wire/mod.ts";
import { visible as visibleForAgent } from "../../packages/agent/src/mcp/visible.ts";
import {
  approved,
  large,
  naming,
  payments,
  runScenarios,
  small,
  type Desk,
  type Scenario,
} from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { ask } from "../support/gate.ts";

async function askedOf(desk: Desk, call: object): Promise<any> {
  const { receipt } = await desk.asks(call);
  return (await desk.outcomeOf(receipt.seq)).asked;
}

const scenarios: readonly Scenario[] = [
  {
    rule: "R3: a fact that keys a counter is part of what the person approved",
    run: async (desk) => {
      const id = await approved(desk);
      const other = naming(id, { ...large, platform_state: { wallet: "other" } });
      assert.equal((await desk.asks(other)).verdict, "ESCALATE");
      assert.equal((await desk.asks(naming(id))).verdict, "ALLOW");
    },
    defect: { within: "factsText", find: "Object.keys(facts)", put: "Object.keys({})" },
  },
  {
    rule: "R4: a softened BLOCK needs the people of all requirements that the contract states for the tool",
    options: { mode: "assist" },
    run: async (desk) => {
      const { verdict, approval } = await desk.asks({ ...large, tool_input: { amount: 5, to: "nobody" } });
      assert.equal(verdict, "ESCALATE");
      const first = await desk.decides("cleo", approval.id, "approve");
      assert.equal(first.json.status, "pending", "cleo is not in finance, which the rule for large payments asks for");
      assert.equal((await desk.decides("anna", approval.id, "approve")).json.status, "approved");
    },
    defect: { within: "requirementFor", find: "softened ? [...own, ...all] : own", put: "own" },
  },
  {
    rule: "R6: the row says how the call was asked, and whether it named the approval of another call",
    run: async (desk) => {
      assert.deepEqual(await askedOf(desk, large), { how: "opened" });
      const id = await approved(desk);
      assert.deepEqual(await askedOf(desk, naming(id, small)), { mismatch: true });
      assert.equal((await askedOf(desk, naming(id))).how, "used");
      assert.equal((await askedOf(desk, naming(id))).how, "closed");
    },
    defect: {
      within: "outcomeOf",
      module: "approvals/batch-approvals",
      find: "judgement.misfits.length > 0",
      put: "false",
    },
  },
  {
    rule: "R11: only a key of a registered person approves, and no key may both check and approve",
    run: async (desk) => {
      const make = async (more: object): Promise<number> =>
        (await desk.operates("/admin/keys", { name: `key-${Object.keys(more).length}`, ...more })).status;
      assert.equal(await make({ scopes: ["approve", "receipts"] }), 400);
      assert.equal(await make({ scopes: ["check", "approve"], person: "anna" }), 400);
      assert.notEqual(await make({ scopes: ["approve", "receipts"], person: "nobody", groups: [] }), 201);
      const { approval, receipt } = await desk.asks(large);
      const voted = await desk.operates(`/approvals/${approval.id}/approve`, { hash: receipt.hash });
      assert.equal(voted.status, 403, "the operator never votes");
    },
    defect: { within: "requireApart", find: 'wanted.includes("approve") && person === undefined', put: "false" },
  },
  {
    rule: "R19: the groups of a voter are judged again when the approval is used",
    run: async (desk) => {
      const id = await approved(desk);
      const { status, text } = await desk.operates("/admin/keys/anna-laptop/update", { groups: ["legal"] });
      assert.equal(status, 200, text);
      const waiting = await desk.asks(naming(id));
      assert.deepEqual([waiting.verdict, waiting.approval.has], ["ESCALATE", 0]);
    },
    defect: { within: "judgeCall", find: "quorum?.isMet === true", put: "quorum !== undefined" },
  },
  {
    rule: "C13: an approval that nobody decided expires, and its call can open another",
    options: { contract: payments.replace("use_within: 5m", "use_within: 5m, decide_within: 2s") },
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      const rows = await desk.rows();
      const waited = await desk.as("anna", `/approvals/${approval.id}?wait=1`);
      assert.deepEqual([waited.json.status, await desk.rows()], ["pending", rows], "the end of a wait changes nothing");
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, approval.decide_by - Date.now()) + 50));
      const again = await desk.asks(large);
      assert.deepEqual([again.verdict, again.approval.new], ["ESCALATE", true]);
      assert.equal((await desk.as("anna", `/approvals/${approval.id}`)).json.status, "expired");
      const { json } = await ask(desk, "/receipts?kind=all");
      const acts = json.receipts.map(({ act }: any) => act);
      assert.deepEqual([acts.includes("approval.expire"), acts.includes("approval.deny")], [true, false]);
    },
    defect: {
      within: "applyAct",
      find: '{ ...approval, ...closed, status: "expired" }',
      put: '{ ...approval, ...closed, status: "denied" }',
    },
  },
];

runScenarios("approvals, rule by rule", scenarios);

suite("C4: hidden characters on a card", () => {
  const isHidden = /^(?:[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|\p{Default_Ignorable_Code_Point})$/u;
  const missed = (show: (text: string) => string): readonly string[] => {
    const found: string[] = [];
    for (let code = 0; code <= 0x10ffff; code += 1) {
      const character = String.fromCodePoint(code);
      if (isHidden.test(character) && show(character).includes(character)) found.push(code.toString(16));
    }
    return found;
  };
  test("every code point that a reader does not see is an escape", () => {
    for (const show of [visible, visibleForAgent]) assert.deepEqual(missed(show), []);
  });
  test("marks that would paint over other lines are escapes, and words keep theirs", () => {
    for (const mark of ["\u0301", "\u0323", "\u0489", "\u20dd"])
      for (const show of [visible, visibleForAgent]) {
        assert.doesNotMatch(show(`a${mark.repeat(300)}b`), /\p{M}{5}/u);
        assert.equal(show(`a${mark.repeat(4)}b`), `a${mark.repeat(4)}b`);
        assert.doesNotMatch(show("\u1000\u1039".repeat(40)), /(?:\u1039\u1000){3}/u);
        assert.equal(show("\u179f\u17d2\u178f\u17d2\u179a"), "\u179f\u17d2\u178f\u17d2\u179a");
      }
  });
  control("positive control: escapes of control characters alone are noticed", () => {
    assert.ok(missed((text) => text.replace(/\p{Cc}/u, "")).includes("200b"));
  });
});
