/**
 * Goal: each construct of the language is translated with the engine's meaning. Method: two contracts that differ in
 * one condition, with the answer that a person reaches by thinking. The tests run with and without guessed calls, so
 * that the solver also answers alone. The engine decides each call that the solver finds. The table therefore mainly
 * tests answers without a call: equivalent, and the excluded direction.
 */
import assert from "node:assert/strict";
import { after, suite, test } from "node:test";
import {
  compareContracts,
  openSolver,
  type Solver,
  type ToolDifference,
} from "../../../packages/workbench/src/analysis/mod.ts";
import {
  compileContracts,
  loadFunctions,
  renderDiagnostic,
  type PolicySet,
} from "../../../packages/readers/src/contract.ts";
import { control } from "../../support/controls/control.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const whole = (rules: string, more = ""): string => `contract: c
limits: { most: 5, words: [red, green] }
platform:
  type: object
  required: [spent]
  properties: { spent: { type: number }, wallet: { type: string }, seen: { type: array, items: { type: string } } }
tools:
  t:
    input:
      type: object
      additionalProperties: false
      required: [amount, count, text, few, many, maybe, flag, lines, any]
      properties:
        amount: { type: number, minimum: 0, maximum: 1000 }
        count: { type: integer }
        text: { type: string }
        opt: { type: string }
        few: { type: array, items: { type: string }, maxItems: 3 }
        many: { type: array, items: { type: number } }
        maybe: { type: [number, "null"] }
        flag: { type: boolean }
        colour: { enum: [red, green, blue] }
        lines:
          type: array
          items: { type: object, additionalProperties: false, required: [price], properties: { price: { type: number } } }
        any: true
${more}    otherwise: ALLOW
counters:
  calls: { of: [t], per: session, within: 10m }
  spent: { of: [t], per: gate, sum: input.amount }
  parked: { of: [t], per: gate, counting: possible }
rules:
${rules}`;

const rule = (when: string, verdict = "BLOCK"): string =>
  `  - { rule: r, on: [t], when: ${JSON.stringify(when)}, verdict: ${verdict}, reason: it is so }\n`;

async function load(text: string): Promise<PolicySet> {
  const policySet = compileContracts([{ name: "c.yaml", text }]);
  assert.ok(policySet.ok, policySet.ok ? "" : policySet.problem.map(renderDiagnostic).join("\n"));
  await loadFunctions(policySet.value);
  return policySet.value;
}

/** A rule that BLOCKs, before and after the change, and the expected comparison of the tool. */
const cases: readonly (readonly [before: string, after: string, answer: string])[] = [
  // The amount that parked calls reserve is another number than the counter
  ["counters.parked > 5", "counters.parked.held > 5", "changed"],
  ["counters.parked.held > 5", "counters.parked.held >= 6", "equivalent"],
  ["counters.parked.held > 5", "counters.parked.held > 4", "stricter"],
  // Order and arithmetic
  ["input.amount > 5", "5 < input.amount", "equivalent"],
  ["input.amount > 5", "input.amount >= 5", "stricter"],
  ["input.amount > 5", "input.amount > 5.0000001", "weaker"],
  ["input.amount > 5", "input.amount * 2 > 10", "equivalent"],
  ["input.amount > 0.1 + 0.2", "input.amount > 0.3", "equivalent"],
  ["input.amount / 3 > 1", "input.amount > 3", "equivalent"],
  ["input.amount > 1000", "false", "equivalent"],
  ["input.amount < 0", "false", "equivalent"],
  ["input.amount > 5 && input.amount < 4", "false", "equivalent"],
  ["input.amount > 5", "input.amount < 5", "changed"],
  ["input.count > 5", "input.count >= 6", "equivalent"],
  ["input.amount > 5", "input.amount >= 6", "weaker"],
  ["input.count % 2 == 0", "input.count % 2 != 1 && input.count % 2 != -1", "equivalent"],
  ["input.count % 2 == 1", "input.count % 2 != 0", "stricter"],
  ["-input.count > 5", "input.count < -5", "equivalent"],
  ["input.amount > limits.most", "input.amount > 5", "equivalent"],
  // Errors are BLOCK, and are never absorbed
  ["1 / input.amount > 2", "input.amount < 0.5", "equivalent"],
  ["1 / input.count > 2", "input.count == 0", "equivalent"],
  ["1 / input.count > 2 || true", "true", "equivalent"],
  ["false && 1 / input.count > 2", "false", "equivalent"],
  ["1 / input.count > 2", "1 / input.count > 2 && input.count != 0", "equivalent"],
  ["input.count != 0 && 1 / input.count > 0.7", "input.count == 1", "equivalent"],
  ["10 % input.count == 0 && false", "input.count == 0", "equivalent"],
  ["input.few[1] == 'x'", "input.few.size() < 2 || input.few[1] == 'x'", "equivalent"],
  ["input.few[1] == 'x'", "input.few.size() >= 2 && input.few[1] == 'x'", "weaker"],
  // Presence and null
  ["has(input.opt) && input.opt == 'x'", "input.?opt.orValue('') == 'x'", "equivalent"],
  ["!has(input.opt)", "!('opt' in input)", "equivalent"],
  ["has(input.opt) && input.opt == ''", "input.?opt.orValue('') == ''", "stricter"],
  ["input.?opt.hasValue()", "has(input.opt)", "equivalent"],
  ["input.maybe != null && input.maybe > 5", "input.maybe == null ? false : input.maybe > 5", "equivalent"],
  ["input.maybe == null", "input.maybe == 0", "changed"],
  ["platform.present && platform.spent > 5", "platform.present ? platform.spent > 5 : false", "equivalent"],
  ["!platform.present", "!platform.present || platform.spent > 5", "stricter"],
  ["session.present", "!session.present", "changed"],
  // Text
  ["input.text == 'a'", "input.text in ['a']", "equivalent"],
  ["input.text.startsWith('ab')", "input.text.startsWith('a')", "stricter"],
  ["input.text.contains('ab')", "input.text.contains('a') && input.text.contains('b')", "stricter"],
  ["input.text.endsWith('.pdf')", "input.text.matches('^(?:.*[.]pdf)$')", "weaker"],
  ["input.text.matches('^(?:[a-c]+)$')", "input.text.matches('^(?:[abc]+)$')", "equivalent"],
  ["input.text.matches('^(?:a{2,3})$')", "input.text in ['aa', 'aaa']", "equivalent"],
  ["input.text.matches('^(?:(?:a|b)c?)$')", "input.text in ['a', 'b', 'ac', 'bc']", "equivalent"],
  ["input.text.size() > 3", "input.text.size() >= 4", "equivalent"],
  ["input.text.lowerAscii() == 'ab'", "input.text in ['ab', 'AB', 'Ab', 'aB']", "equivalent"],
  ["input.text.lowerAscii() == 'AB'", "false", "equivalent"],
  ["input.text.lowerAscii().startsWith('x')", "input.text.startsWith('x')", "weaker"],
  ["input.text + 'b' == 'ab'", "input.text == 'a'", "equivalent"],
  ["input.text == 'é𝔸'", "input.text.matches('^(?:é𝔸)$')", "equivalent"],
  // Values of a few kinds, and of any
  [
    "has(input.colour) && input.colour != 'red'",
    "has(input.colour) && input.colour in ['green', 'blue']",
    "equivalent",
  ],
  ["input.any == 1", "input.any in [1]", "equivalent"],
  ["input.any == 1", "input.any == 1 || input.any == 'x'", "stricter"],
  ["input.flag == true", "input.flag", "equivalent"],
  [
    "input.flag ? input.amount > 5 : input.amount > 6",
    "input.amount > 6 || (input.flag && input.amount > 5)",
    "equivalent",
  ],
  // Lists of a bounded length, and of any
  ["input.few.exists(x, x == 'a')", "'a' in input.few", "equivalent"],
  ["input.few.all(x, x == 'a')", "!input.few.exists(x, x != 'a')", "equivalent"],
  ["input.few.all(x, x != 'a')", "input.few.size() == 0", "weaker"],
  ["input.few.size() > 3", "false", "equivalent"],
  ["input.few == ['a']", "input.few.size() == 1 && input.few[0] == 'a'", "equivalent"],
  ["input.few.exists_one(x, x == 'a')", "input.few.filter(x, x == 'a').size() == 1", "equivalent"],
  ["input.many.exists(x, x > 5)", "!input.many.all(x, x <= 5)", "equivalent"],
  ["input.many.exists(x, x > 5)", "input.many.exists(x, x > 4)", "stricter"],
  ["input.many.exists(x, x > 5)", "input.many.exists(x, x > 4 && x > 5)", "equivalent"],
  ["input.many.exists(x, x > 5) && input.many.size() == 0", "false", "equivalent"],
  ["input.many.filter(x, x > 5).size() > 0", "input.many.exists(x, x > 5)", "equivalent"],
  ["input.many.map(x, x * 2).exists(x, x > 10)", "input.many.exists(x, x > 5)", "equivalent"],
  ["input.many.exists(x, 1 / x > 2)", "input.many.exists(x, 1 / x > 2) || false", "equivalent"],
  ["input.many.all(x, 1 / x > 2)", "input.many.all(x, x != 0 && 1 / x > 2)", "weaker"],
  ["input.many.size() > 20", "input.many.size() > 21", "weaker"],
  ["input.many.exists(x, x in [1, 2])", "1 in input.many || 2 in input.many", "equivalent"],
  ["input.lines.exists(l, l.price > 5)", "input.lines.exists(l, 5 < l.price)", "equivalent"],
  ["input.lines.exists(l, l.price > 5)", "!input.lines.all(l, l.price <= 6)", "weaker"],
  ["input.text in limits.words", "input.text == 'red' || input.text == 'green'", "equivalent"],
  [
    "platform.present && input.text in platform.?seen.orValue([])",
    "platform.present && has(platform.seen) && platform.seen.exists(s, s == input.text)",
    "equivalent",
  ],
  // Counters, moments, functions
  ["counters.calls > 4", "counters.calls >= 5", "equivalent"],
  ["counters.spent > 4", "counters.spent >= 5", "weaker"],
  ["counters.spent < 0", "false", "equivalent"],
  ["counters.calls >= 0", "true", "equivalent"],
  ["!session.present && counters.calls > 0", "false", "equivalent"],
  ["counters.spent + input.amount > 10", "10 < input.amount + counters.spent", "equivalent"],
  ["now > timestamp('2026-01-01T00:00:00Z')", "timestamp(1767225600) < now", "equivalent"],
  ["now - timestamp(input.count) > duration('1h')", "now > timestamp(input.count + 3600)", "equivalent"],
  ["now - timestamp(input.count) > duration('1h')", "now - timestamp(input.count) > duration('2h')", "weaker"],
  ["url(input.text).host == 'a.com'", "'a.com' == url(input.text).host", "equivalent"],
  [
    "url(input.text).host == 'a.com' || input.amount > 5",
    "input.amount > 5 || url(input.text).host == 'a.com'",
    "equivalent",
  ],
];

suite("the comparison of two contracts", () => {
  const opened = openSolver();
  after(async () => (await opened)?.close());
  const solved = async (
    before: string,
    other: string,
    guesses = 0,
    by?: (solver: Solver) => Solver,
  ): Promise<ToolDifference> => {
    const solver = await opened;
    assert.ok(solver, "z3-solver is not installed");
    const [found] = await compareContracts(await load(before), await load(other), {
      solver: by === undefined ? solver : by(solver),
      timeMs: 120_000,
      guesses,
    });
    assert.ok(found);
    return found;
  };

  for (const [before, other, answer] of cases) {
    test(`the comparison of ${before} with ${other} answers "${answer}"`, async () => {
      const found = await solved(whole(rule(before)), whole(rule(other)));
      assert.deepEqual(
        [found.answer, found.defects],
        [answer, []],
        JSON.stringify({ ...found, shown: [...found.shown] }),
      );
    });
  }

  const base = whole(rule("input.amount > 5"));
  const renamed = base.replace("rule: r,", "rule: another,").replace("it is so", "it is as it is");
  const shapes: readonly (readonly [what: string, before: string, other: string, answer: string])[] = [
    ["another name and reason", base, renamed, "equivalent"],
    ["an ESCALATE in place of a BLOCK", base, whole(rule("input.amount > 5", "ESCALATE")), "weaker"],
    [
      "an ESCALATE in place of an ALLOW",
      whole(rule("input.amount > 5", "ALLOW")),
      whole(rule("input.amount > 5", "ESCALATE")),
      "stricter",
    ],
    [
      "an ALLOW rule in a tool that is ALLOW otherwise",
      whole(rule("input.amount > 5", "ALLOW")),
      whole(rule("false")),
      "equivalent",
    ],
    [
      "a rule that another rule covers",
      base,
      `${base}  - { rule: s, on: [t], when: input.amount > 6, verdict: BLOCK, reason: too much }\n`,
      "equivalent",
    ],
    [
      "another rule",
      base,
      `${base}  - { rule: s, on: [t], when: input.amount < 1, verdict: ESCALATE, reason: little }\n`,
      "stricter",
    ],
    [
      "a rule that observes",
      base,
      `${base}  - { rule: s, on: [t], when: input.amount < 1, verdict: BLOCK, mode: observe, reason: little }\n`,
      "equivalent",
    ],
    [
      "a reason that may fail",
      whole(rule("input.amount > 5", "ESCALATE")),
      whole(rule("input.amount > 5", "ESCALATE").replace("it is so", '"{input.few[0]}"')),
      "stricter",
    ],
    ["a BLOCK's reason that may fail", base, base.replace("it is so", '"{input.few[0]}"'), "equivalent"],
    ["a maximum that repeats a rule", base, base.replace("maximum: 1000", "maximum: 5"), "equivalent"],
    ["a minimum", base, base.replace("minimum: 0", "minimum: 1"), "stricter"],
    [
      "a step of 1",
      base.replace("type: integer", "type: number"),
      base.replace("type: integer", "type: number, multipleOf: 1"),
      "stricter",
    ],
    ["a whole number as a step of 1", base, base.replace("type: integer", "type: number, multipleOf: 1"), "equivalent"],
    [
      "a schema that accepts other members",
      base,
      base.replace("additionalProperties: false", "additionalProperties: true"),
      "weaker",
    ],
    ["a member that becomes required", base, base.replace("lines, any]", "lines, any, opt]"), "stricter"],
    ["a member that is removed", base, base.replace("        opt: { type: string }\n", ""), "stricter"],
    ["one more value of an enum", base, base.replace("[red, green, blue]", "[red, green, blue, grey]"), "weaker"],
    ["an enum in another order", base, base.replace("[red, green, blue]", "[blue, red, green]"), "equivalent"],
    ["a list that may be longer", base, base.replace("maxItems: 3", "maxItems: 30"), "weaker"],
    ["items that must differ", base, base.replace("maxItems: 3", "maxItems: 3, uniqueItems: true"), "stricter"],
    ["a pattern", base, base.replace("opt: { type: string }", "opt: { type: string, pattern: '^a' }"), "stricter"],
    [
      "an equivalent pattern",
      base.replace("opt: { type: string }", "opt: { type: string, pattern: '^a' }"),
      base.replace("opt: { type: string }", "opt: { type: string, pattern: '^(?:a)' }"),
      "equivalent",
    ],
    ["a fact of another type", base, base.replace("spent: { type: number }", "spent: { type: integer }"), "stricter"],
    ["a required snapshot", base, whole(rule("input.amount > 5"), "    requires: platform.present\n"), "stricter"],
    [
      "a requirement that repeats a rule",
      base,
      whole(rule("input.amount > 5"), "    requires: input.amount <= 5\n"),
      "equivalent",
    ],
    ["another verdict under otherwise", base, base.replace("otherwise: ALLOW", "otherwise: BLOCK"), "stricter"],
    ["a tool that is removed", base, base.replace("  t:\n", "  u:\n").replaceAll("[t]", "[u]"), "stricter"],
    [
      "a counter of another name",
      whole(rule("counters.calls > 4")),
      whole(rule("counters.calls2 > 4")).replace("  calls:", "  calls2:"),
      "equivalent",
    ],
  ];
  for (const [what, before, other, answer] of shapes) {
    test(`the comparison answers "${answer}" for ${what}`, async () => {
      assert.notEqual(before, other);
      const found = await solved(before, other);
      assert.deepEqual(
        [found.answer, found.defects],
        [answer, []],
        JSON.stringify({ ...found, shown: [...found.shown] }),
      );
    });
  }

  const slips: readonly (readonly [what: string, answer: Awaited<ReturnType<Solver["ask"]>>])[] = [
    ["gives up early", { kind: "unknown" }],
    ["chooses values that no call can have", { kind: "yes", model: "" }],
  ];
  for (const [what, slip] of slips) {
    /** Each different question gets the wrong answer as often as `times` says, and then the real one. */
    const slipping =
      (times: number) =>
      (solver: Solver): Solver => {
        const counts = new Map<string, number>();
        return {
          ready: solver.ready,
          close: solver.close,
          ask: async (text, constants, timeMs) => {
            const question = text.replace(/random_seed [0-9]+/, "");
            const before = counts.get(question) ?? 0;
            counts.set(question, before + 1);
            return constants.length > 0 && before < times ? slip : await solver.ask(text, constants, timeMs);
          },
        };
      };
    test(`a solver that ${what} is asked again`, async () => {
      const [before, other] = [whole(rule("input.many.exists(x, x > 5)")), whole(rule("input.many.exists(x, x > 4)"))];
      assert.equal((await solved(before, other, 0, slipping(1))).answer, "stricter");
      assert.equal((await solved(before, other, 0, slipping(9))).answer, "unknown", "positive control");
    });
  }

  test("a contract whose counter may have a key that is too long is stricter", async () => {
    const found = await solved(base, base.replace("per: gate, sum", "per: input.text, sum"), 500);
    assert.deepEqual([found.answer, found.shown.get("stricter")?.after.rule], ["stricter", "c.$counters.spent"]);
  });

  test("a changed counter is noted, and a contract that reads it is not called equivalent", async () => {
    const before = whole(rule("counters.calls > 4"));
    const found = await solved(before, before.replace("within: 10m", "within: 20m"));
    assert.equal(found.answer, "unknown");
    says("note on a changed counter", found.notes.join("\n"));
  });

  test("a change of `final` is noted, because it matters only in assist mode", async () => {
    const found = await solved(base, base.replace("verdict: BLOCK,", "verdict: BLOCK, final: true,"));
    assert.equal(found.answer, "equivalent");
    assert.match(found.notes.join(), /assist mode/);
  });

  test("without a solver, the comparison knows only identical conditions and the calls that it finds", async () => {
    const without = { solver: undefined, timeMs: 120_000, guesses: 1_000 };
    const answer = async (other: string): Promise<string | undefined> =>
      (await compareContracts(await load(base), await load(other), without))[0]?.answer;
    assert.equal(await answer(renamed), "equivalent");
    assert.equal(await answer(whole(rule("input.amount >= 5 && input.amount != 5"))), "unknown");
    assert.equal(await answer(whole(rule("input.amount < 5"))), "changed");
    const [found] = await compareContracts(await load(base), await load(whole(rule("input.amount > 4"))), without);
    assert.deepEqual([found?.answer, [...(found?.shown.keys() ?? [])]], ["unknown", ["stricter"]]);
    assert.match(found?.notes.join() ?? "", /z3-solver is not installed/);
  });

  suite("positive control: a wrong translation", () => {
    const changed =
      (from: string | RegExp, to: string) =>
      (solver: Solver): Solver => ({
        ...solver,
        ask: async (text, ...rest) => solver.ask(text.replaceAll(from, to), ...rest),
      });

    control("a found call that both contracts judge alike is a defect, and the answer is unknown", async () => {
      const other = whole(rule("input.amount > 6"));
      const found = await solved(base, other, 0, changed("6.0", "2.0"));
      assert.equal(found.answer, "unknown");
      assert.ok(found.defects.length > 0);
    });

    control("a translation that ignores errors calls two different contracts equivalent", async () => {
      const ignored = changed(/\(= (c[0-9]+) 0\.0\)/g, "false");
      const [before, other] = [whole(rule("10 % input.count == 0 && false")), whole(rule("false"))];
      assert.equal((await solved(before, other)).answer, "weaker");
      assert.equal((await solved(before, other, 0, ignored)).answer, "equivalent");
    });
  });

  test("a comparison that takes too long ends, and the next one is answered", async () => {
    const cubes = "input.count * input.count * input.count";
    const many = "input.amount * input.amount * input.amount";
    const hard = rule(`${cubes} + ${many} == 114 && input.amount != input.count && input.text.size() > input.amount`);
    const solver = await opened;
    assert.ok(solver);
    const options = { solver, timeMs: 300, guesses: 0 };
    const [late] = await compareContracts(await load(whole(hard)), await load(whole(rule("false"))), options);
    assert.ok(late?.answer === "unknown" || late?.answer === "weaker");
    assert.equal((await solved(base, whole(rule("5 < input.amount")))).answer, "equivalent");
  });
});
