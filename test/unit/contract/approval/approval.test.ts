/**
 * Goal: what a contract says about approvals is read exactly, and each mistake is an error at its position. Method: a table
 * of contracts with their errors, and what the compiled rules then need.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compileContracts, compileMandate, type PolicySet } from "../../../../packages/readers/src/contract.ts";
import { good } from "../../../../packages/core/src/wire/mod.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

interface Parts {
  readonly contract?: string;
  readonly tool?: string;
  readonly rule?: string;
}

function textOf({ contract = "", tool = "", rule = "" }: Parts): string {
  return `contract: c
platform: { type: object, properties: { price: { type: number }, wallet: { type: string } } }
${contract}
tools:
  pay:
    input:
      type: object
      additionalProperties: false
      required: [amount]
      properties: { amount: { type: number, minimum: 0 }, note: { type: string }, memo: { type: string }, cents: { type: integer } }
    ${tool}
    otherwise: ALLOW
counters:
  spent: { of: pay, per: key, sum: input.amount }
rules:
  - rule: large
    on: pay
    when: input.amount > 100 && input.?memo.orValue("") != "x" && counters.spent < 1000
    verdict: ESCALATE
    ${rule}
    reason: it is large
`;
}

function compiled(parts: Parts): PolicySet {
  const found = compileContracts([{ name: "c.yaml", text: textOf(parts) }]);
  return found.ok ? found.value : assert.fail(found.problem.map(({ message }) => message).join("; "));
}

function errorOf(parts: Parts): string {
  const text = textOf(parts);
  const found = compileContracts([{ name: "c.yaml", text }]);
  if (found.ok) return "no error";
  return found.problem
    .map(({ code, message, span }) => `${text.slice(span.from, span.to)}: ${code}: ${message}`)
    .join("; ");
}

/** What is wrong with a rule about a command line. */
function errorOfLine(when: string, terms: string, more = ""): string {
  const text = `contract: c
platform: { type: object, required: [cwd, user], properties: { cwd: { type: string }, user: { type: string }, line: { type: string } } }
${more}
commands: { forms: [{ run: a, words: NAME, does: reads, verdict: ESCALATE, reason: asks }] }
let: { run: "commands(input.command, platform.cwd)" }
tools:
  sh:
    input:
      type: object
      additionalProperties: false
      required: [command, other]
      properties: { command: { type: string, maxLength: 9 }, other: { type: string, maxLength: 9 }, wait: { type: integer } }
    requires: platform.present
    otherwise: ALLOW
rules:
  - rule: asks
    on: sh
    when: ${when}
    verdict: ESCALATE
    approval: { ${terms} }
    reason: it asks
`;
  const found = compileContracts([{ name: "c.yaml", text }]);
  if (found.ok) return "no error";
  return found.problem
    .map(({ code, hint, message }) => [`${code}: ${message}`, hint ?? []].flat().join("; "))
    .join("; ");
}

/** What an approval of the rule `large` needs. */
function termsOf(policySet: PolicySet): object {
  const [route] = policySet.tools.get("pay")?.routes ?? [];
  const { by, of, decideWithinMs, useWithinMs, batch, pins, drift, free } =
    route?.rules[0]?.terms ?? assert.fail("no rule");
  return { by, of, decideWithinMs, useWithinMs, batch, pins, drift, free };
}

const byDefault = {
  by: null,
  of: 1,
  decideWithinMs: 3_600_000,
  useWithinMs: 600_000,
  batch: true,
  pins: [],
  drift: "0",
  free: [],
};

suite("`approval:` in a contract", () => {
  test("a contract that says nothing needs one person within an hour", () => {
    assert.deepEqual(termsOf(compiled({})), byDefault);
  });

  test("each part comes from the rule, else the tool, else the contract", () => {
    const terms = termsOf(
      compiled({
        contract: "approval: { by: [legal], of: 2, decide_within: 2d }",
        tool: "approval: { of: 3, batch: false, use_within: 30m }",
        rule: "approval: { by: [finance, board], drift: 1.50, pins: [platform.price, counters.spent], free: [platform.wallet] }",
      }),
    );
    assert.deepEqual(terms, {
      by: ["board", "finance"],
      of: 3,
      decideWithinMs: 172_800_000,
      useWithinMs: 1_800_000,
      batch: false,
      pins: ["counters.spent", "platform.price"],
      drift: "1.5",
      free: ["platform.wallet"],
    });
  });

  test("a tool's other parts leave the contract's `unbound` in force", () => {
    const contract = "approval: { unbound: [input.note] }";
    for (const tool of ["", "approval: { of: 2 }"])
      assert.deepEqual(compiled({ contract, tool }).tools.get("pay")?.unbound, ["input.note"]);
    const none = { contract, tool: "approval: { unbound: [] }" };
    assert.deepEqual(compiled(none).tools.get("pay")?.unbound, []);
  });

  const wrong: readonly (readonly [name: string, parts: Parts])[] = [
    ["another member", { rule: "approval: { who: [finance] }" }],
    ["no people", { rule: "approval: { of: 0 }" }],
    ["too many people", { rule: "approval: { of: 1000 }" }],
    ["a group with a space", { rule: 'approval: { by: ["a b"] }' }],
    ["a length without a unit", { rule: "approval: { decide_within: 30 }" }],
    ["a month to decide", { rule: "approval: { decide_within: 30d }" }],
    ["a drift below 0", { rule: "approval: { drift: -1 }" }],
    ["a free fact that is none", { rule: "approval: { free: [platform.cost] }" }],
    ["a free member of the input", { rule: "approval: { free: [input.amount] }" }],
    ["17 free facts", { rule: `approval: { free: [${"platform.price, ".repeat(17)}] }` }],
    ["a pin of another fact", { rule: "approval: { pins: [platform.cost] }" }],
    ["a pin of the input", { rule: "approval: { pins: [input.amount] }" }],
    ["a pin of another counter", { rule: "approval: { pins: [counters.tries] }" }],
    ["`unbound` in a rule", { rule: "approval: { unbound: [input.note] }" }],
    ["an unbound number", { tool: "approval: { unbound: [input.cents] }" }],
    ["an unbound member that must be there", { tool: "approval: { unbound: [input.amount] }" }],
    ["an unbound member that a rule reads", { tool: "approval: { unbound: [input.memo] }" }],
    ["an unbound member that the tool does not have", { tool: "approval: { unbound: [input.other] }" }],
    ["an unbound fact", { tool: "approval: { unbound: [platform.wallet] }" }],
    ["grants in a tool", { tool: "approval: { grants: { at_most: 1h, uses: 1 } }" }],
    ["grants in a contract", { contract: "approval: { grants: { at_most: 1h, uses: 1 } }" }],
    ["self in a tool", { tool: "approval: { self: true }" }],
    ["self in a contract", { contract: "approval: { self: true }" }],
    ["self with a name", { rule: "approval: { self: anna }" }],
    ["self for money", { rule: "approval: { self: true }" }],
    ["grants without a number of uses", { rule: "approval: { grants: { at_most: 1h } }" }],
    ["grants for a month", { rule: "approval: { grants: { at_most: 30d, uses: 1 } }" }],
    ["grants with too many uses", { rule: "approval: { grants: { at_most: 1h, uses: 10001 } }" }],
    ["grants with another member", { rule: "approval: { grants: { at_most: 1h, uses: 1, for: 1 } }" }],
    ["grants that pin a fact", { rule: "approval: { grants: { at_most: 1h, uses: 1, pin: [platform.price] } }" }],
    ["grants that pin no member", { rule: "approval: { grants: { at_most: 1h, uses: 1, pin: [input.other] } }" }],
    ["grants by something else", { rule: "approval: { grants: { by: day, at_most: 1h, uses: 1 } }" }],
    [
      "grants that free a member without a form",
      { rule: "approval: { grants: { at_most: 1h, uses: 1, free: [input.memo] } }" },
    ],
    [
      "grants by form of a rule that reads no command line",
      { rule: "approval: { grants: { by: form, at_most: 1h, uses: 1 } }" },
    ],
    [
      "grants beside a pinned counter",
      { rule: "approval: { pins: [counters.spent], grants: { at_most: 1h, uses: 1 } }" },
    ],
    [
      "an unbound member that a grant pins",
      {
        tool: "approval: { unbound: [input.note] }",
        rule: "approval: { grants: { at_most: 1h, uses: 1, pin: [input.note] } }",
      },
    ],
    ["a subject that the platform does not send", { contract: "subject: [platform.user]" }],
    ["a subject in the input", { contract: "subject: [input.amount]" }],
  ];
  for (const [name, parts] of wrong) test(`an error names ${name}`, () => says(name, errorOf(parts)));

  test("a rule's own text permits grants, and its meaning changes with them", () => {
    const rule = "approval: { grants: { at_most: 2h, uses: 20, pin: [input.memo] } }";
    const terms = compiled({ rule }).tools.get("pay")?.routes[0]?.rules[0]?.terms;
    assert.deepEqual(terms?.grants, { atMostMs: 7_200_000, uses: 20, pin: ["input.memo"] });
    assert.equal(compiled({}).tools.get("pay")?.routes[0]?.rules[0]?.terms.grants, undefined);
  });

  const lines: readonly (readonly [name: string, when: string, grants: string, more?: string])[] = [
    [
      "two command lines in a rule with grants by form",
      'run.verdict == "ESCALATE" && commands(input.other, ".").form == "a"',
      "",
    ],
    ["two readings of one command line", 'run.verdict == "ESCALATE" && commands(input.command, ".").form == "a"', ""],
    [
      "a command line that is read for each item",
      'input.other != "" && ["."].exists(each, commands(input.command, each).form == "a")',
      "",
    ],
    ["another reading of the command line", 'run.verdict == "ESCALATE" && input.command.size() > 3', ""],
    ["a command line that is free", 'run.verdict == "ESCALATE"', ", free: [input.command]"],
    ["a free member that the tool does not have", 'run.verdict == "ESCALATE"', ", free: [input.none]"],
    ["a free fact that the contract does not have", 'run.verdict == "ESCALATE"', ", free: [platform.none]"],
    ["a free member without its root", 'run.verdict == "ESCALATE"', ", free: [wait]"],
    ["a mistyped free member", 'run.verdict == "ESCALATE"', ", free: [input.wiat]"],
    ["a free whole input", 'run.verdict == "ESCALATE"', ", free: [input]"],
    [
      "a free member that the condition reads",
      'run.verdict == "ESCALATE" && input.?wait.orValue(0) > 9',
      ", free: [input.wait]",
    ],
    ["17 free members", 'run.verdict == "ESCALATE"', `, free: [${"input.wait, ".repeat(17)}]`],
    ["a pinned command line", 'run.verdict == "ESCALATE"', ", pin: [input.command]"],
    ["a command line that is a fact", 'commands(platform.?line.orValue(""), platform.cwd).verdict == "ESCALATE"', ""],
    [
      "a free fact that is a subject",
      'run.verdict == "ESCALATE"',
      ", free: [platform.user]",
      "subject: [platform.user]",
    ],
    [
      "a free fact that keys a counter",
      'run.verdict == "ESCALATE" && counters.all < 9',
      ", free: [platform.user]",
      "counters: { all: { of: sh, per: [platform.user], within: 1h } }",
    ],
    ["a command line with grants by form", 'run.verdict == "ESCALATE"', ", free: [input.other, platform.cwd]"],
  ];
  for (const [name, when, grants, more] of lines)
    test(`a message about ${name}`, () =>
      says(name, errorOfLine(when, `grants: { by: form, at_most: 1h, uses: 1${grants} }`, more)));

  const own = [
    ["self with two readings of command lines", 'run.verdict == "ESCALATE" && commands(input.other, ".").form == "a"'],
    ["self with one reading", 'run.verdict == "ESCALATE" && input.other != ""'],
  ] as const;
  for (const [name, when] of own) test(`a message about ${name}`, () => says(name, errorOfLine(when, "self: true")));

  test("`unbound` in a mandate is an error", () => {
    const text = "mandate: m\ncontracts: [c.yaml]\napproval: { unbound: [input.note] }\n";
    const found = compileMandate({ name: "mandate.yaml", text }, (name) => good({ name, text: textOf({}) }));
    says("`unbound` in a mandate", found.ok ? "no error" : found.problem.map(({ message }) => message).join("; "));
  });
});
