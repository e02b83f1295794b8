/**
 * Goal: a call never waits for an answer to another one, and a new session never escapes a no (finding P2). Method: the same
 * call comes from another session, for another customer and in another spelling, at another gate. Positive control: a gate
 * with a planted defect.
 */
import assert from "node:assert/strict";
import { approved, large, naming, payments, type Desk } from "../support/approvals.ts";
import { ask, check, key } from "../support/gate.ts";
import { runShared } from "../support/shared-scenarios.ts";

const inSession = (session: string, call: object = large): object => ({ ...call, session_id: session });
const ofWallet = (wallet: string): object => ({ ...large, platform_state: { wallet } });

/** Sends a call with the number 1200 in another spelling. */
async function asksSpelled(desk: Desk, call: object, spelling: string): Promise<any> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = JSON.stringify(call).replace('"amount":1200', `"amount":${spelling}`);
  return (await ask(desk, "/check", { method: "POST", headers, body })).json;
}

/** Payments whose budget permits many questions about one call. */
const contract = payments.replace("> 2500", "> 250000");
const anySession = contract.replace("approval: { by: [finance] }", "approval: { by: [finance], sessions: any }");

await runShared("a question of its own", [
  {
    rule: "[P2] a call that could not use an open question has one of its own, which names the other one",
    options: { contract },
    run: async (one, other) => {
      const first = await one.asks(large);
      const repeated = await other.asks(large);
      assert.deepEqual([repeated.approval.id, repeated.approval.new], [first.approval.id, false], "control: a repeat");
      await one.decides("anna", first.approval.id, "approve");
      for (const [differs, asks] of [
        ["session", () => other.asks(inSession("s2"))],
        ["subject", () => other.asks(ofWallet("v"))],
        ["spelling", () => asksSpelled(other, large, "1200.0")],
      ] as const) {
        const { approval } = await asks();
        assert.deepEqual([approval.new, approval.status, approval.next], [true, "pending", "wait"], differs);
        const { same_call: others, call } = (await one.as("anna", `/approvals/${approval.id}`)).json;
        const yes = others.find(({ id }: { readonly id: string }) => id === first.approval.id);
        const expected = {
          id: first.approval.id,
          status: "approved",
          session_id: "s1",
          differs: [differs],
          approved: true,
        };
        assert.deepEqual(yes, expected);
        assert.equal(
          call,
          (await one.as("anna", `/approvals/${first.approval.id}`)).json.call,
          "one group in the inbox",
        );
      }
      assert.equal((await other.asks(naming(first.approval.id))).verdict, "ALLOW", "the first run still has its yes");
    },
    defect: { within: "judgeCall", find: "asking.binding === ask.binding(asking.sessions)", put: "true" },
  },
  {
    rule: "[P2] a call that names an approval which does not fit is told which part differs",
    options: { contract },
    run: async (one, other) => {
      const id = await approved(one);
      const unknown = id.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
      const second = (await one.operates("/admin/keys", { name: "second", scopes: ["check"] })).json.key;
      const end = performance.now() + other.patienceMs;
      const asksAs = async (token: string, call: object): Promise<any> => {
        for (;;) {
          const { status, json } = await check(other, call, { authorization: `Bearer ${token}` });
          if (status === 200) return json;
          assert.ok(performance.now() < end, "the other gate never read the key");
        }
      };
      for (const [mismatch, words, answer] of [
        [["session"], "another session", await other.asks(naming(id, inSession("s2")))],
        [["subject"], "another subject, such as a customer", await other.asks(naming(id, ofWallet("v")))],
        [
          ["session", "subject"],
          "another session and another subject, such as a customer",
          await other.asks(naming(id, inSession("s2", ofWallet("v")))),
        ],
        [["spelling"], "another spelling of a number", await asksSpelled(other, naming(id), "1200.0")],
        [
          ["input"],
          "another input",
          await other.asks(naming(id, { ...large, tool_input: { amount: 1201, to: "anna" } })),
        ],
        [["key"], "another key", await asksAs(second, naming(id))],
        [["key"], "another key", await asksAs(second, naming(id, inSession("s2")))],
        [["id"], undefined, await other.asks(naming(unknown))],
      ] as const) {
        const says =
          words === undefined
            ? "no approval has the id that the call names"
            : `the approval that the call names is for ${words}`;
        assert.equal(answer.verdict, "ESCALATE", answer.reason);
        assert.ok(answer.reason.endsWith(`; ${says}`), answer.reason);
        assert.deepEqual(answer.approval.mismatch, mismatch);
      }
      const fits = await other.asks(naming(id));
      assert.deepEqual([fits.verdict, fits.approval.mismatch], ["ALLOW", undefined]);
    },
    defect: { within: "differences", module: "approvals/judge", first: 'return ["session"];' },
  },
  {
    rule: "[P2] with `sessions: any` each session of the key may use an approval, and no other key or customer",
    options: { contract: anySession },
    run: async (one, other) => {
      const { approval } = await one.asks(large);
      const joined = await other.asks(inSession("s2"));
      assert.deepEqual([joined.approval.id, joined.approval.new], [approval.id, false]);
      assert.notEqual((await other.asks(ofWallet("v"))).approval.id, approval.id);
      await one.decides("anna", approval.id, "approve");
      assert.equal((await other.asks(inSession("s2"))).approval.next, "check");
      const stranger = await other.asks(naming(approval.id, inSession("s2", ofWallet("v"))));
      assert.deepEqual([stranger.verdict, stranger.approval.mismatch], ["ESCALATE", ["subject"]]);
      const used = await other.asks(naming(approval.id, inSession("s2")));
      assert.deepEqual([used.verdict, used.approval.status], ["ALLOW", "used"]);
      assert.equal((await one.asks(naming(approval.id))).verdict, "BLOCK", "once");
    },
    defect: { within: "ApprovableCall.binding", find: 'sessions === "any"', put: "false" },
  },
  {
    rule: "[P2] a new session never escapes a no: neither a denial nor three denials within an hour",
    options: { contract },
    run: async (one, other) => {
      const { approval } = await one.asks(large);
      await one.decides("anna", approval.id, "deny");
      for (const call of [inSession("s2"), ofWallet("v")]) {
        const { verdict, reason } = await other.asks(call);
        assert.deepEqual([verdict, /anna denied this call/.test(reason)], ["BLOCK", true], reason);
      }
      for (const session of ["s3", "s4"]) {
        const call = inSession(session, { ...large, tool_input: { amount: 1300, to: session } });
        await one.decides("anna", (await other.asks(call)).approval.id, "deny");
      }
      const next = await other.asks(inSession("s5", { ...large, tool_input: { amount: 1400, to: "dan" } }));
      assert.deepEqual([next.verdict, /people denied 3 calls/.test(next.reason)], ["BLOCK", true], next.reason);
    },
    defect: [{ within: "attachText", find: "[key, log, tool]", put: "[key, log, `${tool}${Math.random()}`]" }],
  },
  {
    rule: "[P2] a yes that the call cannot use any more does not keep it waiting, also if it does not name it",
    options: { contract },
    run: async (one, other) => {
      const priced = (price: number): object => ({ ...large, platform_state: { wallet: "w", price } });
      const id = await approved(one, priced(50));
      const moved = await other.asks(priced(90));
      assert.deepEqual([moved.approval.new, moved.approval.status], [true, "pending"], moved.reason);
      const { json } = await one.as("anna", `/approvals/${id}`);
      assert.deepEqual([json.status, json.successor], ["superseded", moved.receipt.seq]);
    },
    defect: { within: "judgeCall", find: "!isWithin(ask.asking, same.asking)", put: "false" },
  },
]);
