/**
 * Goal: a person who made or owns the key that asked does not let its call through, at any gate, and may always refuse it
 * (findings P4 and P14). Method: keys are made and changed at one gate, and people decide at another. The chains of makers
 * and their times are in makers.test.ts. Positive control: a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";
import { large, naming, payments, type Desk } from "../support/approvals.ts";
import { ask, check, type Answer } from "../support/gate.ts";
import { runShared } from "../support/shared-scenarios.ts";

async function made(desk: Desk, body: object, by?: string): Promise<string> {
  const headers = { authorization: `Bearer ${by}`, "content-type": "application/json" };
  const answer: Answer =
    by === undefined
      ? await desk.operates("/admin/keys", body)
      : await ask(desk, "/admin/keys", { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(answer.status, 201, answer.text);
  return answer.json.key as string;
}

/** Parks the large payment by a key, at a gate that may not have read the key yet. */
async function parked(desk: Desk, key: string): Promise<any> {
  const end = performance.now() + desk.patienceMs;
  for (;;) {
    const { status, json } = await check(desk, large, { authorization: `Bearer ${key}` });
    if (status === 200) return json.approval;
    if (performance.now() > end) return assert.fail("the gate never read the key");
    await wait(20);
  }
}

const detailOf = ({ status, json }: Answer): readonly unknown[] => [status, json.code, json.detail];

await runShared("another person", [
  {
    rule: "[P4] a key without a person asks as the voice of the person who made it within a day",
    run: async (one, other) => {
      const bens = await made(one, { name: "bobs-admin", scopes: ["admin"], person: "bob" });
      const agent = await made(one, { name: "agent", scopes: ["check"] }, bens);
      const { id } = await parked(other, agent);
      const own = await other.decides("bob", id, "approve");
      const says =
        "bob made or changed the key that asked for it within a day before, so another person must approve it";
      assert.deepEqual(detailOf(own), [403, "self-approval", says]);
      assert.equal((await other.decides("anna", id, "approve")).json.status, "approved", "control: another person");
      assert.equal((await check(other, naming(id), { authorization: `Bearer ${agent}` })).json.verdict, "ALLOW");
    },
    defect: { within: "KnownKeys.asker", find: "makersOf(past, at).filter($each)", put: "[]" },
  },
  {
    rule: "[P4] a call stays the call of the person whose key asked, also after the key has another person",
    run: async (one, other) => {
      const agent = await made(one, { name: "annas-agent", scopes: ["check"], person: "anna" });
      const { id } = await parked(other, agent);
      const says = "anna asked for this call, so another person must approve it";
      assert.deepEqual(detailOf(await other.decides("anna", id, "approve")), [403, "self-approval", says]);
      assert.equal((await one.operates("/admin/keys/annas-agent/update", { person: "bob" })).status, 200);
      assert.deepEqual(detailOf(await other.decides("anna", id, "approve")), [403, "self-approval", says]);
      assert.equal((await other.decides("bob", id, "approve")).json.status, "approved");
    },
    defect: {
      within: "KnownKeys.asker",
      find: "past.at(-1) ?? entry?.changes[0] ?? entry?.record ?? {}",
      put: "entry?.record ?? {}",
    },
  },
  {
    rule: "[P4] the vote of a key that a young administrator's key made is the voice of those who made that one",
    run: async (one, other) => {
      const first = await made(one, { name: "bobs-admin", scopes: ["admin", "approve"], person: "bob" });
      const second = await made(one, { name: "cleos-admin", scopes: ["admin", "approve"], person: "cleo" }, first);
      const vote = await made(one, { name: "cleos", scopes: ["approve"], person: "cleo", groups: ["finance"] }, second);
      const agent = await made(one, { name: "bobs-agent", scopes: ["check"], person: "bob" });
      const { id, hash } = await parked(other, agent);
      const headers = { authorization: `Bearer ${vote}`, "content-type": "application/json" };
      const shown = await ask(other, `/approvals/${id}`, { headers });
      const body = JSON.stringify({ hash: hash ?? shown.json.hash });
      const own = await ask(other, `/approvals/${id}/approve`, { method: "POST", headers, body });
      const says =
        "bob, as whose voice the new key of cleo counts, asked for this call, so another person must approve it";
      assert.deepEqual(detailOf(own), [403, "self-approval", says]);
    },
    defect: { within: "KnownKeys.#voicesOf", find: "makersOf(entry?.changes ?? [], at)", put: "[]" },
  },
  {
    rule: "[P14] a person may deny the call of an agent of their own, and end its grant, and may not approve",
    options: { contract: payments.replace("{ by: [finance] }", "{ by: [finance], grants: { at_most: 1h, uses: 3 } }") },
    run: async (one, other) => {
      const agent = await made(one, { name: "annas-agent", scopes: ["check"], person: "anna" });
      const { id } = await parked(other, agent);
      const { json: card } = await other.as("anna", `/approvals/${id}`);
      const grant = { approval: id, hash: card.hash, amounts: { "input.amount": 4000 } };
      assert.equal((await other.as("anna", "/grants", grant)).json.code, "self-approval");
      const granted = await other.as("bob", "/grants", grant);
      assert.equal(granted.status, 201, granted.text);
      const denied = await other.decides("anna", id, "deny");
      assert.deepEqual([denied.status, denied.json.status], [200, "denied"], denied.text);
      const { json: row } = await ask(one, `/receipts/${denied.json.receipt.seq}`);
      assert.equal(row.tool_input.self, true, "the row says that it was a call of their own");
      const revoked = await one.as("anna", `/grants/${granted.json.id}/revoke`, {});
      assert.equal(revoked.status, 200, revoked.text);
      assert.equal((await check(other, large, { authorization: `Bearer ${agent}` })).json.verdict, "BLOCK");
    },
    defect: { within: "voterFor", find: "shared !== undefined && isYes", put: "shared !== undefined" },
  },
  {
    rule: "[P4] a grant is not the voice of the person who had the asking key then, or has it now",
    options: { contract: payments.replace("{ by: [finance] }", "{ by: [finance], grants: { at_most: 1h, uses: 9 } }") },
    run: async (one, other) => {
      const key = await made(one, { name: "agent", scopes: ["check"], person: "anna" });
      const { id } = await parked(other, key);
      const { json: card } = await other.as("anna", `/approvals/${id}`);
      const grant = { approval: id, hash: card.hash, amounts: { "input.amount": 90_000 } };
      const granted = await other.as("bob", "/grants", grant);
      assert.equal(granted.status, 201, granted.text);
      const grantId = granted.json.id as string;
      const asks = async (): Promise<string> =>
        (await check(other, large, { authorization: `Bearer ${key}` })).json.verdict;
      const toPerson = async (person: string): Promise<void> => {
        assert.equal((await one.operates("/admin/keys/agent/update", { person })).status, 200);
      };
      const hashOnce = async (status: string): Promise<string> => {
        const end = performance.now() + other.patienceMs;
        for (;;) {
          const { grants } = (await other.as("anna", "/grants")).json;
          if (grants[0]?.status === status) return grants[0].hash;
          if (performance.now() > end) return assert.fail(`the grant never was ${status}`);
          await wait(20);
        }
      };
      assert.equal(await asks(), "ALLOW", "control: bob's yes counts for anna's agent");
      await toPerson("bob");
      const shownHash = await hashOnce("pending");
      assert.equal(await asks(), "ESCALATE", "now it is bob's own agent");
      const own = await other.as("anna", `/grants/${grantId}/approve`, { hash: shownHash });
      const says = "anna asked for this call, so another person must approve it";
      assert.deepEqual(detailOf(own), [403, "self-approval", says], "anna's agent asked for the call of the grant");
    },
    defect: [
      { within: "decidedGrant", find: "grant.asked ?? grant.at", put: "again" },
      { within: "sharedVoice", find: "again === undefined ? [at] : [at, again]", put: "[at]" },
    ],
  },
  {
    rule: "[P14] a key that has the scope admin beside approve decides nothing, and the refusal says why",
    run: async (one, other) => {
      const both = await made(one, { name: "both", scopes: ["approve", "admin"], person: "anna", groups: ["finance"] });
      const { approval, receipt } = await one.asks(large);
      const headers = { authorization: `Bearer ${both}`, "content-type": "application/json" };
      const body = JSON.stringify({ hash: receipt.hash });
      let answer = await ask(other, `/approvals/${approval.id}/approve`, { method: "POST", headers, body });
      while (answer.status === 401)
        answer = await ask(other, `/approvals/${approval.id}/approve`, { method: "POST", headers, body });
      const who = "a key with a person and the scope `approve`, without `check` and `admin`";
      assert.deepEqual(detailOf(answer), [
        403,
        "not-an-approver",
        `the key "both" may not decide this call: it needs ${who}`,
      ]);
    },
    defect: { within: "KnownKeys.voter", find: '!scopes.includes("check") && !scopes.includes("admin")', put: "true" },
  },
]);
