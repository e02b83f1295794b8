/**
 * Goal: a contract can limit what waits for a person, because `counters.x.held` is exactly what parked calls reserve.
 * Method: a gate over HTTP, with a contract that limits what one session reserves. The model of approvals compares the
 * values in random histories (test/faults/campaigns/approvals-model.test.ts). Positive controls: planted defects.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import {
  approved,
  assertLedgerValid,
  large,
  naming,
  payments,
  runScenarios,
  startDesk,
  type Desk,
} from "../support/approvals.ts";
import { command } from "../support/command.ts";

const counting = payments.replace(
  "  tries:",
  "  waiting: { of: [pay.send], per: session, sum: input.amount, counting: possible, within: 24h }\n  tries:",
);
const limiting = counting.replace(
  "rules:\n",
  `rules:
  - rule: crowded
    on: [pay.send]
    when: counters.waiting.held + counters.spent.held * 0 + input.amount > 2400
    verdict: BLOCK
    reason: "{counters.waiting.held} of this session wait"
`,
);
const call = (amount: number, session: string, wallet = session): object => ({
  ...large,
  tool_input: { amount, to: "x" },
  session_id: session,
  platform_state: { wallet },
});

/** The counters that a check read. */
async function readBy(desk: Desk, check: object): Promise<Readonly<Record<string, string>>> {
  const { receipt } = await desk.asks(check);
  return (await desk.outcomeOf(receipt.seq)).counters;
}

runScenarios("what parked calls hold", [
  {
    rule: "R8: a session that holds too much is blocked until a person decides, and another session is not",
    options: { contract: limiting },
    run: async (desk) => {
      const first = await desk.asks(call(1200, "s1"));
      assert.equal(first.verdict, "ESCALATE");
      const second = await desk.asks(call(1201, "s1", "other"));
      assert.deepEqual([second.verdict, second.reason], ["BLOCK", "Svc: 1200 of this session wait"]);
      assert.equal((await desk.asks(call(1201, "s2"))).verdict, "ESCALATE");
      await desk.decides("anna", first.approval.id, "deny");
      assert.equal((await desk.asks(call(1201, "s1", "other"))).verdict, "ESCALATE");
    },
    defect: { within: "isCounted", find: 'return how === "opened";', put: "return false;" },
  },
  {
    rule: "R8: a call that is asked again does not see what its own approval holds",
    options: { contract: limiting },
    run: async (desk) => {
      const answers = [];
      for (let time = 0; time < 4; time += 1) answers.push(await desk.asks(call(2000, "s1")));
      assert.deepEqual(
        answers.map(({ verdict }) => verdict),
        ["ESCALATE", "ESCALATE", "ESCALATE", "ESCALATE"],
      );
      assert.equal(new Set(answers.map(({ approval }) => approval.id)).size, 1);
      await desk.decides("anna", answers[0].approval.id, "approve");
      assert.equal((await desk.asks(naming(answers[0].approval.id, call(2000, "s1")))).verdict, "ALLOW");
    },
    defect: { within: "withoutOwn", first: "return value;" },
  },
  {
    rule: "R8: an amount that was let through counts, and nothing holds it any more",
    options: { contract: limiting },
    run: async (desk) => {
      const id = await approved(desk, call(1200, "s1"));
      const waiting = await readBy(desk, call(100, "s1"));
      assert.deepEqual([waiting["pay.waiting.held"], waiting["pay.spent.held"]], ["1200", "1200"]);
      await desk.asks(naming(id, call(1200, "s1")));
      const used = await readBy(desk, call(100, "s1"));
      assert.deepEqual([used["pay.waiting.held"], used["pay.spent.held"], used["pay.spent"]], ["0", "0", "1300"]);
    },
    defect: {
      within: "isCounted",
      find: 'return how === "opened";',
      put: 'return how === "opened" || answered === "ALLOW";',
    },
  },
  {
    rule: "R8: a part that a reload brings into force has what open approvals hold",
    options: { contract: counting },
    run: async (desk) => {
      const { approval } = await desk.asks(call(1200, "s1"));
      writeFileSync(join(desk.folder, "contracts", "pay.yaml"), limiting);
      assert.equal((await desk.operates("/admin/reload", {})).status, 200);
      assert.equal((await desk.asks(call(1201, "s1"))).verdict, "BLOCK");
      await desk.decides("anna", approval.id, "deny");
      assert.equal((await desk.asks(call(1201, "s1"))).verdict, "ESCALATE");
    },
    defect: {
      within: "alignCounters",
      find: "await reserveForOpen(each, counter, transaction, source)",
      put: "undefined",
    },
  },
  {
    rule: "R8: a person is shown what waits, and nothing more may wait when the approval is used",
    options: {
      contract: counting.replace(
        "rules:\n",
        `rules:
  - rule: queue
    on: [pay.send]
    when: counters.spent.held > 1000
    verdict: ESCALATE
    reason: "{counters.spent.held} wait"
`,
      ),
    },
    run: async (desk) => {
      await desk.asks(call(1100, "s1", "w"));
      const parked = await desk.asks(call(10, "s2", "w"));
      assert.equal(parked.reason, "Svc: 1100 wait");
      await desk.decides("anna", parked.approval.id, "approve");
      await desk.asks(call(1200, "s3", "w"));
      const later = await desk.asks(naming(parked.approval.id, call(10, "s2", "w")));
      assert.deepEqual([later.verdict, later.approval.new], ["ESCALATE", true], "2,300 wait now");
    },
    defect: { within: "isNoRisk", find: "return counters && facts;", put: "return facts;" },
  },
]);

suite("svc-gate explain", () => {
  test("it names the receipts that reserve an amount now, and none whose approval has ended", async (t) => {
    const desk = await startDesk(t, { contract: limiting });
    const [first, second] = [await desk.asks(call(1200, "s1")), await desk.asks(call(1100, "s1", "v"))];
    await desk.decides("anna", first.approval.id, "deny");
    const reader = await desk.asks(call(5, "s1"));
    const again = await desk.asks(call(1100, "s1", "v"));
    await desk.stop();
    const explained = async ({ receipt }: any): Promise<readonly unknown[]> => {
      const args = ["explain", "--receipt", String(receipt.seq), "--data-dir", join(desk.folder, "data"), "--json"];
      const { code, stdout, stderr } = await command(args);
      assert.equal(code, 0, stderr + stdout);
      const { counters } = JSON.parse(stdout);
      return counters
        .filter(({ name }: any) => name.endsWith(".held"))
        .map(({ name, value, counted }: any) => [name, value, counted.last.map(({ seq }: any) => seq)]);
    };
    assert.deepEqual(await explained(reader), [
      ["pay.spent.held", "0", []],
      ["pay.waiting.held", "1100", [second.receipt.seq]],
    ]);
    // The call's own approval is left out.
    assert.deepEqual(await explained(again), [
      ["pay.spent.held", "0", []],
      ["pay.waiting.held", "0", []],
    ]);
  });
});

suite("the ledger of a contract that reads what parked calls reserve", () => {
  test("it verifies, also after a reload, and each row is decided again to the same answer", async (t) => {
    const desk = await startDesk(t, { contract: counting });
    const id = await approved(desk, call(1200, "s1"));
    writeFileSync(join(desk.folder, "contracts", "pay.yaml"), limiting);
    assert.equal((await desk.operates("/admin/reload", {})).status, 200);
    assert.equal((await desk.asks(call(1201, "s1"))).verdict, "BLOCK");
    await desk.asks(naming(id, call(1200, "s1")));
    const other = await desk.asks(call(1201, "s1", "v"));
    assert.equal(other.verdict, "ESCALATE");
    await desk.asks(call(1300, "s1", "v"));
    await desk.decides("anna", other.approval.id, "deny");
    assert.equal((await desk.asks(call(1300, "s1", "v"))).verdict, "ESCALATE");
    await assertLedgerValid(desk);
  });
});
