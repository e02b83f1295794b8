/**
 * Goal: the published subset of JSON Schema judges values exactly, and other schemas do not compile. Method: for each
 * keyword a value inside and one outside with the exact message, at the limit and one past it; then the static errors,
 * one line each.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compile, contractText, diagnostics, judge, problems } from "../../../support/contract-kit.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** The rule of a decision whose value the schema accepts. */
const taken = "c.$otherwise";

/** Returns a contract whose input has one member `v` of the schema. */
function withSchema(schema: string): string {
  return contractText({
    input: `{ type: object, additionalProperties: false, required: [v], properties: { v: ${schema} } }`,
  });
}

/** Returns "taken", or the refusal, for a value of `v` given as JSON. */
function verdict(schema: string, json: string): string {
  const decision = judge(compile(withSchema(schema)), { input: `{"v":${json}}` });
  assert.equal(decision.defect, undefined);
  return decision.rule === taken ? "taken" : decision.reason.replace(/^Svc: /, "");
}

const keywords: readonly (readonly [schema: string, inside: readonly string[], outside: readonly string[]])[] = [
  ["{ type: string }", ['"x"', '""'], ["1", "null"]],
  ["{ type: number }", ["1", "0.5", "-1e400"], ['"5000"', "true"]],
  ["{ type: integer }", ["1", "1.0", "10e-1", "-5e3"], ["1.5", "1e-1"]],
  ["{ type: boolean }", ["true", "false"], ["0", '"true"']],
  ['{ type: "null" }', ["null"], ["0"]],
  ["{ type: null }", ["null"], ["false"]],
  ["{ type: array }", ["[]", "[1, {}]"], ["{}"]],
  ["{ type: object, additionalProperties: true }", ["{}"], ["[]"]],
  ['{ type: [string, "null"] }', ['"x"', "null"], ["1"]],
  ["true", ["1", '"x"', "null", "{}"], []],
  ["{}", ["1", "[]"], []],
  ["{ type: number, minimum: 2 }", ["2", "2.0", "3"], ["1.99999999999999999999"]],
  ["{ type: number, maximum: 0.1 }", ["0.1", "0.10", "1e-1"], ["0.10000000000000000001"]],
  ["{ type: number, exclusiveMinimum: 0 }", ["1e-400"], ["0", "-0.0"]],
  ["{ type: number, exclusiveMaximum: 10 }", ["9.99"], ["10.0"]],
  ["{ type: number, multipleOf: 0.01 }", ["19.99", "0", "-0.01", "1e3"], ["0.015"]],
  ["{ type: number, multipleOf: 0.3 }", ["0.9", "3"], ["1"]],
  ["{ type: string, minLength: 2 }", ['"ab"', '"😀😀"'], ['"😀"', '""']],
  ["{ type: string, maxLength: 2 }", ['"😀😀"', '"e\u0301"'], ['"abc"', '"😀😀😀"']],
  ["{ type: string, minLength: 1000 }", [`"${"😀".repeat(1000)}"`], [`"${"😀".repeat(999)}"`]],
  ["{ type: string, pattern: b+ }", ['"abbc"'], ['"ac"']],
  ["{ type: string, pattern: '^[a-z]{2,4}$' }", ['"ab"'], ['"ab\\n"']],
  ["{ enum: [a, 1, null, true] }", ['"a"', "1.0", "null", "true"], ['"A"', '"1"']],
  ["{ enum: [[1, a], { x: 1 }] }", ['[1.0, "a"]', '{"x": 1}'], ['{"x": 2}']],
  ["{ const: USD }", ['"USD"'], ['"usd"']],
  ["{ const: 1.50 }", ["1.5"], ["1.51"]],
  ["{ const: a, enum: [a, b] }", ['"a"'], ['"b"']],
  ["{ const: a, enum: [b] }", [], ['"a"']],
  ["{ type: array, items: { type: number, minimum: 0 } }", ["[]", "[0, 1]"], ["[0, -1]"]],
  ["{ type: array, minItems: 1, maxItems: 2 }", ["[1]", "[1, 2]"], ["[]", "[1, 2, 3]"]],
  ["{ type: array, items: { type: number }, maxItems: 5, uniqueItems: true }", ["[1, 2]"], ["[1, 1.0]", "[10, 1e1]"]],
  ["{ type: array, items: { type: string }, maxItems: 5, uniqueItems: true }", ['["1", "true", "s1"]'], ['["a", "a"]']],
  ["{ type: array, items: { type: string }, uniqueItems: false }", ['["a", "a"]'], []],
  [
    "{ type: object, additionalProperties: false, required: [a], properties: { a: {}, b: {} } }",
    ['{"a": 1}', '{"a": null, "b": 1}'],
    ["{}", '{"a": 1, "c": 1}', '{"a": 1, "__proto__": 1}', '{"a": 1, "x y": 1}'],
  ],
  ["{ type: object, additionalProperties: { type: number } }", ['{"x": 1}', '{"__proto__": 1}'], ['{"x": "1"}']],
  [
    "{ type: object, additionalProperties: false, properties: { __proto__: { type: number }, constructor: {} } }",
    ["{}", '{"__proto__": 1}'],
    ['{"__proto__": "1"}'],
  ],
  [
    '{ anyOf: [{ type: string }, { type: integer, minimum: 1 }, { type: "null" }] }',
    ['"x"', "1", "null"],
    ["0", "1.5", "true"],
  ],
  [
    "{ anyOf: [{ type: object, additionalProperties: false, required: [k, x], properties: { k: { " +
      "const: a }, x: { type: number } } }, { type: object, additionalProperties: false, required: [k], " +
      "properties: { k: { const: b } } }] }",
    ['{"k": "a", "x": 1}', '{"k": "b"}'],
    ['{"k": "b", "x": 1}', '{"k": "c"}', "{}", "1"],
  ],
  [
    "{ type: string, title: T, description: d, default: x, examples: [x], format: email, deprecated: true, $comment: c }",
    ['"no e-mail address"'],
    [],
  ],
];

suite("the keywords of the schema language", { tags: ["contract.language"] }, () => {
  for (const [schema, inside, outside] of keywords) {
    test(`the compiled schema accepts and refuses the right values: ${schema}`, () => {
      assert.deepEqual(problems(withSchema(schema)), []);
      for (const json of inside) assert.equal(verdict(schema, json), "taken", json);
      for (const json of outside) {
        const said = verdict(schema, json);
        assert.notEqual(said, "taken", json);
        says(`${json} for ${schema}`, said);
      }
    });
  }
});

test("a contract can use `$ref` in every member that takes a schema", () => {
  const input = `{ type: object, additionalProperties: false, required: [to], $defs: {
      money: { type: object, additionalProperties: false, required: [amount], properties: { amount: { type: number, minimum: 0 } } },
      address: { type: string, minLength: 2 }, alias: { $ref: "#/$defs/address" } },
      properties: { to: { $ref: "#/$defs/alias", description: whom }, sums: { type: array, items: { $ref: "#/$defs/money" } },
        maybe: { anyOf: [{ $ref: "#/$defs/money" }, { type: "null" }] } } }`;
  const rules =
    `[{ rule: r, on: t, when: "input.?sums.orValue([]).exists(x, x.amount > 5) || has(input.maybe) && ` +
    `input.maybe != null && input.maybe.amount > 5", verdict: BLOCK, reason: much }]`;
  const policySet = compile(contractText({ input, rules }));
  const reason = (sent: unknown): string => judge(policySet, { input: sent }).reason;
  assert.equal(judge(policySet, { input: { to: "xy", sums: [{ amount: 5 }], maybe: null } }).rule, taken);
  says("too-short-by-reference", reason({ to: "x" }));
  says("too-small-by-reference", reason({ to: "xy", sums: [{ amount: -1 }] }));
  assert.equal(reason({ to: "xy", maybe: { amount: 6 } }), "Svc: much");
  says("no-number-by-reference", reason({ to: "xy", maybe: { amount: "6" } }));
});

/** The problems are in the golden file, under the schema. */
const refused: readonly (readonly [schema: string, ...codes: readonly string[]])[] = [
  ["{ type: text }", "schema"],
  ["{ type: [] }", "schema"],
  ["{ typ: string }", "schema"],
  ["{ minimum: 1 }", "schema"],
  ["{ type: string, minimum: 1 }", "schema"],
  ["{ type: number, pattern: x }", "schema"],
  ["{ type: string, items: {} }", "schema"],
  ['{ type: number, minimum: "1" }', "schema"],
  ["{ type: number, multipleOf: 0 }", "schema"],
  ["{ type: string, maxLength: -1 }", "schema"],
  ["{ type: array, maxItems: 1.5 }", "schema"],
  ["{ type: string, pattern: 1 }", "schema"],
  ["{ type: string, pattern: 'a(?=b)' }", "pattern"],
  ["{ type: string, pattern: '(a)\\1' }", "pattern"],
  ["{ enum: [] }", "schema"],
  ["{ enum: a }", "schema"],
  ["{ type: array, uniqueItems: true }", "schema"],
  ["{ type: array, uniqueItems: yes please }", "schema", "schema"],
  ["{ type: object }", "open-object"],
  ["{ type: object, additionalProperties: false, properties: [a] }", "schema"],
  ["{ type: object, additionalProperties: false, required: a }", "schema"],
  ["{ type: object, additionalProperties: false, required: [a] }", "schema"],
  ["{ allOf: [{ type: string }] }", "schema"],
  ["{ oneOf: [{ type: string }] }", "schema"],
  ["{ not: { type: string } }", "schema"],
  ["{ type: string, nullable: true }", "schema"],
  ["{ constructor: 1 }", "schema"],
  ["{ __proto__: 1, toString: 2 }", "schema", "schema"],
  ["string", "schema"],
  ["false", "schema"],
  ['{ $ref: "#/$defs/x" }', "schema"],
  ['{ $ref: "https://example.com/x" }', "schema"],
  ['{ $ref: "#/$defs/__proto__" }', "schema"],
  ["{ anyOf: [] }", "schema"],
  ["{ anyOf: [{ type: string }, { type: string, maxLength: 1 }] }", "schema"],
  ["{ anyOf: [{ type: integer }, { type: number }] }", "schema"],
  ["{ anyOf: [{}, { type: string }] }", "schema"],
  ["{ anyOf: [{ type: string }, { type: number }], maxLength: 5 }", "schema"],
  ["{ type: object, additionalProperties: false, anyOf: [{ type: string }] }", "schema", "schema"],
];

suite("schemas outside the published subset", { tags: ["contract.language"] }, () => {
  test("the compiler refuses each schema outside the subset and says why in one line", () => {
    for (const [schema, ...codes] of refused) {
      const found = problems(withSchema(schema));
      assert.deepEqual(
        found.map((problem) => problem.split(": ")[0]),
        codes,
        schema,
      );
      says(schema, found.join("; "));
    }
  });

  test("the compiler refuses a keyword beside `$ref`", () => {
    const input =
      "{ type: object, additionalProperties: false, $defs: { a: { type: number } }, properties: { v: { " +
      `$ref: "#/$defs/a", maximum: 5 } } }`;
    says("keyword-beside-ref", problems(contractText({ input })).join("; "));
  });

  test("the hint for each unsupported keyword says what to write instead", () => {
    for (const keyword of ["allOf", "oneOf", "not", "if", "patternProperties", "prefixItems", "nullable", "contains"]) {
      const hint = diagnostics(withSchema(`{ ${keyword}: true }`))[0]?.hint ?? "";
      assert.match(hint, /^(?:write|say|use) /, keyword);
    }
  });

  test("the compiler refuses a schema that contains itself", () => {
    const input = (defs: string): string =>
      `{ type: object, additionalProperties: false, $defs: ${defs}, properties: { v: { $ref: "#/$defs/a" } } }`;
    const cycles = [
      '{ a: { $ref: "#/$defs/a" } }',
      '{ a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }',
      '{ a: { type: array, items: { $ref: "#/$defs/a" } } }',
      '{ a: { anyOf: [{ $ref: "#/$defs/a" }, { type: "null" }] } }',
    ];
    for (const defs of cycles) says("contains-itself", problems(contractText({ input: input(defs) })).join("; "));
  });

  test("the schemas of input and platform must be objects, and `present` is reserved", () => {
    const said = (...texts: Parameters<typeof contractText>): string => problems(contractText(...texts)).join("; ");
    for (const input of ["{ type: string }", "{}"]) says("input-no-object", said({ input }));
    says("platform-no-object", said({ platform: "{ type: array }" }));
    says(
      "platform-declares-present",
      said({ platform: "{ type: object, properties: { present: { type: boolean } } }" }),
    );
  });
});

test(
  "the gate judges a snapshot by its schema and accepts other members",
  { tags: ["platform.declared-facts"] },
  () => {
    const policySet = compile(contractText({ requires: "platform.present" }));
    const reason = (platform: unknown): string => judge(policySet, { platform }).reason;
    assert.equal(judge(policySet, { platform: { wallet: "w", spent: 1, more: {} } }).rule, taken);
    assert.equal(reason({ wallet: "w" }), "Svc: platform.spent is missing");
    says("fact-no-number", reason({ wallet: "w", spent: "1" }));
  },
);
