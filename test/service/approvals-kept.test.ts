/**
 * Goal: approvals live as long as their rows: over a restart, a restore and an erasure. Method: a gate over HTTP, and the
 * commands on its folder. Positive controls: planted defects.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { reportCommand } from "../../packages/records/src/report/command.ts";
import { assertLedgerValid, approved, large, losesRows, naming, startDesk, type Desk } from "../support/approvals.ts";
import { command } from "../support/command.ts";
import { control } from "../support/controls/control.ts";
import { ask, type Answer } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";

type Call = typeof large & Readonly<Record<string, unknown>>;

test("C12: approvals survive a restart, and a decided call is used after it", async (t) => {
  const desk = await startDesk(t);
  const id = await approved(desk);
  const { folder } = desk;
  await desk.stop();
  const again = await startDesk(t, { folder, persons: {} });
  assert.equal((await again.asks(naming(id))).verdict, "ALLOW");
  assert.equal((await again.asks(naming(id))).verdict, "BLOCK");
});

test("observe mode opens nothing, and assist mode opens approvals for a BLOCK that it softened", async (t) => {
  const seen = await startDesk(t, { mode: "observe" });
  const answer = await seen.asks(large);
  assert.deepEqual([answer.verdict, answer.approval], ["ALLOW", undefined]);
  const assisted = await startDesk(t, { mode: "assist" });
  const odd: Call = { ...large, tool_input: { amount: 5, to: "nobody" } };
  const parked = await assisted.asks(odd);
  assert.equal(parked.verdict, "ESCALATE");
  const vote = await assisted.decides("cleo", parked.approval.id, "approve");
  assert.equal(vote.json.status, "pending", "an approval of the tool may need finance");
  assert.equal((await assisted.decides("anna", parked.approval.id, "approve")).status, 200);
  assert.equal((await assisted.asks(naming(parked.approval.id, odd))).verdict, "ALLOW");
});

test("C19: several decisions are taken together or not at all", async (t) => {
  const desk = await startDesk(t);
  const calls = [0, 1].map((n) => ({
    ...large,
    tool_input: { amount: 1001 + n, to: "x" },
    platform_state: { wallet: `w${n}` },
  }));
  const parked = await Promise.all(calls.map((call) => desk.asks(call)));
  const decisions = await Promise.all(
    parked.map(async ({ approval: { id } }) => {
      const { json } = await desk.as("anna", `/approvals/${id}`);
      return { id, hash: json.hash, decision: "approve" };
    }),
  );
  const stale = await desk.as("anna", "/approvals/decide", {
    decisions: [decisions[0], { ...decisions[1], hash: "0".repeat(64) }],
  });
  assert.deepEqual([stale.status, stale.json.code], [409, "approval-changed"]);
  const { json: before } = await desk.as("anna", "/approvals?state=pending");
  assert.equal(before.approvals.length, 2);
  const both = await desk.as("anna", "/approvals/decide", { decisions });
  assert.deepEqual(
    [both.status, both.json.decisions.map(({ status }: { status: string }) => status)],
    [200, ["approved", "approved"]],
  );
});

test("the whole call is shown, with the characters of its numbers", async (t) => {
  const desk = await startDesk(t);
  const body =
    '{"tool_name":"pay.send","tool_input":{"amount":1000000000000000.10,"to":"x"},"platform_state":{"wallet":"w"}}';
  const parked = await ask(desk, "/check", { method: "POST", headers: { "content-type": "application/json" }, body });
  assert.equal(parked.json.verdict, "BLOCK", "it is over the budget");
  const { approval } = await desk.asks(large);
  const shown = await desk.as("anna", `/approvals/${approval.id}`);
  assert.deepEqual(shown.json.tool_input, large.tool_input);
  assert.deepEqual(shown.json.platform_state, large.platform_state);
  assert.equal(shown.json.reason, "Svc: 1200 is a large payment");
});

test("a ledger with approvals verifies, and is decided again to the same answers", async (t) => {
  const desk = await startDesk(t);
  const id = await approved(desk);
  await desk.asks(large);
  await desk.asks(naming(id));
  const other = await desk.asks({ ...large, platform_state: { wallet: "w2" } });
  await desk.decides("anna", other.approval.id, "deny");
  await desk.asks({ ...large, platform_state: { wallet: "w3" }, tool_input: { amount: 1500, to: "z" } });
  await assertLedgerValid(desk);
});

test("R17: a restore cancels what is open, because lost rows may have decided otherwise", async (t) => {
  const desk = await startDesk(t);
  const id = await approved(desk);
  const { approval } = await desk.asks({ ...large, tool_input: { amount: 1100, to: "x" } });
  await losesRows(t, desk, async (again) => {
    await ask(again, `/approvals/${approval.id}/cancel`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ session_id: "s1" }),
    });
    assert.equal((await again.asks(naming(id))).verdict, "ALLOW");
  });
  const data = `${desk.folder}/data`;
  const lifted = await command(["stop", "--lift", "--data-dir", data]);
  assert.equal(lifted.code, 0, lifted.stderr);
  const later = await startDesk(t, { folder: desk.folder, persons: {} });
  for (const open of [id, approval.id]) {
    const { json } = await ask(later, `/approvals/${open}`);
    assert.equal(json.status, "cancelled", JSON.stringify(json));
  }
  const { text } = await reportCommand(data, { from: "1", examples: "0", json: true });
  const [{ opened, cancelled }] = JSON.parse(text).approvals;
  assert.deepEqual(
    { opened, cancelled },
    { opened: 2, cancelled: 2 },
    "the report counts what the restore has cancelled",
  );
  assert.notEqual((await later.asks(naming(id))).verdict, "ALLOW", "it was used in a row that is lost");
  assert.equal((await ask(later, "/ledger/verify")).json.ok, true);
});

/** A gate that erases evidence every two seconds, as if two days had passed. */
const hasty: readonly Mutation[] = [
  { within: "everyMs", module: "erasure/retention", value: "2000" },
  { within: "Retention.constructor", find: "options.now ?? Date.now", put: "() => Date.now() + 2 * dayMs" },
];

/** Waits for a decision about a parked call until its evidence is erased by its age. Returns the answer. */
async function waitsForRetention(desk: Desk): Promise<Answer> {
  for (let attempt = 0; ; attempt += 1) {
    const { approval } = await desk.asks({ ...large, session_id: `s${attempt}` });
    const answer = await ask(desk, `/approvals/${approval.id}?wait=10`);
    if (answer.status !== 404) return answer; // The evidence was not erased before the wait started.
  }
}

const retained = { env: { SVC_RETENTION_DAYS: "1" } };

test("R18: an erasure by age ends the wait for the decision of a parked call", async (t) => {
  const { status, json } = await waitsForRetention(await startDesk(t, { ...retained, defects: hasty }));
  assert.deepEqual([status, json.status], [200, "cancelled"]);
});

control("positive control: an erasure by age that tells nobody is noticed", async (t) => {
  const silent: Mutation = { within: "Gate.constructor", find: "await this.approvals.waits.look();", put: "" };
  const { json } = await waitsForRetention(await startDesk(t, { ...retained, defects: [...hasty, silent] }));
  assert.notEqual(json.status, "cancelled");
});
