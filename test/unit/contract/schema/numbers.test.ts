/**
 * Goal: with `numbers: double`, a call is refused if another program may read a number of its input as another one; and
 * a person sees such a number marked. Method: a table of numbers, each with the number that a program with IEEE doubles
 * reads, in members at several paths. Positive controls: two wrong ways to compare, which the table notices, and the
 * same calls under the contract without the line.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { cardLines } from "../../../../packages/gate/src/cli/approvals/card.ts";
import { Decimal, misreadAs, parseNumber, readJson } from "../../../../packages/core/src/wire/mod.ts";
import { compile, contractText, judge, marked, diagnostics } from "../../../support/contract-kit.ts";
import { control } from "../../../support/controls/control.ts";
import { randomRuns } from "../../../support/random-test.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** Each number with the one that a double is printed as; undefined for the same value. */
const table: readonly (readonly [text: string, read: string | undefined])[] = [
  ["0.1", undefined],
  ["1e2", undefined],
  ["50.0", undefined],
  ["-0", undefined],
  ["-0.0", undefined],
  ["1E+2", undefined],
  ["0.10000000000000000", undefined],
  ["9007199254740992", undefined],
  ["9007199254740994", undefined],
  ["123456789012345680000", undefined],
  ["1e23", undefined],
  ["5e-324", undefined],
  ["1.7976931348623157e308", undefined],
  ["999999999999999", undefined],
  ["9007199254740993", "9007199254740992"],
  ["-9007199254740993", "-9007199254740992"],
  ["0.1000000000000000055", "0.1"],
  ["0.30000000000000000001", "0.3"],
  ["36893488147419103232", "36893488147419103000"],
  ["1e400", "Infinity"],
  ["-1e309", "-Infinity"],
  ["1e-400", "0"],
  ["3e-324", "5e-324"],
];

function numberOf(text: string): number | Decimal {
  const number = parseNumber(text);
  return typeof number === "number" || number instanceof Decimal ? number : assert.fail(number.problem);
}

const strict = contractText({ rules: "[]" }).replace("    otherwise:", "    numbers: double\n    otherwise:");
const free = contractText({ rules: "[]" });

/** Inputs with the number at another path, and the name of that path in the reason. */
const paths: readonly (readonly [input: (text: string) => string, name: string])[] = [
  [(text) => `{"n": ${text}, "s": ""}`, "input.n"],
  [(text) => `{"n": 1, "s": "", "numbers": [0, ${text}]}`, "input.numbers[1]"],
  [(text) => `{"n": 1, "s": "", "box": {"x": ${text}}}`, "input.box.x"],
  [(text) => `{"n": 1, "s": "", "any": [[{"a b": ${text}}]]}`, 'input.any[0][0]["a b"]'],
];

suite("R21: numbers that programs read as doubles", () => {
  test("each number is reported with the number that programs may read, and only if its value changes", () => {
    for (const [text, read] of table) assert.equal(misreadAs(numberOf(text)), read, text);
  });

  test("a double, printed in any number of digits that JavaScript offers, is never reported", (t) => {
    const double = fc.double({ noNaN: true, noDefaultInfinity: true });
    const property = fc.property(double, (number) => {
      assert.equal(misreadAs(numberOf(String(number))), undefined);
      assert.equal(misreadAs(numberOf(number.toExponential())), undefined);
    });
    fc.assert(property, randomRuns(t, 2000));
  });

  control("positive control: the table notices a comparison of texts, and one of two doubles", () => {
    const byText = (text: string): boolean => String(Number(text)) !== text;
    const byDouble = (text: string): boolean => Number(text) !== Number(String(Number(text)));
    for (const wrong of [byText, byDouble])
      assert.ok(table.some(([text, read]) => wrong(text) !== (read !== undefined)));
  });
});

suite("R21: numbers: double", () => {
  test("a call is refused wherever its input has such a number, and the reason names the member and both values", () => {
    const policySet = compile(strict);
    for (const [text, read] of table) {
      for (const [input, name] of paths) {
        const { verdict, rule, reason, final } = judge(policySet, { input: input(text) });
        if (read === undefined) assert.equal(verdict, "ALLOW", `${name} ${text}`);
        else {
          assert.deepEqual([verdict, rule, final], ["BLOCK", "c.$input", true]);
          assert.ok(reason.startsWith(`Svc: ${name} is ${text},`) && reason.endsWith(` ${read}`), reason);
        }
      }
    }
    says("misread", judge(policySet, { input: '{"n": 9007199254740993, "s": ""}' }).reason);
  });

  test("what the schema refuses is named before a number that programs read as another one", () => {
    const { reason } = judge(compile(strict), { input: '{"n": 9007199254740993, "s": 1}' });
    says("schema-first", reason);
  });

  control("positive control: without the line, the same calls are allowed", () => {
    const policySet = compile(free);
    for (const [text] of table)
      for (const [input] of paths) assert.equal(judge(policySet, { input: input(text) }).verdict, "ALLOW", text);
  });

  test("a tool without the line checks its input with the validator of its schema alone", () => {
    const names = [free, strict].map((text) => String(compile(text).tools.get("t")?.routes[0]?.validateInput));
    assert.notEqual(names[0], names[1]);
    assert.ok(!names[0]?.includes("misread"), "the validator of the schema looks for such numbers");
  });

  test("if two contracts route a tool, one of them is enough", () => {
    for (const texts of [
      [strict, contractText({ rules: "[]" }, "d")],
      [contractText({ rules: "[]" }, "d"), strict],
    ])
      assert.equal(judge(compile(...texts), { input: '{"n": 1e400, "s": ""}' }).rule, "c.$input");
  });

  test("another value of `numbers` is an error at its position", () => {
    for (const value of ["exact", "2", "true"]) {
      const [problem, ...others] = diagnostics(strict.replace("numbers: double", `numbers: ${value}`));
      assert.ok(problem);
      assert.deepEqual([problem.code, marked(problem), others], ["numbers", value, []]);
      says("not-double", `${problem.message}: ${problem.hint ?? ""}`);
    }
  });
});

suite("the card of an approval", () => {
  const shown = (text: string): string => {
    const read = readJson(`{"n": ${text}}`);
    return read.ok ? cardLines(read.value.members).join("\n") : assert.fail(read.problem.sentence);
  };

  test("each number has its characters, and a mark if programs may read another one", () => {
    for (const [text, read] of table) {
      const mark = read === undefined ? "" : ` (programs may read this as ${read})`;
      assert.equal(shown(text), `  "n": ${text}${mark}`);
    }
  });
});
