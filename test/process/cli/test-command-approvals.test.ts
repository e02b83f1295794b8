/**
 * Goal: `svc-gate test` shows what approvals and outcomes do to a contract's calls, as the gate does it. Method: cases
 * for each state of an approval and each outcome pass. Positive controls: each case fails if the gate has a planted defect, or if the case
 * expects something else.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { root, temporaryFolder } from "../../support/gate.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";
import { mutatedEnvironment, preload } from "../../support/mutation/sources.ts";

const contract = `contract: pay
platform:
  type: object
  required: [wallet]
  properties: { wallet: { type: string }, price: { type: number } }
tools:
  send:
    input:
      type: object
      additionalProperties: false
      required: [usd, to]
      properties: { usd: { type: number, minimum: 0 }, to: { type: string }, note: { type: string } }
    requires: platform.present
    approval: { by: [finance], decide_within: 30m, use_within: 10m, unbound: [input.note] }
    otherwise: ALLOW
counters:
  spent: { of: send, per: platform.wallet, sum: input.usd, counting: possible, within: 24h, settles: outcome }
rules:
  - rule: budget
    on: send
    when: counters.spent + input.usd > 3000
    verdict: BLOCK
    final: true
    reason: "{counters.spent} USD are spent"
  - rule: huge
    on: send
    when: input.usd > 2000
    verdict: ESCALATE
    approval: { by: [finance, legal], of: 2 }
    reason: "{input.usd} USD need two persons"
  - { rule: large, on: send, when: input.usd > 1000, verdict: ESCALATE, reason: "{input.usd} USD is large" }
  - rule: dear
    on: send
    when: platform.?price.orValue(0) > 10
    verdict: ESCALATE
    reason: "the price is {platform.?price}"
  - { rule: waits, on: send, when: counters.spent.held > 5000, verdict: BLOCK, reason: "{counters.spent.held} USD wait" }
`;

const head = `contract: pay.yaml
now: "2026-01-15T12:00:00Z"
key: agent
session: s1
persons: { anna: [finance], ben: [legal, finance], cleo: support }
fixtures: { facts: { wallet: w } }
templates:
  large: { tool: send, platform: facts, input: { usd: 1200, to: shop } }
  dear: { tool: send, platform: { wallet: w, price: 20 }, input: { usd: 10, to: shop } }
  dearer: { tool: send, platform: { wallet: w, price: 21 }, input: { usd: 10, to: shop } }
  other: { tool: send, platform: facts, input: { usd: 900, to: x } }
`;

interface Case {
  readonly name: string;
  readonly steps: readonly string[];
  /** Changes of the expectations that the case must notice. */
  readonly wrong: readonly (readonly [from: string, to: string])[];
  /** A defect of the gate that the case must notice: several changes where two checks back each other. */
  readonly defect?: readonly Mutation[];
}

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
    defect: [{ within: "JudgedBatch.#closeLater", find: "this.#end({ ...approval, status }, approval);", put: "" }],
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
      "{ like: large, expect: ESCALATE }",
      "{ approve: anna }",
      "{ like: large, expect: { verdict: ESCALATE, approval: { status: approved, new: false, next: check } } }",
      "{ like: large, session: s2, expect: { verdict: ESCALATE, approval: { status: approved, next: wait } } }",
      "{ like: large, input: { usd: 1200.0 }, approval: last, expect: { answered: ESCALATE, approval: { next: wait } } }",
      "{ like: large, approval: last, expect: { answered: ALLOW, approval: used } }",
    ],
    wrong: [["approval: used", "approval: approved"]],
    defect: [{ within: "namedBy", find: "found.asking.binding === binding", put: "true" }],
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
        within: "ApprovalDesk.#decideIn",
        find: "if (!isOpen(after)) transaction.release(after.row, open.holds.get(after.row) ?? []);",
        put: "",
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
        within: "judgeAsk",
        find: 'if (denial !== undefined) return { how: "denied", mismatch, ...denial };',
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
      { within: "CaseLedger.#store", find: "isOpen(each) && !isAfter(each, at)", put: "false" },
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
    defect: [{ within: "expire", find: "transaction.release(after.row, held.get(after.row) ?? []);", put: "" }],
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
    name: "two persons of the right groups are two voices",
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
    defect: [{ within: "voterFor", find: "isOwn && !policy().policySet.approvals.self", put: "false" }],
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
        within: "ApprovalDesk.cancel",
        find: "approval.key === key && approval.session === session",
        put: "true",
      },
    ],
  },
  {
    name: "a failed call gives its amount back",
    steps: [
      "{ like: other, as: first, expect: ALLOW }",
      "{ like: other, after: 1s, repeat: 2, expect: ALLOW }",
      "{ like: other, expect: { verdict: BLOCK, counters: { spent: 2700 } } }",
      "{ outcome: failed, call: first, after: 1m }",
      "{ like: other, expect: { verdict: ALLOW, counters: { spent: 1800 } } }",
      "{ outcome: failed, call: first }",
      "{ like: other, expect: BLOCK }",
    ],
    wrong: [["spent: 1800", "spent: 2700"]],
    defect: [{ within: "CaseLedger.#commit", find: "takenBy !== undefined", put: "false" }],
  },
  {
    name: "the key that asked lowers no budget, and the bookkeeping corrects its report once",
    steps: [
      "{ like: other, as: first, expect: ALLOW }",
      "{ outcome: failed, key: agent }",
      "{ like: other, input: { usd: 1 }, expect: { verdict: ALLOW, counters: { spent: 900 } } }",
      "{ outcome: done, key: agent, call: first, expect: outcome-refused }",
      "{ outcome: done, amount: 850.5, call: first }",
      "{ like: other, input: { usd: 1 }, expect: { verdict: ALLOW, counters: { spent: 851.5 } } }",
      "{ outcome: failed, call: first, expect: outcome-refused }",
    ],
    wrong: [
      ["failed, key: agent", "failed"],
      ["spent: 851.5", "spent: 901"],
      ["failed, call: first, expect: outcome-refused", "failed, call: first"],
    ],
    defect: [
      { within: "CaseGate.report", find: "key === undefined", put: "true" },
      { within: "OutcomeDesk.#reportIn", find: "reporter.mayLower && leaf.key !== reporter.name", put: "true" },
    ],
  },
  {
    name: "an amount of the key that asked can only raise what counts",
    steps: [
      "{ like: other, as: first, expect: ALLOW }",
      "{ outcome: done, amount: 1, key: agent }",
      "{ like: other, input: { usd: 100 }, expect: { verdict: ALLOW, counters: { spent: 900 } } }",
      "{ outcome: done, amount: 150, key: agent }",
      "{ like: other, input: { usd: 1 }, expect: { verdict: ALLOW, counters: { spent: 1050 } } }",
    ],
    wrong: [["spent: 900", "spent: 1"]],
    defect: [
      { within: "next", module: "outcomes/settle", find: 'mayLower || !difference.startsWith("-")', put: "true" },
    ],
  },
  {
    name: "only a call that was let through has an outcome",
    steps: [
      "{ like: large, expect: ESCALATE }",
      "{ outcome: done, expect: outcome-refused }",
      "{ approve: anna }",
      "{ like: large, approval: last, expect: ALLOW }",
      "{ outcome: failed }",
      "{ like: other, expect: { verdict: ALLOW, counters: { spent: 0 } } }",
    ],
    wrong: [["done, expect: outcome-refused", "done"]],
    defect: [{ within: "hasOutcome", find: 'answered === "ALLOW"', put: "true" }],
  },
  {
    name: "another key that asks may not report, and the same outcome again is accepted",
    steps: [
      "{ like: other, expect: ALLOW }",
      "{ outcome: failed, key: robot, expect: forbidden }",
      "{ outcome: unknown }",
      "{ outcome: done, after: 23h }",
      "{ outcome: done }",
    ],
    wrong: [["key: robot, expect: forbidden", "key: robot"]],
    defect: [
      { within: "OutcomeDesk.#reportIn", find: "!reporter.mayLower && leaf.key !== reporter.name", put: "false" },
    ],
  },
  {
    name: "an outcome is taken for a day",
    steps: ["{ like: other, expect: ALLOW }", "{ outcome: failed, after: 24h1ms, expect: outcome-refused }"],
    wrong: [["after: 24h1ms", "after: 24h"]],
    defect: [{ within: "OutcomeDesk.#reportIn", find: "at > leaf.at + outcomeWithinMs", put: "false" }],
  },
  {
    name: "a call that needs nobody has no approval",
    steps: ["{ like: other, expect: { verdict: ALLOW, approval: null } }"],
    wrong: [["approval: null", "approval: pending"]],
  },
];

interface Output {
  readonly ok: boolean;
  readonly errors?: unknown;
  readonly files: readonly {
    readonly cases: readonly {
      readonly case: string;
      readonly ok: boolean;
      readonly calls: number;
      readonly decisions: number;
      readonly outcomes: number;
      readonly ms: number;
      readonly failure: Readonly<Record<string, unknown>> | null;
    }[];
  }[];
}

function fileText(all: readonly Case[]): string {
  const text = all.map(({ name, steps }) => {
    const lines = steps.map((step) => `      - ${step}\n`).join("");
    return `  - case: ${JSON.stringify(name)}\n    calls:\n${lines}`;
  });
  return `${head}cases:\n${text.join("")}`;
}

/** Runs the command in a process of its own, which may load sources with a defect. */
function run(folder: string, defect: readonly Mutation[], ...args: readonly string[]): Promise<string> {
  const imports = defect.length === 0 ? [] : ["--import", preload];
  const program = join(root, "packages", "svc-gate", "src", "cli", "main.ts");
  const env = { ...process.env, ...mutatedEnvironment(defect) };
  return new Promise((resolve) => {
    execFile(process.execPath, [...imports, program, "test", ...args], { cwd: folder, env }, (_, out, err) =>
      resolve(out === "" ? err : out),
    );
  });
}

async function output(t: TestContext, text: string, defect: readonly Mutation[] = []): Promise<Output> {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "pay.yaml"), contract);
  writeFileSync(join(folder, "pay.test.yaml"), text);
  const shown = await run(folder, defect, "--json", "pay.test.yaml");
  try {
    return JSON.parse(shown) as Output;
  } catch {
    return assert.fail(shown);
  }
}

function failedIn({ files }: Output): readonly string[] {
  return files.flatMap((file) => file.cases.filter(({ ok }) => !ok).map((each) => each.case));
}

suite("cases in which a person decides, or a key reports an outcome", { tags: ["approvals"] }, () => {
  test("every case passes, and all of them take well under a second", async (t) => {
    const found = await output(t, fileText(cases));
    const all = found.files.flatMap((file) => file.cases);
    assert.deepEqual(failedIn(found), [], JSON.stringify(all.filter(({ ok }) => !ok)));
    assert.equal(all.length, cases.length);
    const [first] = all;
    assert.deepEqual([first?.calls, first?.decisions, first?.outcomes], [4, 1, 0]);
  });
});

suite("positive control: a defect of the gate fails the case", { concurrency: 2 }, () => {
  for (const { name, defect } of cases) {
    if (defect === undefined) continue;
    test(`the case "${name}" fails if ${defect.map(({ within }) => within).join(" and ")} is wrong`, async (t) => {
      const failed = failedIn(await output(t, fileText(cases), defect));
      assert.ok(failed.includes(name), `failed: ${failed.join("; ")}`);
    });
  }
});

suite("positive control: a wrong expectation is noticed", () => {
  test("each changed expectation fails its case and no other", async (t) => {
    const changed = cases.flatMap((one) =>
      one.wrong.map(([from, to], index): Case => {
        const text = one.steps.join("\n");
        assert.equal(text.split(from).length, 2, `${one.name}: ${from}`);
        return { ...one, name: `${one.name} ${index}`, steps: text.replace(from, () => to).split("\n") };
      }),
    );
    const failed = failedIn(await output(t, fileText([...cases, ...changed])));
    assert.deepEqual(
      failed,
      changed.map(({ name }) => name),
    );
  });
});

suite("reports of a step that fails", () => {
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
  const early: Case = {
    name: "an outcome too early",
    steps: [
      "{ like: large, as: first, expect: ESCALATE }",
      "{ outcome: done, amount: 40.50, call: first, key: agent }",
    ],
    wrong: [],
  };
  const accepted: Case = {
    name: "an outcome that is accepted after all",
    steps: ["{ like: other, expect: ALLOW }", "{ outcome: failed, expect: outcome-refused }"],
    wrong: [],
  };

  const exponent: Case = {
    name: "an amount that POST /outcomes does not take",
    steps: ["{ like: other, expect: ALLOW }", "{ outcome: done, amount: 1e2 }"],
    wrong: [],
  };

  test("the report for a person and the one for programs name the step, the person and the refusal", async (t) => {
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, "pay.yaml"), contract);
    writeFileSync(join(folder, "pay.test.yaml"), fileText([...wrong, none, used, early, accepted, exponent]));
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
        [2, undefined, undefined, true],
        [2, undefined, undefined, true],
        [2, undefined, undefined, true],
      ],
    );
    assert.deepEqual(failures.map((failure) => [failure?.["outcome"], failure?.["of"], failure?.["key"]]).slice(-3), [
      ["done", "first", "agent"],
      ["failed", "last", null],
      ["done", "last", null],
    ]);
    const xml = readFileSync(join(folder, "junit.xml"), "utf8");
    assert.match(
      xml,
      /<failure message="pay\.test\.yaml:[0-9]+:[0-9]+: approve: expected a decision that counts, came self-approval/,
    );
  });
});
