/**
 * Goal: an error about YAML, or about an operator of another language, shows the condition that the author meant.
 * Method: a table of slips with message, help and position. The help's text is put into the file, which must compile and
 * decide as the author meant. The positive control follows the advice of an earlier version.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { findSlips } from "../../../../packages/core/src/contract/text/yaml-slips.ts";
import {
  conditionText,
  contractText,
  compile,
  diagnostics,
  judge,
  marked,
  locate,
  snapshot,
} from "../../../support/contract-kit.ts";
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

/** The calls that the rule BLOCKs. */
const calls: readonly (readonly [n: number, s: string])[] = [
  [1, "alice"],
  [1, "eve"],
  [6, "#x"],
  [6, "a #x"],
  [9, "it's"],
  [5, "abc"],
];

function blocked(text: string): string {
  const policySet = compile(text);
  return calls
    .map(([n, s]) => (judge(policySet, { platform: snapshot, input: { n, s } }).verdict === "BLOCK" ? "1" : "0"))
    .join("");
}

// The names of sentences.
const readAs = (character: string): string => `value-begins-with ${character}`;
const aKey = "colon-in-value";
const braces = (mark: string): string => `value-in-braces-ends-at ${mark}`;

/** A condition without quotes, its error as a block and in braces (undefined: no error), and its meaning. */
const conditions: readonly (readonly [
  when: string,
  lines: string | undefined,
  braces: string | undefined,
  means: string,
])[] = [
  ["!(input.s in limits.names)", readAs("!"), readAs("!"), "011111"],
  ["!input.s.contains('a')", readAs("!"), readAs("!"), "011010"],
  ["input.n > 5 ? input.n < 9 : input.s == 'eve'", aKey, aKey, "011100"],
  ['["#x", "it\'s"].exists(x, x == input.s)', readAs("["), readAs("["), "001010"],
  ['{"a": input.s}.a == "eve"', readAs("{"), readAs("{"), "010000"],
  ['"eve" == input.s || input.n > 8', ...twice("value-ends-at-quote"), "010010"],
  ['input.s == "a #x"', ...twice("comment-in-value"), "000100"],
  ['input.s == "#x"', undefined, undefined, "001000"],
  ['input.s.matches("^(?:[a-z]+)$")', undefined, braces("["), "110001"],
  ['input.s in ["eve", "abc"]', undefined, braces("["), "010001"],
  ["[input.n].exists(x, x > 8)", readAs("["), readAs("["), "000010"],
];

suite("a condition without the quotes that it needs", { tags: ["first-use-7"] }, () => {
  for (const [what, make, at] of [
    ["in lines", inLines, 1],
    ["in braces", inBraces, 2],
  ] as const) {
    for (const row of conditions) {
      const [when, , , means] = row;
      const name = row[at];
      test(`the condition ${when} ${what} compiles, or its error shows the right quotes`, () => {
        const text = make(when);
        const found = diagnostics(text);
        if (name === undefined) return assert.equal(blocked(text), means);
        const fixed = `when: '${when.replaceAll("'", "''")}'`;
        assert.deepEqual(
          found.map((each) => [each.code, marked(each), locate(each)]),
          [["yaml", when, what === "in lines" ? "19:11" : "17:29"]],
        );
        says(name, String(found[0]?.message));
        says("condition-needs-quotes", String(found[0]?.hint), { FIXED: `\`${fixed}\`` });
        assert.equal(blocked(helped(text, `when: ${when}`, found[0]?.hint)), means);
      });
    }
  }

  control("positive control: the old advice, to remove the tag, gives the opposite condition", () => {
    assert.equal(blocked(inLines("!(input.s in limits.names)".slice(1))), "100000");
  });

  test("the compiler also reports the other errors of the file, at their own positions", () => {
    const found = diagnostics(inLines("!(input.s in limits.names) || input.kidn > 1", "too much: {input.m}"));
    assert.deepEqual(
      found.map((each) => [each.code, marked(each)]),
      [
        ["yaml", "!(input.s in limits.names) || input.kidn > 1"],
        ["unknown-member", "kidn"],
        ["yaml", "too much: {input.m}"],
        ["unproven-member", "input.m"],
      ],
    );
  });

  test("the error shows the fix in every member of a contract that has a condition", () => {
    const contexts: readonly (readonly [text: string, written: string])[] = [
      [inLines("!(input.s == 'eve')\n      && input.n > 5"), "when: !(input.s == 'eve')\n      && input.n > 5"],
      [inLines("!(input.n > 5) # not much"), "when: !(input.n > 5)"],
      [contractText({ let: "\n  few: !(input.n > 5)", rules: rule("few") }), "few: !(input.n > 5)"],
      [contractText({ let: "{ few: !(input.n > 5) }", rules: rule("few") }), "few: !(input.n > 5)"],
      [contractText({ requires: "!(input.n > 5)" }), "requires: !(input.n > 5)"],
      [contractText({ requires: "\n      - !(input.n > 5)" }), "!(input.n > 5)"],
      [contractText({ requires: "\n      - { when: !(input.n > 5), reason: x }" }), "when: !(input.n > 5)"],
      [
        contractText({ counters: "{ k: { of: t, per: key, when: !(input.n > 5) } }", rules: rule("counters.k > 1") }),
        "when: !(input.n > 5)",
      ],
    ];
    for (const [text, written] of contexts) {
      const found = diagnostics(text);
      assert.equal(found.length, 1, text);
      says(readAs("!"), String(found[0]?.message));
      assert.deepEqual(diagnostics(helped(text, written, found[0]?.hint)), [], text);
    }
  });

  test("a condition that starts with a character such as `*` gets no advice to use quotes", () => {
    for (const first of ["*", "&", "@", "%", "|", ">"]) {
      for (const make of [inLines, inBraces]) {
        const [found] = diagnostics(make(`${first} 5`));
        says(`condition-begins-with ${first}`, String(found?.message));
        says("condition-begins-with-a-value", String(found?.hint));
      }
    }
    says("condition-begins-with-backtick", String(diagnostics(inLines("`n` > 5"))[0]?.message));
  });

  test("a value that YAML reads as it is written gets no error about quotes", () => {
    for (const when of ["input.n > 5 # y", ">-\n      !(input.n > 5)", "|\n      !(input.n > 5)", "'!(input.n > 5)'"])
      assert.deepEqual(diagnostics(inLines(when)), []);
    const input =
      "{ type: object, additionalProperties: false, properties: { reason: { type: string }, when: { type: number } } }";
    const found = diagnostics(
      contractText({ input, rules: "[{ rule: r, on: t, when: input.wen > 1, verdict: BLOCK, reason: x }]" }),
    );
    assert.deepEqual(
      found.map(({ code }) => code),
      ["unknown-member"],
    );
    assert.deepEqual(
      diagnostics(contractText({ input, rules: rule("has(input.x)") })).map(({ code }) => code),
      ["unknown-member"],
    );
  });
});

function rule(when: string): string {
  return `\n  - rule: r\n    on: t\n    when: ${when}\n    verdict: BLOCK\n    reason: x`;
}

/** Returns the file with the help's text instead of the mistake. */
function helped(text: string, written: string, hint: string | undefined): string {
  const fix = /`(.*)`$/s.exec(hint ?? "")?.[1];
  assert.ok(fix !== undefined && text.includes(written), String(hint));
  return text.replace(written, () => fix);
}

suite("a reason without the quotes that it needs", { tags: ["first-use-7"] }, () => {
  const reasons: readonly (readonly [reason: string, lines: string | undefined, braces: string, shown: string])[] = [
    ["too much: {input.n}", aKey, aKey, "too much: 6"],
    ["{input.n} USD", readAs("{"), readAs("{"), "6 USD"],
    ["{input.n}", readAs("{"), readAs("{"), "6"],
    ["[it's] late", readAs("["), readAs("["), "[it's] late"],
    ["> 5 is much", readAs(">"), readAs(">"), "> 5 is much"],
    ["@alice decides", ...twice(readAs("@")), "@alice decides"],
    ["`t` is off", ...twice(readAs("`")), "`t` is off"],
    ["%5 is off", ...twice(readAs("%")), "%5 is off"],
    ["&c is off", readAs("&"), readAs("&"), "&c is off"],
    ["*c is off", readAs("*"), readAs("*"), "*c is off"],
    ['"late" is late', ...twice("value-ends-at-quote"), '"late" is late'],
    ["over, sorry", undefined, braces(","), "over, sorry"],
    ["{{{input.n}}} of it", readAs("{"), readAs("{"), "{6} of it"],
    ["is {input.n}", undefined, braces("{"), "is 6"],
  ];
  for (const [make, at] of [
    [inLines, 1],
    [inBraces, 2],
  ] as const) {
    for (const row of reasons) {
      const [reason, , , shown] = row;
      test(`the reason ${reason} ${at === 1 ? "in lines" : "in braces"} compiles, or its error shows the right quotes`, () => {
        const text = make("input.n > 5", reason);
        const found = diagnostics(text);
        const name = row[at];
        const fixed = `reason: '${reason.replaceAll("'", "''")}'`;
        assert.deepEqual(
          found.map((each) => marked(each)),
          name === undefined ? [] : [reason],
        );
        if (name !== undefined) {
          says(name, String(found[0]?.message));
          says("reason-needs-quotes", String(found[0]?.hint), { FIXED: `\`${fixed}\`` });
        }
        const repaired = name === undefined ? text : helped(text, `reason: ${reason}`, found[0]?.hint);
        const decision = judge(compile(repaired), { platform: snapshot, input: { n: 6, s: "x" } });
        assert.equal(decision.reason, `Svc: ${shown}`);
      });
    }
  }
});

function twice(name: string): readonly [string, string] {
  return [name, name];
}

suite("errors about colons and tabs", { tags: ["first-use-7"] }, () => {
  test("a key without a space after its colon is an error that shows the fix", () => {
    for (const [make, at] of [
      [inLines, "19:5"],
      [inBraces, "17:23"],
    ] as const) {
      const text = make("input.n > 5").replace("when: ", "when:");
      const found = diagnostics(text);
      assert.deepEqual(
        found.map((each) => [each.hint, locate(each)]),
        [["write `when: input.n > 5`", at]],
      );
      says("no-space-after-colon", String(found[0]?.message));
      assert.equal(blocked(helped(text, "when:input.n > 5", found[0]?.hint)), "001110");
    }
  });

  test("a tab for indentation is reported as one error", () => {
    const text = inLines("input.n > 5").replace("    on: t\n    when", "\ton: t\n    when");
    const found = diagnostics(text);
    assert.deepEqual(
      found.map((each) => locate(each)),
      ["18:1"],
    );
    says("tab", String(found[0]?.message));
    says("tab-help", String(found[0]?.hint));
    assert.equal(blocked(text.replace("\t", "    ")), "001110");
  });
});

/** An operator or function of another language, its position, the fix from the help, and its meaning. */
const operators: readonly (readonly [when: string, at: string, fix: string, means: string])[] = [
  ["not input.n > 5", "not", "!(input.n > 5)", "110001"],
  ["not (input.n > 5 || input.s == 'abc')", "not", "!(input.n > 5 || input.s == 'abc')", "110000"],
  ["not input.s.contains('a')", "not", "!input.s.contains('a')", "011010"],
  ["input.s not in limits.names", "not in", "!(input.s in limits.names)", "011111"],
  ["input.n > 5 and input.n < 9", "and", "input.n > 5 && input.n < 9", "001100"],
  ["input.n > 8 OR input.s == 'eve'", "OR", "input.n > 8 || input.s == 'eve'", "010010"],
  ["input.n is 5", "is", "input.n == 5", "000001"],
  ["input.n is not 5", "is not", "input.n != 5", "111110"],
  ["input.n = 5", "=", "input.n == 5", "000001"],
  ["input.n === 5", "===", "input.n == 5", "000001"],
  ["input.n !== 5", "!==", "input.n != 5", "111110"],
  ["input.n <> 5", "<>", "input.n != 5", "111110"],
  ["input.n => 6", "=>", "input.n >= 6", "001110"],
  ["input.n =< 5", "=<", "input.n <= 5", "110001"],
  ["input.n > 5 & input.n < 9", "&", "input.n > 5 && input.n < 9", "001100"],
  ["len(input.s) > 3", "len", "size(input.s) > 3", "100110"],
  ["length(input.s) > 3", "length", "size(input.s) > 3", "100110"],
  ["input.s.length > 3", "length", "size(input.s) > 3", "100110"],
  ["input.s.length() > 3", "length", "size(input.s) > 3", "100110"],
  ["input.s.toLowerCase() == 'eve'", "toLowerCase", "input.s.lowerAscii() == 'eve'", "010000"],
  ["input.n < 9 if input.n > 5 else input.s == 'eve'", "if", "input.n > 5 ? input.n < 9 : input.s == 'eve'", "011100"],
  [
    "if input.n > 5 then input.n < 9 else input.s == 'eve'",
    "if",
    "input.n > 5 ? input.n < 9 : input.s == 'eve'",
    "011100",
  ],
  ["input.n > 5 ? input.n < 9", '"', "input.n > 5 ? input.n < 9 : false", "001100"],
];

suite("operators and functions of other languages", { tags: ["first-use-7"] }, () => {
  for (const [when, at, fix, means] of operators) {
    test(`the error for ${when} shows what to write instead`, () => {
      const found = diagnostics(conditionText(when));
      assert.deepEqual(
        found.map((each) => marked(each)),
        [at],
      );
      const { message, hint = "" } = found[0] ?? assert.fail(when);
      says(when, `${message}; help: ${hint}`);
      const code = /`(.*)`/s.exec(hint)?.[1] ?? assert.fail(hint);
      assert.ok(code === "test ? yes : no" || fix.includes(code), "the fix is in the help");
      assert.equal(blocked(conditionText(fix)), means);
    });
  }

  test("the error for a constant or a default of another language shows what to write instead", () => {
    const hint = (when: string): string | undefined => diagnostics(conditionText(when)).at(-1)?.hint;
    assert.equal(hint("input.any == None"), "write `null`");
    assert.equal(hint("input.n > 1 == True"), "write `true`");
    says("default-of-another-language", String(hint("(input.t ?? 'x') == 'y'")));
    assert.equal(blocked(conditionText("input.?t.orValue('y') == 'y'")), "111111");
  });

  control("positive control: `not` can still be the name of a `let:`, and `and` a text", () => {
    const text = contractText({
      let: "{ not: input.n > 5 }",
      rules: rule("not || input.s == 'and'"),
    });
    assert.equal(blocked(text), "001110");
  });
});

suite("a file that is made to be slow to read", { tags: ["attack-12.i-1"] }, () => {
  const size = 200_000;
  /** Processor time, because other processes may delay this one. */
  const msOf = (work: () => unknown): number => {
    const from = process.cpuUsage();
    work();
    return process.cpuUsage(from).user / 1000;
  };
  const texts: Readonly<Record<string, string>> = {
    "spaces inside a condition": `when: a${" ".repeat(size)}x`,
    "quotes that are not closed": `x: { when: ${"'\\".repeat(size / 2)} }`,
    "blanks before a line separator": `${" ".repeat(size)}${"- ".repeat(size)}\u2028${" ".repeat(size)}x`,
    "maps in maps": `x: ${"{ a: ".repeat(size / 10)}${"}".repeat(size / 10)}`,
  };
  for (const [name, text] of Object.entries(texts)) {
    test(`a file with ${name} takes less than 10 seconds of the processor`, () => {
      const ms = msOf(() => findSlips({ name: "x", text }));
      assert.ok(ms < 10_000, `took ${ms} ms`);
    });
  }

  test("a file with deeply nested maps is an error and does not crash the compiler", () => {
    const [found] = diagnostics(texts["maps in maps"] ?? "");
    assert.equal(found?.message, "nested too deeply");
  });

  control("positive control: a pattern with backtracking is slower on a tenth of the text", () => {
    const spaces = `a${" ".repeat(size / 10)}x`;
    const slow = msOf(() => /^(.*?)\s*$/.exec(spaces));
    const fast = msOf(() => findSlips({ name: "x", text: `when: a${" ".repeat(size)}x` }));
    assert.ok(slow > fast, `${slow} ms and ${fast} ms`);
  });
});
