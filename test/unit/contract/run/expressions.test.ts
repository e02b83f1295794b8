/**
 * Goal: expressions follow CEL's grammar and exact arithmetic. Method: tables of expressions with their values;
 * precedence is shown by brackets that change nothing; arithmetic is compared with naive fractions on random operands.
 * CEL's own cases are in cel-conformance.test.ts.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { compileExpression, functions } from "../../../../packages/readers/src/ir.ts";
import { Decimal, readJson, type Json } from "../../../../packages/core/src/wire/mod.ts";
import { control } from "../../../support/controls/control.ts";
import { sentencesOf } from "../../../support/sentences.ts";
import { randomRuns } from "../../../support/random-test.ts";

const says = sentencesOf(import.meta.filename);

/** `npm test` runs a part of the random cases. */
const share = Number(process.env["PROPERTY_SHARE"] ?? 1);

function bound(json: string): ReadonlyMap<string, Json> {
  const read = readJson(json);
  if (!read.ok) assert.fail(read.problem.sentence);
  return read.value.members;
}

/** Returns an expression's exact value, its first problem or its error. */
function value(text: string, bindings = "{}"): string {
  const compiled = compileExpression(text, bound(bindings));
  if (!compiled.ok) return `${compiled.problem[0]?.code}: ${compiled.problem[0]?.message}`;
  const result = compiled.value.evaluate();
  return result.ok ? result.value.exact : `error: ${result.problem}`;
}

const values: readonly (readonly [text: string, value: string])[] = [
  ["1 + 2 * 3", "7"],
  ["(1 + 2) * 3", "9"],
  ["7 / 2", "3.5"],
  ["1 / 3", "1/3"],
  ["1 / 3 * 3 == 1", "true"],
  ["0.1 + 0.2 == 0.3", "true"],
  ["9007199254740993 - 9007199254740992", "1"],
  ["-7 % 3", "-1"],
  ["7 % -3", "1"],
  ["5.5 % 2", "1.5"],
  ["- - 5", "5"],
  ["0x1F + 0xa", "41"],
  ["007", "7"],
  [".5 + 1e-1", "0.6"],
  ["1e400 * 1e400 / 1e400 == 1e400", "true"],
  ["!true || true", "true"],
  ["true ? 1 : true ? 2 : 3", "1"],
  ["false ? 1 : false ? 2 : 3", "3"],
  ["true || false && false", "true"],
  ["1 < 2 == true", "true"],
  ["1 in [1, 2] && 'a' in {'a': 1}", "true"],
  ["!('b' in {'a': 1})", "true"],
  ['"a" + "b" == \'ab\'', "true"],
  ["[1] + [2, 3]", "[1, 2, 3]"],
  ["[] == []", "true"],
  ["[1.0, 2] == [1, 2.00]", "true"],
  ["{'a': 1, 'b': [2]} == {'b': [2.0], 'a': 1}", "true"],
  ["[1, 2, 3][1]", "2"],
  ["[1, 2, 3][3]", "error"],
  ["[1, 2, 3][-1]", "error"],
  ["[1, 2][0.5]", "error"],
  ["[1, 2][?5].orValue(9)", "9"],
  ["{'a': 1}['a'] + {'a': 1}.a", "2"],
  ["{'a': {'b': 2}}.?a.?b.orValue(0)", "2"],
  ["[1, 2, 3].filter(x, x > 1).map(x, x * 2)", "[4, 6]"],
  ["[1, 2, 3].map(x, x > 1, x * 2)", "[4, 6]"],
  ["[1, 2, 3].exists_one(x, x > 2)", "true"],
  ["[[1], [2, 3]].exists(x, x.all(y, y > 1))", "true"],
  ["{'a': 1, 'b': 2}.map(k, k)", '["a", "b"]'],
  ["[].all(x, false)", "true"],
  [String.raw`"\x41\u00e9\U0001F600\101\n\"\'\\\?"`, '"Aé😀A\\n\\"\'\\\\?"'],
  [String.raw`r"\d\n" == "\\d\\n"`, "true"],
  ['"""a\n"b"\n""" == "a\\n\\"b\\"\\n"', "true"],
  ["'''it's''' == \"it's\"", "true"],
  ["'a' < 'b' && 'B' < 'a' && '\\uFFFD' < '\\U0001F600'", "true"],
  ["size('😀é') == 2", "true"],
  ["duration('1h30m') == duration('90m')", "true"],
  ["duration('-1.5s')", "duration(-1.5)"],
  ["timestamp('2026-01-31T12:00:00+02:00') == timestamp('2026-01-31T10:00:00Z')", "true"],
  ["timestamp('2026-03-01T00:00:00Z') - timestamp('2026-02-28T00:00:00Z') == duration('24h')", "true"],
  ["duration('1s') + timestamp(0) - duration('1ms')", "timestamp(0.999)"],
  ["1 // a comment\n + 1", "2"],
  ["{'if': 1}.`if`", "1"],
  ["{'a-b/c.d e': 1}.`a-b/c.d e`", "1"],
  ["1 / 0", "error"],
  ["1 % 0", "error"],
  ["1 / (0.5 - 1 / 2)", "error"],
  ["1e400 * 1e400 * 1e400 * 1e400", "error"],
  ["true || 1 / 0 > 0", "true"],
  ["1 / 0 > 0 || true", "error"],
  ["false && 1 / 0 > 0", "false"],
  ["1 / 0 > 0 && false", "error"],
  ["true ? 1 : 1 / 0", "1"],
  ["[0, 1].exists(x, 1 / x > 0)", "error"],
  ["[1, 0].exists(x, 1 / x > 0)", "true"],
  ["[1, 0].all(x, 1 / x > 0)", "error"],
  ["{'a': 1 / 0}.a", "error"],
  ["timestamp('2026-02-30T00:00:00Z')", "literal"],
  ["timestamp('2026-01-01T00:00:60Z')", "literal"],
  ["duration('10')", "literal"],
];

suite("the values of expressions", { tags: ["contract.language"] }, () => {
  test("each expression has the expected value or error", () => {
    for (const [text, expected] of values) {
      const found = value(text);
      if (expected !== "error" && expected !== "literal") assert.equal(found, expected, text);
      else {
        assert.ok(found.startsWith(`${expected}: `), text);
        says(text, found);
      }
    }
  });

  test("brackets that follow the grammar's precedence do not change a value", () => {
    const pairs = [
      ["a || b && c", "a || (b && c)"],
      ["a && !b", "a && (!b)"],
      ["a ? b : c || d", "a ? b : (c || d)"],
      ["x + y * z", "x + (y * z)"],
      ["x - y - z", "(x - y) - z"],
      ["x / y / z", "(x / y) / z"],
      ["x - y + z", "(x - y) + z"],
      ["-x * y", "(-x) * y"],
      ["x < y == a", "(x < y) == a"],
      ["x + y < z", "(x + y) < z"],
      ["a || b ? x : y", "(a || b) ? x : y"],
    ] as const;
    const rows = [0, 1, 2, 3, 4, 5, 6, 7].map((bits) => [bits & 1, bits & 2, bits & 4].map(Boolean));
    for (const [bare, bracketed] of pairs) {
      for (const [a, b, c] of rows) {
        const bindings = JSON.stringify({ a, b, c, d: a, x: 7, y: 2, z: 5 });
        assert.equal(value(bare, bindings), value(bracketed, bindings), `${bare} with ${bindings}`);
        assert.ok(!/:/.test(value(bare, bindings)), bare);
      }
    }
  });
});

test("every example of every function has the value that it states", { tags: ["contract.language"] }, async () => {
  await Promise.all(functions.map(async ({ load }) => load?.()));
  for (const { name, examples, bindCommands } of functions) {
    // It needs a table of commands: test/unit/commands has its examples.
    if (bindCommands !== undefined) continue;
    assert.ok(examples.length > 0, `${name} has no example`);
    for (const [text, shown] of examples) {
      const compiled = compileExpression(text);
      assert.ok(compiled.ok, text);
      const result = compiled.value.evaluate();
      assert.equal(result.ok && result.value.shown, shown, text);
    }
  }
});

suite("exact arithmetic compared with fractions", () => {
  type Naive = readonly [bigint, bigint];
  const decimal = fc
    .tuple(fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }), fc.integer({ min: -12, max: 12 }))
    .map(([digits, power]): readonly [string, Naive] => [
      `${digits}e${power}`,
      power < 0 ? [digits, 10n ** BigInt(-power)] : [digits * 10n ** BigInt(power), 1n],
    ]);
  const operators = ["+", "-", "*", "/", "%", "<", "<=", "==", "!=", ">", ">="] as const;

  function lowest([n, d]: Naive): string {
    let [a, b] = [n < 0n ? -n : n, d < 0n ? -d : d];
    while (b !== 0n) [a, b] = [b, a % b];
    const sign = d < 0n ? -1n : 1n;
    return `${(sign * n) / (a || 1n)}/${(sign * d) / (a || 1n)}`;
  }

  function naive(operator: (typeof operators)[number], [a, b]: Naive, [c, d]: Naive): string {
    const difference = a * d - c * b;
    switch (operator) {
      case "+":
        return lowest([a * d + c * b, b * d]);
      case "-":
        return lowest([difference, b * d]);
      case "*":
        return lowest([a * c, b * d]);
      case "/":
        return c === 0n ? "error" : lowest([a * d, b * c]);
      case "%":
        return c === 0n ? "error" : lowest([(a * d) % (c * b), b * d]);
      case "<":
        return String(difference < 0n);
      case "<=":
        return String(difference <= 0n);
      case "==":
        return String(difference === 0n);
      case "!=":
        return String(difference !== 0n);
      case ">":
        return String(difference > 0n);
      case ">=":
        return String(difference >= 0n);
      default:
        return operator satisfies never;
    }
  }

  /** Returns the engine's value as a fraction in lowest terms. */
  function engine(text: string): string {
    const exact = value(text);
    if (exact.startsWith("error")) return "error";
    const fraction = /^(-?\d+)\/(\d+)$/.exec(exact);
    if (fraction !== null) return lowest([BigInt(fraction[1] ?? ""), BigInt(fraction[2] ?? "")]);
    const [whole = "", decimals = ""] = exact.split(".");
    return /^-?\d/.test(exact) ? lowest([BigInt(whole + decimals), 10n ** BigInt(decimals.length)]) : exact;
  }

  test("every operator gives the same result on decimals as on fractions", (t) => {
    fc.assert(
      fc.property(decimal, decimal, fc.constantFrom(...operators), ([a, x], [b, y], operator) => {
        assert.equal(engine(`(${a}) ${operator} (${b})`), naive(operator, x, y));
      }),
      randomRuns(t, 3000 * share),
    );
  });

  test("addition is associative, and multiplication is distributive", (t) => {
    fc.assert(
      fc.property(decimal, decimal, decimal, ([a], [b], [c]) => {
        assert.equal(value(`(${a}) + (${b}) + (${c}) == (${a}) + ((${b}) + (${c}))`), "true");
        assert.equal(value(`((${a}) + (${b})) * (${c}) == (${a}) * (${c}) + (${b}) * (${c})`), "true");
      }),
      randomRuns(t, 500 * share),
    );
  });

  control("positive control: arithmetic with binary floating point is noticed", () => {
    assert.notEqual(String(0.1 + 0.2 === 0.3), naive("==", [3n, 10n], [3n, 10n]));
    assert.ok(new Decimal("0.1").coefficient === 1n);
  });
});

const broken: readonly string[] = [
  "",
  "1 +",
  "(1",
  "[1, 2",
  "1 2",
  "a.",
  "x ? 1",
  "x = 1",
  "x & y",
  "x # y",
  '"abc',
  '"a\nb"',
  String.raw`"\q"`,
  String.raw`"\ud800"`,
  "1u",
  "1.2.3",
  'b"x"',
  "for",
  "1 and 2",
  "x.in",
  "1 `in` [1]",
  "[1,,2] == [3,,4]",
  "(1 + ) == ( * 2)",
  "Type{a: 1}",
  "{?'a': 1}",
  "[1;2]",
];

test("the parser reports each syntax error once and continues after it", () => {
  for (const text of broken) {
    const compiled = compileExpression(text);
    const found = compiled.ok ? [] : compiled.problem.filter(({ code }) => code === "syntax" || code === "left-out");
    says(text, found.map(({ code, message }) => `${code}: ${message}`).join("\n"));
  }
});

test("no text makes the compiler throw, and no expression makes the engine fail", (t) => {
  const piece = fc.constantFrom(
    ...(
      "a b 1 0 'x' true null ( ) [ ] { } , . .? [? ? : + - * / % < == && || ! in has size map exists x " +
      'toString constructor __proto__ ` " \\'
    ).split(" "),
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(piece, { maxLength: 14 }).map((parts) => parts.join(" ")),
        fc.string({ unit: "binary", maxLength: 30 }),
      ),
      (text) => {
        const compiled = compileExpression(text, bound('{"a": [1], "b": {"c": "d"}}'));
        if (!compiled.ok) return assert.ok(compiled.problem.length > 0);
        const result = compiled.value.evaluate();
        assert.ok(result.ok || !result.problem.includes("the engine failed"), result.ok ? "" : result.problem);
      },
    ),
    randomRuns(t, 20_000 * share),
  );
});
