/**
 * Goal: an error about quotes, or about a reason that YAML cuts, leads to the author's meaning. Method: the help's text
 * is put into the file, which must compile and decide as meant. Positive controls: quotes and comments that YAML reads
 * as meant stay. UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compile, contractText, diagnostics, judge, marked, snapshot } from "../../../support/contract-kit.ts";
import { control } from "../../../support/controls/control.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

type Make = (when: string, reason?: string) => string;

const inLines: Make = (when, reason = "x") =>
  contractText({
    requires: "platform.present",
    rules: `\n  - rule: r\n    on: t\n    when: ${when}\n    verdict: BLOCK\n    reason: ${reason}`,
  });
const inBraces: Make = (when, reason = "x") =>
  contractText({
    requires: "platform.present",
    rules: `\n  - { rule: r, on: t, when: ${when}, verdict: BLOCK, reason: ${reason} }`,
  });

/** Returns the rule's verdicts on a call by "eve" and on one by "alice". */
function said(text: string): readonly string[] {
  const policySet = compile(text);
  return ["eve", "alice"].map((s) => {
    const { verdict, reason } = judge(policySet, { platform: snapshot, input: { n: 6, s } });
    return verdict === "BLOCK" ? reason.replace("Svc: ", "") : verdict;
  });
}

const values: readonly (readonly [key: "when" | "reason", written: string, fixed: string, wanted: string])[] = [
  ["when", `"input.s == "eve""`, `'input.s == "eve"'`, "x"],
  ["when", `'input.s == 'eve''`, `'input.s == ''eve'''`, "x"],
  ["when", `'input.s == \\'eve\\''`, `'input.s == ''eve'''`, "x"],
  ["reason", `"too "much" of it"`, `'too "much" of it'`, `too "much" of it`],
  ["reason", `'it's {input.n}'`, `'it''s {input.n}'`, "it's 6"],
];

suite("quotes inside the author's own quotes", { tags: ["first-use-7"] }, () => {
  for (const make of [inLines, inBraces])
    for (const [key, written, fixed, wanted] of values)
      test(`the help for ${key}: ${written} ${make === inLines ? "in lines" : "in braces"} gives the intended value`, () => {
        const text = key === "when" ? make(written) : make("input.s == 'eve'", written);
        const found = diagnostics(text);
        assert.deepEqual(
          found.map((each) => [each.code, each.hint, marked(each)]),
          [["yaml", `write \`${key}: ${fixed}\``, written]],
        );
        says("value-that-ends-at-a-quote", found[0]?.message ?? "");
        assert.deepEqual(said(text.replace(written, () => fixed)), [wanted, "ALLOW"]);
      });

  test("another error inside the quotes is reported at its own position", () => {
    assert.deepEqual(
      diagnostics(inLines(`'input.kidn == 'eve''`)).map((each) => [each.code, marked(each)]),
      [
        ["yaml", `'input.kidn == 'eve''`],
        ["unknown-member", "kidn"],
      ],
    );
  });

  control("positive control: quotes that belong to the condition or the reason stay", () => {
    const kept = `"eve" == input.s || input.s == "abc"`;
    says("condition-without-quotes", diagnostics(inLines(kept))[0]?.hint ?? "");
    const reason = `"a" is not "b"`;
    says("reason-without-quotes", diagnostics(inLines("true", reason))[0]?.hint ?? "");
  });
});

suite("a reason that YAML cuts at ` #`", { tags: ["first-use-7"] }, () => {
  const reasons = [
    ["the order #{input.n} is paid", "the order #6 is paid"],
    ["room # {input.n} is taken", "room # 6 is taken"],
    ["see ticket #12", "see ticket #12"],
  ] as const;
  for (const [reason, wanted] of reasons)
    test(`the reason ${reason} is an error, also if the rest of the file compiles`, () => {
      const text = inLines("input.s == 'eve'", reason);
      const [found, ...others] = diagnostics(text);
      assert.ok(found !== undefined && others.length === 0);
      assert.deepEqual([found.code, marked(found)], ["yaml", reason]);
      const fix = /`(reason: '[^`]*')`/.exec(found.hint ?? "")?.[1] ?? "";
      assert.deepEqual(said(text.replace(`reason: ${reason}`, () => fix)), [wanted, "ALLOW"]);
    });

  control("positive control: a comment after a reason and a reason in quotes are not errors", () => {
    for (const reason of ["too much # for one day", '"order #{input.n}"', "'order #{input.n}' #7", "order#7"])
      assert.deepEqual(diagnostics(inLines("input.s == 'eve'", reason)), []);
  });
});

suite("hints for the syntax of other languages", { tags: ["first-use-7"] }, () => {
  const hints: readonly (readonly [when: string, hint: RegExp])[] = [
    ["hour(now) > 18", /`hour\(now, "Europe\/Berlin"\)`/],
    ["now.getHours() > 18", /`hour\(now, "Europe\/Berlin"\)`/],
    ['weekday(now) == "sunday"', /`day\(now, "Europe\/Berlin"\)`/],
    ["input.n > max(1, 2)", /`a > b \? a : b`/],
    ["1 < input.n < 5", /`a < b && b < c`/],
    ['input.n > "5"', /a number without quotes/],
    ["input.n == null", /`has\(\.\.\.\)`/],
    ["input.s == “eve”", /straight quotes/],
    ["input.n ≥ 5", /`>=`/],
    ["input.?m.size() > 5", /`\.\?name\.orValue\(other\)`/],
    ["'!input.s in limits.names'", /`!\(a in b\)`/],
  ];
  for (const [when, hint] of hints)
    test(`the compiler gives a hint for ${when}`, () => assert.match(diagnostics(inLines(when))[0]?.hint ?? "", hint));
});
