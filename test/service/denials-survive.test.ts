/**
 * Goal: a person's no applies as long as it says, also after its call is erased (finding P11). Method: calls are denied at one
 * gate in each scope, their rows are erased, and another gate is asked. Positive control: a gate with a planted defect; and
 * verification notices each change of what the table keeps of an erased denial.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test, type TestContext } from "node:test";
import { large, naming, payments, startDesk, type Desk } from "../support/approvals.ts";
import { command } from "../support/command.ts";
import { ask } from "../support/gate.ts";
import { runShared } from "../support/shared-scenarios.ts";

const dayMs = 86_400_000;
const contract = payments.replace("> 2500", "> 250000");
const paying = (amount: number, to = "anna", session = "s1"): object => ({
  ...large,
  session_id: session,
  tool_input: { amount, to },
});

async function denied(desk: Desk, call: object, more: object = {}): Promise<any> {
  const { approval, receipt } = await desk.asks(call);
  const { status, text } = await desk.decides("anna", approval.id, "deny", { until: Date.now() + 30 * dayMs, ...more });
  assert.equal(status, 200, text);
  return { id: approval.id, seq: receipt.seq };
}

async function erases(desk: Desk, body: object): Promise<void> {
  const parts = ["call", "input", "platform"];
  const { status, text } = await desk.operates("/admin/erase", { reason: "a person asked for it", parts, ...body });
  assert.equal(status, 200, text);
}

async function blocked(desk: Desk, call: object): Promise<boolean> {
  const { verdict, reason } = await desk.asks(call);
  assert.ok(verdict === "ESCALATE" || /denied/.test(reason), reason);
  return verdict === "BLOCK";
}

await runShared("denials survive", [
  {
    rule: "[P11] a denial of a call holds in every session after its row is erased, and a person can still read it",
    options: { contract },
    run: async (one, other) => {
      const calls = [paying(1200), paying(1300), paying(1400)];
      const kinds = [["input"], ["call"], ["platform", "reason"]];
      for (const [index, call] of calls.entries()) {
        const { id, seq } = await denied(one, call);
        const parts = kinds[index] ?? [];
        const which = parts.join();
        await erases(one, { rows: [[seq, seq]], parts });
        assert.ok(await blocked(other, call), which);
        assert.ok(await blocked(other, { ...call, session_id: "s2" }), `${which}, another session`);
        assert.ok(await blocked(other, naming(id, call)), `${which}, with its id`);
        const { status, json } = await one.as("anna", `/approvals/${id}`);
        assert.deepEqual([status, json.status, json.decisions[0].person], [200, "denied", "anna"]);
      }
      const again = await one.decides("bob", (await denied(one, paying(1600, "dan", "s4"))).id, "approve");
      assert.equal(again.json.code, "approval-closed");
    },
    defect: { within: "erasedDenial", first: "return undefined;" },
  },
  {
    rule: "[P11] a denial of a tool holds in its session, and one of a rule for its key, after the erasure",
    options: { contract },
    run: async (one, other) => {
      await denied(one, paying(1200, "anna", "s1"), { scope: "tool" });
      await erases(one, { session_id: "s1" });
      assert.ok(await blocked(other, paying(1250, "ben", "s1")), "another call of the tool in the session");
      assert.ok(!(await blocked(other, paying(1251, "ben", "s2"))), "control: another session");
      await denied(one, paying(1300, "anna", "s3"), { scope: "rule" });
      await erases(one, { session_id: "s3" });
      assert.ok(await blocked(other, paying(1350, "cleo", "s4")), "the rule, in any session");
    },
    defect: { within: "denialFor", find: "denial.call.place === sessionTool()", put: "false" },
  },
  {
    rule: "[P11] three denials within an hour block further calls of the rule after the erasure",
    options: { contract },
    run: async (one, other) => {
      for (const [index, to] of ["a", "b", "c"].entries()) await denied(one, paying(1200 + index, to));
      await erases(one, { session_id: "s1" });
      const { verdict, reason } = await other.asks(paying(1400, "d", "s9"));
      assert.deepEqual([verdict, /people denied 3 calls/.test(reason)], ["BLOCK", true], reason);
    },
    defect: { within: "erasedDenial", first: "return undefined;" },
  },
  {
    rule: "[P11] the time of a denial ends as before, also after the erasure",
    options: { contract },
    run: async (one, other) => {
      const { approval, receipt } = await one.asks(paying(1200));
      const until = Date.now() + 1500; // short wait: the denial must end within this test
      assert.equal((await one.decides("anna", approval.id, "deny", { until })).status, 200);
      await erases(one, { rows: [[receipt.seq, receipt.seq]] });
      assert.ok(await blocked(other, paying(1200)));
      await new Promise((resolve) => setTimeout(resolve, until - Date.now() + 50));
      assert.ok(!(await blocked(other, paying(1200))), "its time is over");
    },
    defect: { within: "denialFor", find: "denial === null || at >= denial.until", put: "denial === null" },
  },
]);

suite("verification of an erased denial", () => {
  const changes: readonly (readonly [what: string, sql: string, noticed: boolean])[] = [
    ["nothing (control)", "UPDATE approvals SET ends = ends", false],
    ["it is gone", "DELETE FROM approvals", true],
    ["it ends sooner", "UPDATE approvals SET ends = 5", true],
    ["it is of another call", "UPDATE approvals SET attach = zeroblob(32)", true],
    ["it was used", "UPDATE approvals SET status = 'used'", true],
    ["it is of another key", "UPDATE approvals SET key = 'other'", true],
    [
      "its record has another status",
      `UPDATE approvals SET record = replace(record, '"status":"denied"', '"status":"used"')`,
      true,
    ],
    [
      "its record names a key",
      `UPDATE approvals SET record = replace(record, '{"asked":', '{"key":"other","asked":')`,
      true,
    ],
    ["its record says so", `UPDATE approvals SET record = replace(record, '"until":', '"until":1')`, true],
    ["its scope is another", `UPDATE approvals SET record = replace(record, '"scope":"call"', '"scope":"rule"')`, true],
  ];
  for (const [what, sql, noticed] of changes)
    test(`${noticed ? "a change is noticed" : "an honest ledger verifies"}: ${what}`, async (t) => {
      const data = await ledgerWithDenial(t);
      const database = new DatabaseSync(join(data, "ledger.db"));
      database.exec(sql);
      database.close();
      const { code, stdout } = await command(["verify", data]);
      assert.equal(code, noticed ? 1 : 0, stdout);
    });

  test("a denial that nobody made, of an erased call, is noticed", async (t) => {
    const data = await ledgerWithDenial(t);
    const database = new DatabaseSync(join(data, "ledger.db"));
    database.exec("INSERT INTO approvals SELECT seq - 1, attach, key, place, status, ends, record FROM approvals");
    database.close();
    assert.equal((await command(["verify", data])).code, 1);
  });
});

/** The folder of a ledger with a denied call that was erased, and an erased call before it. */
async function ledgerWithDenial(t: TestContext): Promise<string> {
  const desk = await startDesk(t, { contract });
  await desk.asks(paying(5));
  await denied(desk, paying(1200));
  await erases(desk, { session_id: "s1" });
  assert.equal((await ask(desk, "/ledger/verify")).json.ok, true);
  await desk.stop();
  return join(desk.folder, "data");
}
