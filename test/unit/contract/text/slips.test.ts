/**
 * Goal: an error about YAML or about an operator of another language shows the condition that its author meant.
 * Method: a table of slips with message, help and place; then the help's text is put into the file, which must compile, and
 * must decide as the author meant. The positive control follows the advice that was given before.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { findSlips } from "../../../../packages/svc-gate/src/contract/text/yaml-slips.ts";
import {
  conditionText,
  contractText,
  compile,
  diagnostics,
  judge,
  marked,
  place,
  snapshot,
} from "../../../support/contract-kit.ts";

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

/** For which of these calls does the rule BLOCK? */
const calls: readonly (readonly [n: number, s: string])[] = [
  [1, "alice"],
  [1, "eve"],
  [6, "#x"],
  [6, "a #x"],
  [9, "it's"],
  [5, "abc"],
];

function blocked(text: string): string {
  const force = compile(text);
  return calls
    .map(([n, s]) => (judge(force, { platform: snapshot, input: { n, s } }).verdict === "BLOCK" ? "1" : "0"))
    .join("");
}

const readAs = (character: string, what: string): string =>
  `YAML reads a value that begins with \`${character}\` as ${what}`;
const aKey = "YAML reads `: ` inside a value as a key and its value";
const braces = (mark: string): string => `in a map in braces, YAML ends the value at \`${mark}\``;

/** A condition without quotes, the error in lines and in braces (undefined: it is read as it is written), what it means. */
const conditions: readonly (readonly [
  when: string,
  lines: string | undefined,
  braces: string | undefined,
  means: string,
])[] = [
  ["!(input.s in limits.names)", readAs("!", "a tag"), readAs("!", "a tag"), "011111"],
  ["!input.s.contains('a')", readAs("!", "a tag"), readAs("!", "a tag"), "011010"],
  ["input.n > 5 ? input.n < 9 : input.s == 'eve'", aKey, aKey, "011100"],
  ['["#x", "it\'s"].exists(x, x == input.s)', readAs("[", "a list"), readAs("[", "a list"), "001010"],
  ['{"a": input.s}.a == "eve"', readAs("{", "a map"), readAs("{", "a map"), "010000"],
  [
    '"eve" == input.s || input.n > 8',
    "YAML ends the value at the quote that closes the first text",
    "YAML ends the value at the quote that closes the first text",
    "010010",
  ],
  [
    'input.s == "a #x"',
    "YAML reads ` #` and everything after it as a comment",
    "YAML reads ` #` and everything after it as a comment",
    "000100",
  ],
  ['input.s == "#x"', undefined, undefined, "001000"],
  ['input.s.matches("^(?:[a-z]+)$")', undefined, braces("["), "110001"],
  ['input.s in ["eve", "abc"]', undefined, braces("["), "010001"],
  ["[input.n].exists(x, x > 8)", readAs("[", "a list"), readAs("[", "a list"), "000010"],
];

suite("a condition without the quotes that it needs", { tags: ["first-use-7"] }, () => {
  for (const [what, make, at] of [
    ["in lines", inLines, 1],
    ["in braces", inBraces, 2],
  ] as const) {
    for (const row of conditions) {
      const [when, , , means] = row;
      const message = row[at];
      test(`the condition ${when} ${what} compiles, or its error shows the right quotes`, () => {
        const text = make(when);
        const found = diagnostics(text);
        if (message === undefined) return assert.equal(blocked(text), means);
        const fixed = `when: '${when.replaceAll("'", "''")}'`;
        assert.deepEqual(
          found.map((each) => [each.code, each.message, each.hint, marked(each), place(each)]),
          [
            [
              "yaml",
              message,
              `put the condition in quotes: \`${fixed}\``,
              when,
              what === "in lines" ? "19:11" : "17:29",
            ],
          ],
        );
        assert.equal(blocked(helped(text, `when: ${when}`, found[0]?.hint)), means);
      });
    }
  }

  test("positive control: the old advice, to remove the tag, gives the opposite condition", () => {
    assert.equal(blocked(inLines("!(input.s in limits.names)".slice(1))), "100000");
  });

  test("the compiler also reports the other errors of the file, at their own places", () => {
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

  test("the error shows the fix in every place of a contract that holds a condition", () => {
    const places: readonly (readonly [text: string, written: string])[] = [
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
    for (const [text, written] of places) {
      const found = diagnostics(text);
      assert.deepEqual(
        found.map(({ message }) => message),
        [readAs("!", "a tag")],
        text,
      );
      assert.deepEqual(diagnostics(helped(text, written, found[0]?.hint)), [], text);
    }
  });

  test("a condition that begins with a character such as `*` gets no advice to use quotes", () => {
    for (const first of ["*", "&", "@", "%", "|", ">"]) {
      for (const make of [inLines, inBraces]) {
        const [found] = diagnostics(make(`${first} 5`));
        assert.equal(found?.message, `a condition cannot begin with \`${first}\``);
        assert.equal(found.hint, "begin it with a value, such as `input.amount`");
      }
    }
    assert.equal(diagnostics(inLines("`n` > 5"))[0]?.message, "a condition cannot begin with a backtick");
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

/** The file with the help's text in the place of what was written. */
function helped(text: string, written: string, hint: string | undefined): string {
  const fix = /`(.*)`$/s.exec(hint ?? "")?.[1];
  assert.ok(fix !== undefined && text.includes(written), String(hint));
  return text.replace(written, () => fix);
}

suite("a reason without the quotes that it needs", { tags: ["first-use-7"] }, () => {
  const reasons: readonly (readonly [reason: string, lines: string | undefined, braces: string, says: string])[] = [
    ["too much: {input.n}", aKey, aKey, "too much: 6"],
    ["{input.n} USD", readAs("{", "a map"), readAs("{", "a map"), "6 USD"],
    ["{input.n}", readAs("{", "a map"), readAs("{", "a map"), "6"],
    ["[it's] late", readAs("[", "a list"), readAs("[", "a list"), "[it's] late"],
    ["> 5 is much", readAs(">", "a block of lines"), readAs(">", "a block of lines"), "> 5 is much"],
    ["@alice decides", ...twice("a YAML value without quotes cannot begin with `@`"), "@alice decides"],
    ["`t` is off", ...twice("a YAML value without quotes cannot begin with a backtick"), "`t` is off"],
    ["%5 is off", ...twice("a YAML value without quotes cannot begin with `%`"), "%5 is off"],
    ["&c is off", readAs("&", "an anchor"), readAs("&", "an anchor"), "&c is off"],
    ["*c is off", readAs("*", "an alias"), readAs("*", "an alias"), "*c is off"],
    ['"late" is late', ...twice("YAML ends the value at the quote that closes the first text"), '"late" is late'],
    ["over, sorry", undefined, braces(","), "over, sorry"],
    ["{{{input.n}}} of it", readAs("{", "a map"), readAs("{", "a map"), "{6} of it"],
    ["is {input.n}", undefined, braces("{"), "is 6"],
  ];
  for (const [make, at] of [
    [inLines, 1],
    [inBraces, 2],
  ] as const) {
    for (const row of reasons) {
      const [reason, , , says] = row;
      test(`the reason ${reason} ${at === 1 ? "in lines" : "in braces"} compiles, or its error shows the right quotes`, () => {
        const text = make("input.n > 5", reason);
        const found = diagnostics(text);
        const message = row[at];
        const fixed = `reason: '${reason.replaceAll("'", "''")}'`;
        assert.deepEqual(
          found.map((each) => [each.message, each.hint, marked(each)]),
          message === undefined ? [] : [[message, `put the reason in quotes: \`${fixed}\``, reason]],
        );
        const mended = message === undefined ? text : helped(text, `reason: ${reason}`, found[0]?.hint);
        const decision = judge(compile(mended), { platform: snapshot, input: { n: 6, s: "x" } });
        assert.equal(decision.reason, `Svc: ${says}`);
      });
    }
  }
});

function twice(message: string): readonly [string, string] {
  return [message, message];
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
        found.map((each) => [each.message, each.hint, place(each)]),
        [["`when:` has no space after its colon, so YAML does not read it as a key", "write `when: input.n > 5`", at]],
      );
      assert.equal(blocked(helped(text, "when:input.n > 5", found[0]?.hint)), "001110");
    }
  });

  test("a tab for indentation is reported as one error", () => {
    const text = inLines("input.n > 5").replace("    on: t\n    when", "\ton: t\n    when");
    const found = diagnostics(text);
    assert.deepEqual(
      found.map((each) => [each.message, each.hint, place(each)]),
      [["YAML does not allow a tab for indentation", "indent the line with spaces", "18:1"]],
    );
    assert.equal(blocked(text.replace("\t", "    ")), "001110");
  });
});

/** An operator or a function of another language; the help, which must be in the fix; the fix; what it means. */
const operators: readonly (readonly [
  when: string,
  at: string,
  message: string,
  help: string,
  fix: string,
  means: string,
])[] = [
  [
    "not input.n > 5",
    "not",
    "`not` has no meaning in a condition",
    "write `!(input.n > 5)`",
    "!(input.n > 5)",
    "110001",
  ],
  [
    "not (input.n > 5 || input.s == 'abc')",
    "not",
    "`not` has no meaning in a condition",
    "write `!(input.n > 5 || input.s == 'abc')`",
    "!(input.n > 5 || input.s == 'abc')",
    "110000",
  ],
  [
    "not input.s.contains('a')",
    "not",
    "`not` has no meaning in a condition",
    "write `!input.s.contains('a')`",
    "!input.s.contains('a')",
    "011010",
  ],
  [
    "input.s not in limits.names",
    "not in",
    "`not in` has no meaning in a condition",
    "write `!(input.s in limits.names)`",
    "!(input.s in limits.names)",
    "011111",
  ],
  [
    "input.n > 5 and input.n < 9",
    "and",
    "`and` has no meaning in a condition",
    "write `&&`",
    "input.n > 5 && input.n < 9",
    "001100",
  ],
  [
    "input.n > 8 OR input.s == 'eve'",
    "OR",
    "`OR` has no meaning in a condition",
    "write `||`",
    "input.n > 8 || input.s == 'eve'",
    "010010",
  ],
  ["input.n is 5", "is", "`is` has no meaning in a condition", "write `==`", "input.n == 5", "000001"],
  ["input.n is not 5", "is not", "`is not` has no meaning in a condition", "write `!=`", "input.n != 5", "111110"],
  ["input.n = 5", "=", '"=" has no meaning in a condition', "compare with `==`", "input.n == 5", "000001"],
  ["input.n === 5", "===", '"===" has no meaning in a condition', "compare with `==`", "input.n == 5", "000001"],
  ["input.n !== 5", "!==", '"!==" has no meaning in a condition', "write `!=`", "input.n != 5", "111110"],
  ["input.n <> 5", "<>", '"<>" has no meaning in a condition', "write `!=`", "input.n != 5", "111110"],
  ["input.n => 6", "=>", '"=>" has no meaning in a condition', "write `>=`", "input.n >= 6", "001110"],
  ["input.n =< 5", "=<", '"=<" has no meaning in a condition', "write `<=`", "input.n <= 5", "110001"],
  [
    "input.n > 5 & input.n < 9",
    "&",
    '"&" has no meaning in a condition',
    "write `&&`",
    "input.n > 5 && input.n < 9",
    "001100",
  ],
  ["len(input.s) > 3", "len", "there is no function `len`", "write `size(input.s)`", "size(input.s) > 3", "100110"],
  [
    "length(input.s) > 3",
    "length",
    "there is no function `length`",
    "write `size(input.s)`",
    "size(input.s) > 3",
    "100110",
  ],
  ["input.s.length > 3", "length", "a text has no members", "write `size(input.s)`", "size(input.s) > 3", "100110"],
  [
    "input.s.length() > 3",
    "length",
    "there is no function `length`",
    "write `size(input.s)`",
    "size(input.s) > 3",
    "100110",
  ],
  [
    "input.s.toLowerCase() == 'eve'",
    "toLowerCase",
    "there is no function `toLowerCase`",
    "write `input.s.lowerAscii()`",
    "input.s.lowerAscii() == 'eve'",
    "010000",
  ],
  [
    "input.n < 9 if input.n > 5 else input.s == 'eve'",
    "if",
    "expected the end of the expression, found `if`",
    "a choice is written `test ? yes : no`",
    "input.n > 5 ? input.n < 9 : input.s == 'eve'",
    "011100",
  ],
  [
    "if input.n > 5 then input.n < 9 else input.s == 'eve'",
    "if",
    "expected a value, found `if`",
    "a choice is written `test ? yes : no`",
    "input.n > 5 ? input.n < 9 : input.s == 'eve'",
    "011100",
  ],
  [
    "input.n > 5 ? input.n < 9",
    '"',
    "expected `:` and the other value, the expression ends",
    "a choice is written `test ? yes : no`",
    "input.n > 5 ? input.n < 9 : false",
    "001100",
  ],
];

suite("operators and functions of other languages", { tags: ["first-use-7"] }, () => {
  for (const [when, at, message, help, fix, means] of operators) {
    test(`the error for ${when} shows what to write instead`, () => {
      const found = diagnostics(conditionText(when));
      assert.deepEqual(
        found.map((each) => [each.message, each.hint, marked(each)]),
        [[message, help, at]],
      );
      const code = /`(.*)`/s.exec(help)?.[1] ?? "";
      assert.ok(code === "test ? yes : no" || fix.includes(code), "the fix is in the help");
      assert.equal(blocked(conditionText(fix)), means);
    });
  }

  test("the error for a constant or a default of another language shows what to write instead", () => {
    const hint = (when: string): string | undefined => diagnostics(conditionText(when)).at(-1)?.hint;
    assert.equal(hint("input.any == None"), "write `null`");
    assert.equal(hint("input.n > 1 == True"), "write `true`");
    assert.equal(hint("(input.t ?? 'x') == 'y'"), "give a default: `input.?name.orValue(other)`");
    assert.equal(blocked(conditionText("input.?t.orValue('y') == 'y'")), "111111");
  });

  test("positive control: `not` can still be the name of a `let:`, and `and` a text", () => {
    const text = contractText({
      let: "{ not: input.n > 5 }",
      rules: rule("not || input.s == 'and'"),
    });
    assert.equal(blocked(text), "001110");
  });
});

suite("a file that is made to be slow to read", { tags: ["attack-12.i-1"] }, () => {
  const size = 200_000;
  const msOf = (work: () => unknown): number => {
    const from = performance.now();
    work();
    return performance.now() - from;
  };
  const texts: Readonly<Record<string, string>> = {
    "spaces inside a condition": `when: a${" ".repeat(size)}x`,
    "quotes that are not closed": `x: { when: ${"'\\".repeat(size / 2)} }`,
    "blanks before a line separator": `${" ".repeat(size)}${"- ".repeat(size)}\u2028${" ".repeat(size)}x`,
    "maps in maps": `x: ${"{ a: ".repeat(size / 10)}${"}".repeat(size / 10)}`,
  };
  for (const [name, text] of Object.entries(texts)) {
    test(`a file with ${name} is read within 10 seconds`, () => {
      const ms = msOf(() => findSlips({ name: "x", text }));
      assert.ok(ms < 10_000, `took ${ms} ms`);
    });
  }

  test("a file with deeply nested maps is an error and does not crash the compiler", () => {
    const [found] = diagnostics(texts["maps in maps"] ?? "");
    assert.equal(found?.message, "nested too deeply");
  });

  test("positive control: a pattern with backtracking is slower on a tenth of the text", () => {
    const spaces = `a${" ".repeat(size / 10)}x`;
    const slow = msOf(() => /^(.*?)\s*$/.exec(spaces));
    const fast = msOf(() => findSlips({ name: "x", text: `when: a${" ".repeat(size)}x` }));
    assert.ok(slow > fast, `${slow} ms and ${fast} ms`);
  });
});
