/**
 * Goal: `svc-gate test` shows what approvals do to a contract's calls, as the gate does it. Method: cases for each
 * state of an approval pass. Positive controls: each case fails if the gate has a planted defect, or if the case
 * expects something else.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { contract, fileText, run, testCases, type Case, type Output } from "../../support/case-files.ts";
import { temporaryFolder } from "../../support/gate.ts";

const cases: readonly Case[] = [
  {
    name: "an approved call runs, and its amount counts once",
    steps: [
      "{ like: large, expect: { verdict: ESCALATE, rule: large, approval: { status: pending, new: true, needs: 1, has: 0, next: wait } } }",
      "{ approve: anna, after: 1m }",
      "{ like: large, input: { note: thanks }, after: 2m, approval: last, expect: ALLOW }",
      "{ like: other, input: { usd: 100 }, expect: { verdict: ALLOW, counters: { spent: 1200 } } }",
      "{ like: large, approval: last, expect: { verdict: ESCALATE, answered: BLOCK, reason: was used already } }",
    ],
    wrong: [
      ["expect: ALLOW", "expect: ESCALATE"],
      ["spent: 1200", "spent: 2400"],
      ["answered: BLOCK", "answered: ALLOW"],
      ["next: wait", "next: check"],
      ["new: true", "new: false"],
      ["has: 0", "has: 1"],
    ],
    defect: [
      {
        within: "BatchApprovals.#close",
        find: "this.timed.transaction.release(approval.row, this.#reservations.get(approval.row) ?? []);",
        put: "",
      },
    ],
  },
  {
    name: "what parked calls hold is read apart from what was let through",
    steps: [
      "{ like: other, expect: { verdict: ALLOW, counters: { spent: 0, spent.held: 0 } } }",
      "{ like: large, expect: ESCALATE }",
      "{ like: other, input: { usd: 100 }, expect: { verdict: ALLOW, counters: { spent: 2100, spent.held: 1200 } } }",
      "{ approve: anna }",
      "{ like: large, approval: last, expect: { answered: ALLOW, counters: { spent: 1000, spent.held: 0 } } }",
      "{ like: other, input: { usd: 100 }, expect: { verdict: ALLOW, counters: { spent: 2200, spent.held: 0 } } }",
    ],
    wrong: [["spent.held: 1200", "spent.held: 2100"]],
    defect: [{ within: "isCounted", find: 'return how === "opened";', put: 'return answered === "ALLOW";' }],
  },
  {
    name: "a call without the id is not the approved call yet",
    steps: [
      "{ like: large, as: mine, expect: ESCALATE }",
      "{ approve: anna }",
      "{ like: large, expect: { verdict: ESCALATE, approval: { status: approved, new: false, next: check } } }",
      "{ like: large, input: { usd: 1200.0 }, approval: mine, expect: { answered: ESCALATE, approval: { new: true, next: wait } } }",
      "{ like: large, approval: mine, expect: { answered: ALLOW, approval: used } }",
    ],
    wrong: [["approval: used", "approval: approved"]],
    defect: [{ within: "misfitsOf", find: "asking.binding === ask.binding(asking.sessions)", put: "true" }],
  },
  {
    name: "a call that is asked again attaches, and holds its amount once",
    steps: [
      "{ like: large, repeat: 5, every: 1s, expect: { verdict: ESCALATE, counters: { spent: 0 } } }",
      "{ like: large, expect: { approval: { status: pending, new: false } } }",
      "{ like: other, expect: { verdict: ALLOW, counters: { spent: 1200 } } }",
    ],
    wrong: [["new: false", "new: true"]],
    defect: [
      {
        within: "isCounted",
        find: 'answered === "ALLOW" || (answered === "ESCALATE" && how !== "attached" && how !== "capped")',
        put: 'answered !== "BLOCK"',
      },
    ],
  },
  {
    name: "a denial blocks the call with the person's words, and ends what it held",
    steps: [
      "{ like: large, expect: ESCALATE }",
      "{ like: other, repeat: 2, expect: ALLOW }",
      "{ like: other, expect: { verdict: BLOCK, counters: { spent: 3000 } } }",
      "{ deny: ben, comment: not this shop, expect: denied }",
      "{ like: other, expect: { verdict: ALLOW, counters: { spent: 1800 } } }",
      "{ like: other, expect: BLOCK }",
    ],
    wrong: [["spent: 1800", "spent: 3000"]],
    defect: [
      {
        within: "enact",
        find: "reservations !== undefined && !isOpen(after)",
        put: "false",
      },
    ],
  },
  {
    name: "a denial holds for a day",
    steps: [
      "{ like: large, as: first, expect: ESCALATE }",
      "{ deny: anna, comment: not this shop }",
      "{ like: large, session: s2, after: 23h58m, expect: { answered: BLOCK, reason: 'Svc: anna denied this call: not this shop' } }",
      "{ like: large, after: 1m, expect: { verdict: ESCALATE, answered: BLOCK, approval: { status: denied, next: none } } }",
      "{ approve: ben, approval: first, expect: approval-closed }",
      "{ like: large, after: 1m, expect: { answered: ESCALATE, approval: { status: pending, new: true } } }",
    ],
    wrong: [
      ["not this shop' }", "no' }"],
      ["next: none", "next: wait"],
      ["expect: approval-closed", "expect: approved"],
    ],
    defect: [
      {
        within: "judgeCall",
        find: 'if (denial !== undefined) return { how: "denied", misfits, ...denial };',
        put: "",
      },
    ],
  },
  {
    name: "a denial of the tool is for its session",
    steps: [
      "{ like: large, expect: ESCALATE }",
      "{ deny: anna, scope: tool }",
      "{ like: large, input: { usd: 1300 }, expect: { answered: BLOCK, reason: anna denied this tool in this session } }",
      "{ like: large, input: { usd: 1300 }, session: s2, expect: { answered: ESCALATE } }",
    ],
    wrong: [["scope: tool", "scope: call"]],
  },
  {
    name: "an approval is used in time or never",
    steps: [
      "{ like: large, expect: ESCALATE }",
      "{ approve: anna }",
      "{ like: large, after: 9m59s, expect: { approval: { status: approved, next: check } } }",
      "{ like: large, after: 1s, approval: last, expect: { verdict: ESCALATE, answered: BLOCK, reason: has expired, approval: expired } }",
    ],
    wrong: [["after: 1s", "after: 999ms"]],
    defect: [
      { within: "statusAt", find: "at >= endsAt(approval)", put: "false" },
      { within: "applyAct", find: "at < approval.useBy", put: "true" },
      {
        within: "dueApprovals",
        module: "memory/memory",
        find: "isOpen(each) && (each.ends ?? Infinity) <= at",
        put: "false",
      },
    ],
  },
  {
    name: "nobody decided in time, so the call waits no more and holds nothing",
    steps: [
      "{ like: large, expect: ESCALATE }",
      "{ like: other, after: 29m59s, expect: { verdict: ALLOW, counters: { spent: 1200 } } }",
      "{ like: other, after: 1s, expect: { verdict: ALLOW, counters: { spent: 900 } } }",
      "{ approve: anna, expect: approval-closed }",
    ],
    wrong: [["counters: { spent: 900 }", "counters: { spent: 2100 }"]],
    defect: [
      {
        within: "endDue",
        find: "{ approvals: due, reservations: groupReservations(reservations) }",
        put: "{ approvals: due }",
      },
    ],
  },
  {
    name: "fresh facts can block an approved call, or need another decision",
    steps: [
      "{ like: dear, as: first, expect: ESCALATE }",
      "{ approve: anna }",
      "{ like: dearer, approval: first, as: second, expect: { answered: ESCALATE, approval: { status: pending, new: true } } }",
      "{ like: dearer, approval: first, expect: { answered: BLOCK, approval: superseded } }",
      "{ approve: ben, approval: second }",
      "{ like: dearer, approval: second, expect: ALLOW }",
    ],
    wrong: [["approval: superseded", "approval: used"]],
    defect: [{ within: "isNoRisk", find: "return counters && facts;", put: "return counters;" }],
  },
  {
    name: "the budget stays free for a call that waits",
    steps: [
      "{ like: large, expect: ESCALATE, as: first }",
      "{ like: other, repeat: 2, expect: ALLOW }",
      "{ like: other, input: { usd: 1 }, expect: { verdict: BLOCK, rule: budget } }",
      "{ approve: anna, approval: first }",
      "{ like: large, approval: first, expect: { answered: ALLOW, counters: { spent: 1800 } } }",
      "{ like: other, input: { usd: 1 }, expect: { verdict: BLOCK, counters: { spent: 3000 } } }",
    ],
    wrong: [["spent: 1800", "spent: 3000"]],
  },
  {
    name: "two people of the right groups are two voices",
    steps: [
      "{ like: large, input: { usd: 2500 }, expect: { rule: huge, approval: { needs: 2, has: 0 } } }",
      "{ approve: anna, expect: pending }",
      "{ approve: anna, expect: pending }",
      "{ approve: cleo, expect: not-an-approver }",
      "{ like: large, input: { usd: 2500 }, approval: last, expect: { answered: ESCALATE, approval: { has: 1, next: wait } } }",
      "{ approve: ben, expect: approved }",
      "{ like: large, input: { usd: 2500 }, approval: last, expect: { answered: ALLOW, reason: anna and ben approved } }",
    ],
    wrong: [
      ["approve: cleo, expect: not-an-approver", "approve: cleo"],
      ["approve: ben, expect: approved", "approve: ben, expect: pending"],
    ],
    defect: [{ within: "isOneOf", find: "by === null || groups.some($each)", put: "true" }],
  },
  {
    name: "nobody approves a call of their own",
    steps: [
      "{ like: large, key: anna, expect: ESCALATE }",
      "{ approve: anna, expect: self-approval }",
      "{ approve: ben, expect: approved }",
    ],
    wrong: [["approve: anna, expect: self-approval", "approve: anna"]],
    defect: [
      {
        within: "voterFor",
        find: "shared !== undefined && isYes && !mayApprove(shared, approval, policy())",
        put: "false",
      },
    ],
  },
  {
    name: "the key that asked cancels, and another key cannot",
    steps: [
      "{ like: large, expect: ESCALATE }",
      "{ cancel: robot, expect: not-found }",
      "{ cancel: agent }",
      "{ like: other, expect: { verdict: ALLOW, counters: { spent: 0 } } }",
      "{ like: large, approval: last, expect: { answered: BLOCK, reason: was cancelled } }",
    ],
    wrong: [["cancel: robot, expect: not-found", "cancel: robot"]],
    defect: [
      {
        within: "ApprovalDesk.#cancelIn",
        find: 'approval.key === key && (approval.session === asker?.session || approval.asking.sessions === "any")',
        put: "true",
      },
    ],
  },
  {
    name: "a call that needs nobody has no approval",
    steps: ["{ like: other, expect: { verdict: ALLOW, approval: null } }"],
    wrong: [["approval: null", "approval: pending"]],
  },
];

testCases("cases in which a person decides", cases, { tags: ["approvals"], counts: [4, 1, 0] });

suite("reports of a decision that fails", () => {
  const wrong = cases
    .filter(({ name }) => name.startsWith("nobody approves"))
    .map((one) => ({ ...one, steps: one.steps.map((step) => step.replace(", expect: self-approval", "")) }));
  const none: Case = {
    name: "no approval",
    steps: ["{ like: other, as: first, expect: ALLOW }", "{ approve: anna, approval: first }"],
    wrong: [],
  };
  const used: Case = {
    name: "a use that is not expected",
    steps: [
      "{ like: large, expect: ESCALATE }",
      "{ approve: anna, comment: fine }",
      "{ like: large, approval: last, expect: BLOCK }",
    ],
    wrong: [],
  };

  test("the report for a person and the one for programs name the step, the person and the refusal", async (t) => {
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, "pay.yaml"), contract);
    writeFileSync(join(folder, "pay.test.yaml"), fileText([...wrong, none, used]));
    const text = await run(folder, [], "--junit", "junit.xml", "pay.test.yaml");
    const file = join(import.meta.dirname, "golden", "test-approvals.golden");
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, text);
    assert.equal(text, readFileSync(file, "utf8"));
    const json = JSON.parse(await run(folder, [], "--json", "pay.test.yaml")) as Output;
    const failures = json.files.flatMap(({ cases: all }) => all.map(({ failure }) => failure));
    assert.deepEqual(
      failures.map((failure) => [
        failure?.["call"],
        failure?.["decision"],
        failure?.["by"],
        failure?.["body"] === undefined,
      ]),
      [
        [2, "approve", "anna", true],
        [2, "approve", "anna", true],
        [3, undefined, undefined, false],
      ],
    );
    const xml = readFileSync(join(folder, "junit.xml"), "utf8");
    assert.match(
      xml,
      /<failure message="pay\.test\.yaml:[0-9]+:[0-9]+: approve: expected a decision that counts, came self-approval/,
    );
  });
});
