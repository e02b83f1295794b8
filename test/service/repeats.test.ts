/**
 * Goal: an exact repeat of a check gets the recorded answer, without a row, a count or a second use; nothing else gets
 * it. Method: each rule is a scenario against a gate over HTTP, and the gate's own clock passes ten minutes in one test.
 * Positive control: the same scenario fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { limits } from "../../packages/core/src/wire/mod.ts";
import {
  approved,
  large,
  naming,
  payments,
  runScenarios,
  small,
  startDesk,
  type Desk,
  type Scenario,
} from "../support/approvals.ts";
import { startClockedGate } from "../support/clocked-gate.ts";
import { ask, check, type Answer } from "../support/gate.ts";
import { assertRefused, assertRepeats, drawn } from "../support/repeats.ts";

/** Sends the same body several times at once, and returns the answers. */
function together(desk: Pick<Desk, "address">, call: object, times: number): Promise<readonly Answer[]> {
  return Promise.all(Array.from({ length: times }, () => check(desk, call)));
}

const scenarios: readonly Scenario[] = [
  {
    rule: "[issue 16] a repeat gets the recorded answer, and adds no row and no count",
    run: async (desk) => {
      const calls = [
        small,
        large,
        { ...large, tool_input: { amount: 9999, to: "x" } },
        { tool_name: "x", tool_input: {} },
      ];
      for (const each of calls) {
        const call = { ...each, call_id: drawn() };
        const first = await check(desk, call);
        const rows = await desk.rows();
        assertRepeats(first, await check(desk, call));
        assertRepeats(first, await check(desk, call));
        assert.equal(await desk.rows(), rows);
      }
      const [once, twice] = [await desk.asks({ ...small, call_id: drawn() }), await desk.asks(small)];
      assert.notEqual(once.receipt.seq, twice.receipt.seq, "without a call_id each check has a row");
    },
    defect: { within: "repetitionsOf", find: "at < answer.at + limits.repeatWithinMs", put: "false" },
  },
  {
    rule: "[issue 16] repeats that arrive together share one row",
    run: async (desk) => {
      for (let round = 0; round < 4; round += 1) {
        const rows = await desk.rows();
        const another = desk.asks(small); // it starts a batch, so that the repeats share the next one
        const answers = await together(desk, { ...small, call_id: drawn() }, 12);
        await another;
        assert.equal(new Set(answers.map(({ json }) => json.receipt.seq)).size, 1);
        assert.equal(answers.filter(({ json }) => json.repeated === undefined).length, 1);
        assert.equal(await desk.rows(), rows + 2);
      }
    },
    defect: { within: "repetitionsOf", find: "firsts.set(check.id, index);", put: "" },
  },
  {
    rule: "C18: a call_id with another body is refused and changes nothing",
    run: async (desk) => {
      const call = { ...large, call_id: drawn() };
      const first = await check(desk, call);
      const rows = await desk.rows();
      const others = [
        { tool_input: { amount: 1201, to: "anna" } },
        { session_id: "s2" },
        { platform_state: { wallet: "v" } },
      ];
      for (const other of others) await assertRefused(desk, { ...call, ...other }, /another body/);
      const batch = await Promise.all(
        [1, 2, 3].map((amount) => check(desk, { ...small, tool_input: { amount, to: "x" }, call_id: "0".repeat(32) })),
      );
      assert.deepEqual(
        batch.map(({ status }) => status).toSorted((a, b) => a - b),
        [200, 409, 409],
      );
      assert.equal(await desk.rows(), rows + 1);
      assertRepeats(first, await check(desk, call));
    },
    defect: { within: "repetitionsOf", find: "answer.bodyDigest === check.bodyDigest", put: "true" },
  },
  {
    rule: "[issue 16] another key may use the same call_id",
    run: async (desk) => {
      const { json } = await desk.operates("/admin/keys", { name: "other", scopes: ["check"] });
      const call = { ...small, call_id: drawn() };
      const [first, other] = [await desk.asks(call), await desk.asks(call, json.key)];
      assert.equal(other.repeated, undefined);
      assert.notEqual(other.receipt.seq, first.receipt.seq);
    },
    defect: { within: "repeatId", find: "[key, callId]", put: "[callId]" },
  },
  {
    rule: "C21: a lost answer to the check that used an approval is repeated, and the approval is used once",
    run: async (desk) => {
      const id = await approved(desk);
      const call = { ...naming(id), call_id: drawn() };
      const answers = await together(desk, call, 6);
      assert.deepEqual(new Set(answers.map(({ json }) => json.verdict)), new Set(["ALLOW"]));
      const first = answers.find(({ json }) => json.repeated === undefined) ?? assert.fail("none was decided");
      assert.match(first.json.reason, /^Svc: anna approved this call, which a rule parked: 1200 is a large payment$/);
      assertRepeats(first, await check(desk, call));
      assert.equal((await desk.asks(naming(id))).verdict, "BLOCK", "another check cannot use it");
    },
    defect: {
      within: "recordAnswer",
      find: "check.approval === undefined ? null : JSON.stringify(check.approval)",
      put: "null",
    },
  },
  {
    rule: "[issue 16] a recorded ALLOW does not outlive an erasure, and a recorded BLOCK whose reason was erased is not repeated",
    run: async (desk) => {
      const [allowed, blocked] = [
        { ...small, call_id: drawn() },
        { ...large, tool_input: { amount: 9999, to: "x" }, session_id: "s2", call_id: drawn() },
      ];
      await desk.asks(allowed);
      const first = await check(desk, blocked);
      await desk.asks({ ...small, session_id: "s3" });
      assert.equal(
        (await desk.operates("/admin/erase", { session_id: "s3", parts: ["input"], reason: "asked" })).status,
        200,
      );
      await assertRefused(desk, allowed, /act erase followed/);
      assertRepeats(first, await check(desk, blocked));
      assert.equal(
        (await desk.operates("/admin/erase", { session_id: "s2", parts: ["input", "reason"], reason: "asked" })).status,
        200,
      );
      await assertRefused(desk, blocked, /erased/);
    },
    defect: { within: "answerAgain", find: 'leaf.answered === "ALLOW"', put: "false" },
  },
  {
    rule: "[issue 16] a recorded ALLOW does not outlive a reload, a change of mode, a cancel or a revoked key",
    run: async (desk) => {
      const allowed = async (): Promise<object> => {
        const call = { ...small, session_id: drawn(), call_id: drawn() };
        await desk.asks(call);
        return call;
      };
      const byMode = await allowed();
      assert.equal((await desk.operates("/admin/reload", { mode: "assist" })).status, 200);
      await assertRefused(desk, byMode, /act reload followed/);
      const byCancel = await allowed();
      const { approval } = await desk.asks({ ...large, session_id: "s9" });
      assert.equal((await desk.as("anna", `/approvals/${approval.id}/cancel`, {})).status, 200);
      await assertRefused(desk, byCancel, /act approval.cancel followed/);
      const byKey = await allowed();
      await desk.operates("/admin/keys", { name: "spare", scopes: ["check"] });
      assert.equal((await check(desk, byKey)).json.repeated, true, "a new key ends nothing");
      assert.equal((await desk.operates("/admin/keys/spare/revoke", {})).status, 200);
      await assertRefused(desk, byKey, /act keys.revoke followed/);
    },
    defect: { within: "endOfAllow", find: "!harmlessActs.has(act)", put: "false" },
  },
  {
    rule: "[issue 16] a recorded ALLOW ends with the time to use its approval",
    run: async (desk) => {
      const id = await approved(desk);
      const call = { ...naming(id), call_id: drawn() };
      const first = await check(desk, call);
      assert.equal(first.json.verdict, "ALLOW");
      assertRepeats(first, await check(desk, call));
      await new Promise((resolve) => setTimeout(resolve, 3200));
      await assertRefused(desk, call, /time to use its approval/);
    },
    options: { contract: payments.replace("use_within: 5m", "use_within: 3s") },
    defect: { within: "endOfAllow", find: "at >= (used.useBy ?? 0)", put: "false" },
  },
];

runScenarios("exact repeats of a check", scenarios);

test("a call_id that is not 32 lowercase hex digits is a refusal that says so", async (t) => {
  const desk = await startDesk(t, { persons: {} });
  for (const call_id of ["", "0".repeat(31), "0".repeat(33), "F".repeat(32), "g".repeat(32), 7, null]) {
    const { status, json } = await check(desk, { ...small, call_id });
    assert.deepEqual([status, json.code], [400, "invalid-request"], String(call_id));
    assert.match(json.detail, /"call_id" must be 32 lowercase hex digits/);
  }
});

test("[issue 16] a recorded answer survives a restart, and verify reads it", async (t) => {
  const desk = await startDesk(t, { persons: {} });
  const call = { ...small, call_id: drawn() };
  const first = await check(desk, call);
  await desk.stop();
  const again = await startDesk(t, { folder: desk.folder, persons: {} });
  assertRepeats(first, await check(again, call));
  assert.equal((await ask(again, "/ledger/verify")).json.ok, true);
});

test("[issue 16] after ten minutes a call_id is new again, and the store forgets the old answer", async (t) => {
  const gate = await startClockedGate(t, payments);
  const call = (amount: number, call_id: string): object => ({ ...large, tool_input: { amount, to: "x" }, call_id });
  const id = drawn();
  const first = await gate.asks(call(1, id));
  gate.pass(limits.repeatWithinMs - 1);
  assert.equal((await gate.asks(call(1, id))).receipt.seq, first.receipt.seq);
  assert.equal(await gate.asks(call(2, id)), "call-id-used");
  gate.pass(1);
  const later = await gate.asks(call(2, id));
  assert.deepEqual([later.verdict, later.repeated], ["ALLOW", undefined]);
  gate.pass(limits.repeatWithinMs + 1);
  await gate.asks(call(3, drawn()));
  await gate.close();
  assert.equal(countRepeats(gate.folder), 1);
});

function countRepeats(folder: string): number {
  const database = new DatabaseSync(join(folder, "ledger.db"), { readOnly: true });
  const found = database.prepare("SELECT count(*) AS count FROM repeats").get();
  database.close();
  return Number(found?.["count"]);
}
