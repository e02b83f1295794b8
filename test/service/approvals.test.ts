/**
 * Goal: an approval lets exactly the call through that a person was shown, once, and nothing else changes an answer. The
 * numbers are those of the complaints (C) and rules (R) of the design. Method: each rule is a scenario against a gate
 * over HTTP. Positive control: the same scenario fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import {
  approved,
  large,
  naming,
  payments,
  runScenarios,
  slowBatches,
  type Desk,
  type Scenario,
} from "../support/approvals.ts";
import { ask, type Answer } from "../support/gate.ts";

const scenarios: readonly Scenario[] = [
  {
    rule: "C6: an approval is used by one row, also when many ask at the same time",
    run: async (desk) => {
      for (let round = 0; round < 6; round += 1) {
        const call = { ...large, platform_state: { wallet: `w${round}` } };
        const id = await approved(desk, call);
        // The first calls start a batch, so that several of the others share the next one.
        const others = Array.from({ length: 4 }, (_, n) => ({ ...call, tool_input: { amount: n, to: "x" } }));
        const calls = [...others, ...Array.from({ length: 20 }, () => naming(id, call))];
        const answers = await Promise.all(calls.map((each) => desk.asks(each)));
        assert.equal(answers.slice(4).filter(({ verdict }) => verdict === "ALLOW").length, 1);
        assert.equal((await desk.asks(naming(id, call))).verdict, "BLOCK");
        const { json } = await desk.as("anna", `/approvals/${id}`);
        assert.equal(json.status, "used");
      }
    },
    defect: [
      { within: "BatchApprovals.#close", find: "this.#approvals.set(approval.row, { ...approval, status });", put: "" },
      slowBatches,
    ],
  },
  {
    rule: "C1: a call that differs in anything but the order of its members is not let through",
    run: async (desk) => {
      const id = await approved(desk);
      const others: readonly object[] = [
        { tool_input: { amount: 1200, to: "annb" } },
        { tool_input: { amount: 1201, to: "anna" } },
        { tool_input: { amount: 1200, to: "anna", extra: null } },
        { session_id: "s2" },
        { platform_state: { wallet: "v" } },
      ];
      for (const other of others) {
        const { verdict, receipt } = await desk.asks(naming(id, { ...large, ...other }));
        assert.notEqual(verdict, "ALLOW", JSON.stringify(other));
        assert.equal((await desk.outcomeOf(receipt.seq)).asked.mismatch, true, JSON.stringify(other));
      }
      const spelled = JSON.stringify(naming(id)).replace("1200", "1200.0");
      const { json } = await ask(desk, "/check", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: spelled,
      });
      assert.notEqual(json.verdict, "ALLOW");
      assert.equal((await desk.outcomeOf(json.receipt.seq)).asked.mismatch, true);
      const turned = {
        approval: { id },
        session_id: "s1",
        platform_state: { wallet: "w" },
        tool_input: { to: "anna", amount: 1200 },
        tool_name: "pay.send",
      };
      assert.equal((await desk.asks(turned)).verdict, "ALLOW");
    },
    defect: { within: "misfitsOf", find: "asking.binding === ask.binding(asking.sessions)", put: "true" },
  },
  {
    rule: "C1: another key cannot use it",
    run: async (desk) => {
      const id = await approved(desk);
      const { json } = await desk.operates("/admin/keys", { name: "other", scopes: ["check"] });
      const { verdict, receipt } = await desk.asks(naming(id), json.key);
      assert.notEqual(verdict, "ALLOW");
      assert.equal((await desk.outcomeOf(receipt.seq)).asked.mismatch, true);
      assert.equal((await desk.asks(naming(id))).verdict, "ALLOW");
    },
    defect: [
      {
        within: "bindingText",
        find: "[key, log, session, tool]",
        put: '["", log, session, tool]',
      },
      { within: "misfitsOf", find: "key === ask.key", put: "true" },
    ],
  },
  {
    rule: "R1: other rules than those that the person saw ask for a person again",
    run: async (desk) => {
      const id = await approved(desk);
      const { verdict, approval } = await desk.asks(
        naming(id, { ...large, platform_state: { wallet: "w", price: 11 } }),
      );
      assert.equal(verdict, "ESCALATE");
      assert.notEqual(approval.id, id);
      const { json } = await desk.as("anna", `/approvals/${id}`);
      assert.deepEqual([json.status, json.successor], ["superseded", Number(approval.id.split("_")[1])]);
      await desk.decides("anna", approval.id, "approve");
      const fewer = await desk.asks(naming(approval.id));
      assert.equal(fewer.verdict, "ESCALATE", "the person saw two rules");
    },
    defect: { within: "isSameCause", find: "names.length === Object.keys(shown.causes).length", put: "true" },
  },
  {
    rule: "R2: a number that the rule reads moves by at most the drift",
    run: async (desk) => {
      const dear = (price: number): object => ({
        ...large,
        tool_input: { amount: 5, to: "x" },
        platform_state: { wallet: "w", price },
      });
      const parked = await desk.asks(dear(12));
      assert.equal((await desk.decides("anna", parked.approval.id, "approve")).status, 200);
      const moved = await desk.asks(naming(parked.approval.id, dear(13.5)));
      assert.equal(moved.verdict, "ESCALATE");
      assert.equal((await desk.decides("anna", moved.approval.id, "approve")).status, 200);
      assert.equal((await desk.asks(naming(moved.approval.id, dear(12.75)))).verdict, "ALLOW");
    },
    defect: { within: "isNoRisk", find: "return counters && facts;", put: "return counters;" },
  },
  {
    rule: "R2: a counter that the rule reads may not stand higher, but for the call's own askings",
    run: async (desk) => {
      const often = (amount: number): object => ({ ...large, tool_input: { amount, to: "often" } });
      await desk.asks(often(1));
      const id = await approved(desk, often(2));
      for (let n = 0; n < 3; n += 1) assert.equal((await desk.asks(often(2))).approval.next, "check");
      assert.equal((await desk.asks(naming(id, often(2)))).verdict, "ALLOW");
      const next = await approved(desk, often(3));
      await desk.asks({ ...large, tool_input: { amount: 4, to: "x" } });
      const late = await desk.asks(naming(next, often(3)));
      assert.equal(late.verdict, "ESCALATE");
      assert.notEqual(late.approval.id, next);
    },
    defect: { within: "isNoRisk", find: "return counters && facts;", put: "return facts;" },
  },
  {
    rule: "D6: what waits is held, and a call never meets its own hold",
    run: async (desk) => {
      const ids = new Set<string>();
      for (let n = 0; n < 5; n += 1) {
        const { verdict, approval } = await desk.asks(large);
        assert.equal(verdict, "ESCALATE");
        ids.add(approval.id);
      }
      assert.equal(ids.size, 1);
      assert.equal((await desk.asks({ ...large, tool_input: { amount: 600, to: "x" } })).verdict, "ALLOW");
      const second = { ...large, tool_input: { amount: 900, to: "x" } };
      assert.equal((await desk.asks(second)).verdict, "BLOCK", "1200 is held of 2500");
      const [id = ""] = ids;
      assert.equal((await desk.decides("anna", id, "deny")).status, 200);
      assert.equal((await desk.asks(second)).verdict, "ALLOW", "a denied call holds nothing");
    },
    defect: { within: "ApprovalTables.keep", find: "for (const row of released) this.#release.run(row);", put: "" },
  },
  {
    rule: "C16: a denial holds, with the person's words, and opens nothing",
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      assert.equal((await desk.decides("anna", approval.id, "deny", { comment: "ask the controller" })).status, 200);
      const rows: string[] = [];
      for (let n = 0; n < 10; n += 1) {
        const again = await desk.asks({ ...large, session_id: `s${n}` });
        assert.deepEqual([again.verdict, again.approval.next], ["BLOCK", "none"]);
        rows.push(again.reason);
      }
      assert.deepEqual(new Set(rows), new Set(["Svc: anna denied this call: ask the controller"]));
      const { json } = await desk.as("anna", "/approvals?state=pending");
      assert.equal(json.approvals.length, 0);
    },
    defect: {
      within: "judgeCall",
      find: 'if (denial !== undefined) return { how: "denied", misfits, ...denial };',
      put: "",
    },
  },
  {
    rule: "R7: after three denials under one rule within an hour, further calls are blocked without a card",
    run: async (desk) => {
      for (let n = 0; n < 3; n += 1) {
        const { approval } = await desk.asks({
          ...large,
          platform_state: { wallet: `w${n}` },
          tool_input: { amount: 1200 + n, to: "x" },
        });
        assert.equal((await desk.decides("bob", approval.id, "deny")).status, 200);
      }
      const fourth = await desk.asks({
        ...large,
        platform_state: { wallet: "w9" },
        tool_input: { amount: 1300, to: "y" },
      });
      assert.equal(fourth.verdict, "BLOCK");
      assert.match(fourth.reason, /^Svc: people denied 3 calls under this rule within an hour/);
    },
    defect: { within: "denialsMax", value: "99" },
  },
  {
    rule: "C17, R7: the same call again shares the card; in another session it has a card of its own",
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      const again = await desk.asks(large);
      assert.deepEqual([again.approval.id, again.approval.new, again.approval.next], [approval.id, false, "wait"]);
      const other = await desk.asks({ ...large, session_id: "s2" });
      assert.deepEqual([other.approval.new, other.approval.next], [true, "wait"]);
      assert.notEqual(other.approval.id, approval.id);
      await desk.decides("anna", approval.id, "approve");
      assert.equal((await desk.asks({ ...large, session_id: "s2" })).approval.next, "wait");
      assert.equal((await desk.asks(large)).approval.next, "check");
      const { json } = await desk.as("anna", `/approvals/${approval.id}`);
      assert.equal(json.asked, 3);
    },
    defect: { within: "bindingText", find: "[key, log, session, tool]", put: "[key, log, null, tool]" },
  },
  {
    rule: "C7: of two answers the first holds, and the second gets the state that stands",
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      const [yes, no] = await Promise.all([
        desk.decides("anna", approval.id, "deny"),
        desk.decides("bob", approval.id, "deny"),
      ]);
      assert.deepEqual(
        [yes.status, no.status].toSorted((a, b) => a - b),
        [200, 409],
      );
      assert.equal([yes, no].find(({ status }) => status === 409)?.json.code, "approval-closed");
      const again = await desk.decides("bob", approval.id, "approve");
      assert.deepEqual([again.status, again.json.code], [409, "approval-closed"]);
    },
    defect: {
      within: "ApprovalDesk.#judge",
      find: 'if (status !== "pending" && status !== "approved") return bad(refuse("approval-closed", $text));',
      put: "",
    },
  },
  {
    rule: "C8: one person is one voice, and a quorum of two needs two",
    run: async (desk) => {
      const call = { tool_name: "pay.legal", tool_input: { a: 1 }, session_id: "s1" };
      const { approval } = await desk.asks(call);
      assert.equal(approval.needs, 2);
      const votes = await Promise.all(Array.from({ length: 10 }, () => desk.decides("cleo", approval.id, "approve")));
      assert.ok(votes.every(({ status, json }) => status === 200 && json.status === "pending" && json.has === 1));
      assert.equal(votes.filter(({ json }) => json.receipt !== null).length, 1);
      assert.equal((await desk.asks(naming(approval.id, call))).verdict, "ESCALATE");
    },
    defect: [
      { within: "ApprovalDesk.#isAgain", first: "return false;" },
      { within: "withVote", find: "votes.filter($other)", put: "votes" },
      { within: "quorumOf", find: "own.some($each)", put: "false" },
    ],
  },
  {
    rule: "R12: two keys that one maker made within a day are one voice",
    run: async (desk) => {
      const { approval } = await desk.asks({ tool_name: "pay.legal", tool_input: { a: 1 } });
      await desk.decides("cleo", approval.id, "approve");
      const { json } = await desk.decides("bob", approval.id, "approve");
      assert.deepEqual([json.status, json.has], ["pending", 1]);
    },
    defect: { within: "makersOf", first: "return [];" },
  },
  {
    rule: "C9: who decides is said by the key alone",
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      for (const member of ["approver", "resolved_by", "actor", "person"]) {
        const { status } = await desk.decides("anna", approval.id, "approve", { [member]: "bob" });
        assert.equal(status, 400);
      }
      const { json } = await desk.as("cleo", `/approvals/${approval.id}`);
      const outsider = await desk.as("cleo", `/approvals/${approval.id}/approve`, { hash: json.hash });
      assert.deepEqual([outsider.status, outsider.json.code], [403, "not-an-approver"]);
    },
    defect: { within: "isOneOf", find: "by === null || groups.some($each)", put: "true" },
  },
  {
    rule: "C10: nobody decides a call of their own",
    run: async (desk) => {
      const { json } = await desk.operates("/admin/keys", { name: "anna-agent", scopes: ["check"], person: "anna" });
      const { approval } = await desk.asks(large, json.key);
      const own = await desk.decides("anna", approval.id, "approve");
      assert.deepEqual([own.status, own.json.code], [403, "self-approval"]);
      assert.equal((await desk.decides("bob", approval.id, "approve")).status, 200);
    },
    defect: {
      within: "voterFor",
      find: "shared !== undefined && isYes",
      put: "false",
    },
  },
  {
    rule: "decided point 6: where the mandate lets people decide their own calls, each such row says so, and no other",
    options: { mandate: "mandate: m\ncontracts: [contracts/pay.yaml]\napprovals: { self: true }\n" },
    run: async (desk) => {
      const { json } = await desk.operates("/admin/keys", { name: "anna-agent", scopes: ["check"], person: "anna" });
      const inputOf = async ({ status, json: decided, text }: Answer): Promise<any> => {
        assert.equal(status, 200, text);
        return (await ask(desk, `/receipts/${decided.receipt.seq}`)).json.tool_input;
      };
      for (const decision of ["approve", "deny"] as const) {
        const parked = (to: string): Promise<any> =>
          desk.asks({ ...large, tool_input: { amount: 1200, to }, platform_state: { wallet: to } }, json.key);
        const [own, other] = [await parked(`${decision}-own`), await parked(`${decision}-other`)];
        assert.equal((await inputOf(await desk.decides("anna", own.approval.id, decision))).self, true);
        assert.equal("self" in (await inputOf(await desk.decides("bob", other.approval.id, decision))), false);
      }
    },
    defect: { within: "ApprovalDesk.#judge", find: "isOwn ? { ...act, self: true } : act", put: "act" },
  },
  {
    rule: "C3: a decision without the hash of the row that asked is refused",
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      const wrong = await desk.as("anna", `/approvals/${approval.id}/approve`, { hash: "0".repeat(64) });
      assert.deepEqual([wrong.status, wrong.json.code], [409, "approval-changed"]);
      assert.equal((await desk.as("anna", `/approvals/${approval.id}/approve`, {})).status, 400);
    },
    defect: {
      within: "ApprovalDesk.#judge",
      find: 'if (wanted.hash !== approval.hash) return bad(refuse("approval-changed", $text));',
      put: "",
    },
  },
  {
    rule: "C15: a contract that became stricter meanwhile decides",
    run: async (desk) => {
      const id = await approved(desk);
      const { writeFileSync } = await import("node:fs");
      writeFileSync(`${desk.folder}/contracts/pay.yaml`, payments.replace("input.amount > 1000", "input.amount > 900"));
      assert.equal((await desk.operates("/admin/reload", {})).status, 200);
      const again = await desk.asks(naming(id));
      assert.equal(again.verdict, "ESCALATE");
      assert.notEqual(again.approval.id, id);
    },
    defect: { within: "isSameCause", find: "names.every($each)", put: "true" },
  },
  {
    rule: "D3: a BLOCK of the contract is never lifted",
    run: async (desk) => {
      const id = await approved(desk);
      await desk.asks({ ...large, tool_input: { amount: 801, to: "x" }, platform_state: { wallet: "other" } });
      const moved = await desk.asks({ ...large, session_id: "s5", tool_input: { amount: 800, to: "x" } });
      assert.equal(moved.verdict, "ALLOW");
      const again = await desk.asks({ ...large, session_id: "s5", tool_input: { amount: 600, to: "x" } });
      assert.equal(again.verdict, "BLOCK");
      const spent = await desk.asks(naming(id));
      assert.equal(spent.verdict, "ALLOW", "what it holds was counted before");
    },
    defect: {
      within: "ApprovableCall.values",
      find: "if (value === undefined || reservations.length === 0) return value;",
      put: "return value;",
    },
  },
  {
    rule: "R5: a closed approval that is named blocks where the contract says ESCALATE",
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      const cancel = await ask(desk, `/approvals/${approval.id}/cancel`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"session_id":"s1"}',
      });
      assert.deepEqual([cancel.status, cancel.json.status], [200, "cancelled"]);
      const again = await desk.asks(naming(approval.id));
      assert.deepEqual([again.verdict, again.approval.next, again.approval.status], ["BLOCK", "none", "cancelled"]);
      assert.equal((await desk.asks(large)).approval.new, true);
    },
    defect: {
      within: "judgeCall",
      find: 'if (status !== "pending" && status !== "approved") return { how: "closed", misfits, approval: named, status };',
      put: "",
    },
  },
  {
    rule: "R8: past a cap the answer stays ESCALATE, nothing is opened and nothing is held",
    run: async (desk) => {
      const call = (n: number): object => ({
        ...large,
        tool_input: { amount: 1001, to: `p${n}` },
        platform_state: { wallet: `w${n}` },
      });
      for (let n = 0; n < 2; n += 1) assert.equal((await desk.asks(call(n))).approval.status, "pending");
      const past = await desk.asks(call(2));
      assert.deepEqual(
        [past.verdict, past.approval.status, past.approval.next, past.approval.id],
        ["ESCALATE", "capped", "retry", null],
      );
      assert.match(past.reason, /2 calls already wait for a person/);
      assert.equal(
        (await desk.asks({ ...large, tool_input: { amount: 1000, to: "x" }, platform_state: { wallet: "w2" } }))
          .verdict,
        "ALLOW",
      );
    },
    defect: { within: "waitingIfFull", find: "if (open.session >= sessionMax) return open.session;", put: "" },
    options: { mandate: "mandate: test\ncontracts: [contracts/pay.yaml]\napprovals: { open: { session: 2 } }\n" },
  },
  {
    rule: "R10: a text that nothing reads may differ",
    run: async (desk) => {
      const id = await approved(desk, { ...large, tool_input: { amount: 1200, to: "anna", note: "for the rent" } });
      const again = await desk.asks(naming(id, { ...large, tool_input: { amount: 1200, to: "anna", note: "rent" } }));
      assert.equal(again.verdict, "ALLOW");
    },
    defect: { within: "inputText", module: "wire/input-text", find: "unbound.includes(below)", put: "false" },
  },
  {
    rule: "C22, C23: a waiter hears a decision, and the end of its time changes nothing",
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      const short = await waits(desk, approval.id, 1);
      assert.deepEqual([short.status, short.json.status, short.headers.get("retry-after")], [200, "pending", "1"]);
      const waiting = waits(desk, approval.id, 30);
      await waits(desk, approval.id, 1);
      await desk.decides("anna", approval.id, "deny");
      assert.equal((await waiting).json.status, "denied");
    },
    defect: { within: "ApprovalDesk.announceChanges", find: "this.waits.wake($approvals);", put: "" },
  },
  {
    rule: "R18: an erasure of a parked call ends its approval, what it holds, and the wait for it",
    run: async (desk) => {
      const [first, second] = [
        await desk.asks(large),
        await desk.asks({ ...large, tool_input: { amount: 1100, to: "x" } }),
      ];
      const third = { ...large, session_id: "s2", tool_input: { amount: 1300, to: "y" } };
      assert.equal((await desk.asks(third)).verdict, "BLOCK", "both are held");
      const { id } = first.approval;
      const waiting = waits(desk, id, 20);
      await waits(desk, id, 1);
      const body = { session_id: "s1", parts: ["input"], reason: "a person asked for it" };
      assert.equal((await desk.operates("/admin/erase", body)).status, 200);
      assert.equal((await waiting).json.status, "cancelled");
      for (const { approval } of [first, second]) {
        assert.equal((await desk.as("anna", `/approvals/${approval.id}`)).status, 404);
        const vote = { hash: "0".repeat(64) };
        assert.equal((await desk.as("anna", `/approvals/${approval.id}/approve`, vote)).status, 404);
      }
      assert.equal((await desk.asks(third)).verdict, "ESCALATE", "nothing is held");
      assert.equal((await ask(desk, "/ledger/verify")).json.ok, true);
    },
    defect: { within: "ApprovalTables.erase", first: "return;" },
  },
  {
    rule: "an approval whose time is over ends before the next call, and each answer names its own row",
    run: async (desk) => {
      const [, second] = [await desk.asks(large), await desk.asks({ ...large, tool_input: { amount: 1100, to: "x" } })];
      const waiting = ask(desk, `/approvals/${second.approval.id}?wait=20`);
      await new Promise((resolve) => setTimeout(resolve, 1200));
      assert.equal((await waiting).json.status, "expired");
      const third = { ...large, session_id: "s2", tool_input: { amount: 1300, to: "y" } };
      const answer = await desk.asks(third);
      assert.equal(answer.verdict, "ESCALATE", "nothing is held");
      const { json } = await ask(desk, `/receipts/${answer.receipt.seq}`);
      assert.deepEqual([json.tool_input, json.hash], [third.tool_input, answer.receipt.hash]);
    },
    options: { contract: payments.replace("use_within: 5m", "use_within: 5m, decide_within: 1s") },
    defect: { within: "decideBatch", find: "transaction.head.seq - first", put: "0" },
  },
  {
    rule: "C11: no GET changes anything",
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      const before = await desk.rows();
      for (const path of ["", `/${approval.id}`, `/${approval.id}/approve`, `/${approval.id}/deny`, "/decide"]) {
        for (const method of ["GET", "HEAD"])
          await ask(desk, `/approvals${path}`, { method, headers: { authorization: `Bearer ${desk.keys["anna"]}` } });
      }
      assert.equal(await desk.rows(), before);
    },
    defect: {
      within: "show",
      module: "http/approvals",
      first: `
        if (call.key?.scopes.has("approve")) {
          const hash = (await call.gate.approvals.find(idOf(call)))?.hash ?? "";
          await call.gate.approvals.decide(call.key.name, [{ id: idOf(call), hash, decision: "approve", comment: "" }]);
        }`,
    },
  },
];

/** When a wait of a second ends, the requests that were sent before it wait too. */
function waits(desk: Desk, id: string, seconds: number): Promise<Answer> {
  return ask(desk, `/approvals/${id}?wait=${seconds}`);
}

runScenarios("a person decides", scenarios);
