/**
 * Goal: the published subset of JSON Schema judges values exactly, and what is not in it does not compile. Method: for
 * each keyword a value inside and one outside with the exact message, at the limit and one past it; then the static
 * errors, one line each.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compile, contractText, diagnostics, judge, problems } from "../../../support/contract-kit.ts";

/** A contract whose input has one member `v` of the schema. */
function withSchema(schema: string): string {
  return contractText({
    input: `{ type: object, additionalProperties: false, required: [v], properties: { v: ${schema} } }`,
  });
}

const taken = 'Svc: allowed; no rule in contract "c" applies';

/** What is said of `v` with a value, given as JSON. */
function verdict(schema: string, json: string): string {
  const decision = judge(compile(withSchema(schema)), { input: `{"v":${json}}` });
  assert.equal(decision.defect, undefined);
  return decision.reason === taken ? "taken" : decision.reason.replace(/^Svc: /, "");
}

const keywords: readonly (readonly [
  schema: string,
  inside: readonly string[],
  outside: readonly (readonly [string, string])[],
])[] = [
  [
    "{ type: string }",
    ['"x"', '""'],
    [
      ["1", "input.v must be a text, not 1"],
      ["null", "input.v must be a text, not null"],
    ],
  ],
  [
    "{ type: number }",
    ["1", "0.5", "-1e400"],
    [
      ['"5000"', 'input.v must be a number, not "5000"'],
      ["true", "input.v must be a number, not true"],
    ],
  ],
  [
    "{ type: integer }",
    ["1", "1.0", "10e-1", "-5e3"],
    [
      ["1.5", "input.v must be a whole number, not 1.5"],
      ["1e-1", "input.v must be a whole number, not 1e-1"],
    ],
  ],
  [
    "{ type: boolean }",
    ["true", "false"],
    [
      ["0", "input.v must be true or false, not 0"],
      ['"true"', 'input.v must be true or false, not "true"'],
    ],
  ],
  ['{ type: "null" }', ["null"], [["0", "input.v must be null, not 0"]]],
  ["{ type: null }", ["null"], [["false", "input.v must be null, not false"]]],
  ["{ type: array }", ["[]", "[1, {}]"], [["{}", "input.v must be a list, not an object"]]],
  ["{ type: object, additionalProperties: true }", ["{}"], [["[]", "input.v must be an object, not an array"]]],
  ['{ type: [string, "null"] }', ['"x"', "null"], [["1", "input.v must be a text or null, not 1"]]],
  ["true", ["1", '"x"', "null", "{}"], []],
  ["{}", ["1", "[]"], []],
  [
    "{ type: number, minimum: 2 }",
    ["2", "2.0", "3"],
    [["1.99999999999999999999", "input.v must be at least 2, not 1.99999999999999999999"]],
  ],
  [
    "{ type: number, maximum: 0.1 }",
    ["0.1", "0.10", "1e-1"],
    [["0.10000000000000000001", "input.v must be at most 0.1, not 0.10000000000000000001"]],
  ],
  [
    "{ type: number, exclusiveMinimum: 0 }",
    ["1e-400"],
    [
      ["0", "input.v must be above 0, not 0"],
      ["-0.0", "input.v must be above 0, not -0.0"],
    ],
  ],
  ["{ type: number, exclusiveMaximum: 10 }", ["9.99"], [["10.0", "input.v must be below 10, not 10.0"]]],
  [
    "{ type: number, multipleOf: 0.01 }",
    ["19.99", "0", "-0.01", "1e3"],
    [["0.015", "input.v must be a multiple of 0.01, not 0.015"]],
  ],
  ["{ type: number, multipleOf: 0.3 }", ["0.9", "3"], [["1", "input.v must be a multiple of 0.3, not 1"]]],
  [
    "{ type: string, minLength: 2 }",
    ['"ab"', '"😀😀"'],
    [
      ['"😀"', 'input.v must be at least 2 characters long, not "😀"'],
      ['""', 'input.v must be at least 2 characters long, not ""'],
    ],
  ],
  [
    "{ type: string, maxLength: 2 }",
    ['"😀😀"', '"e\u0301"'],
    [
      ['"abc"', 'input.v must be at most 2 characters long, not "abc"'],
      ['"😀😀😀"', 'input.v must be at most 2 characters long, not "😀😀😀"'],
    ],
  ],
  [
    "{ type: string, minLength: 1000 }",
    [`"${"😀".repeat(1000)}"`],
    [[`"${"😀".repeat(999)}"`, `input.v must be at least 1000 characters long, not "${"😀".repeat(64)}…"`]],
  ],
  ["{ type: string, pattern: b+ }", ['"abbc"'], [['"ac"', 'input.v must match the pattern b+, not "ac"']]],
  [
    "{ type: string, pattern: '^[a-z]{2,4}$' }",
    ['"ab"'],
    [['"ab\\n"', 'input.v must match the pattern ^[a-z]{2,4}$, not "ab\\u000a"']],
  ],
  [
    "{ enum: [a, 1, null, true] }",
    ['"a"', "1.0", "null", "true"],
    [
      ['"A"', 'input.v must be one of "a", 1, null, true, not "A"'],
      ['"1"', 'input.v must be one of "a", 1, null, true, not "1"'],
    ],
  ],
  [
    "{ enum: [[1, a], { x: 1 }] }",
    ['[1.0, "a"]', '{"x": 1}'],
    [['{"x": 2}', 'input.v must be one of [1, "a"], an object of 1 members, not an object']],
  ],
  ["{ const: USD }", ['"USD"'], [['"usd"', 'input.v must be "USD", not "usd"']]],
  ["{ const: 1.50 }", ["1.5"], [["1.51", "input.v must be 1.50, not 1.51"]]],
  ["{ const: a, enum: [a, b] }", ['"a"'], [['"b"', 'input.v must be "a", not "b"']]],
  ["{ const: a, enum: [b] }", [], [['"a"', 'input.v must be "b", not "a"']]],
  [
    "{ type: array, items: { type: number, minimum: 0 } }",
    ["[]", "[0, 1]"],
    [["[0, -1]", "input.v[1] must be at least 0, not -1"]],
  ],
  [
    "{ type: array, minItems: 1, maxItems: 2 }",
    ["[1]", "[1, 2]"],
    [
      ["[]", "input.v must hold at least 1 items, not 0"],
      ["[1, 2, 3]", "input.v must hold at most 2 items, not 3"],
    ],
  ],
  [
    "{ type: array, items: { type: number }, maxItems: 5, uniqueItems: true }",
    ["[1, 2]"],
    [
      ["[1, 1.0]", "input.v must not hold the same item twice, not 1.0"],
      ["[10, 1e1]", "input.v must not hold the same item twice, not 1e1"],
    ],
  ],
  [
    "{ type: array, items: { type: string }, maxItems: 5, uniqueItems: true }",
    ['["1", "true", "s1"]'],
    [['["a", "a"]', 'input.v must not hold the same item twice, not "a"']],
  ],
  ["{ type: array, items: { type: string }, uniqueItems: false }", ['["a", "a"]'], []],
  [
    "{ type: object, additionalProperties: false, required: [a], properties: { a: {}, b: {} } }",
    ['{"a": 1}', '{"a": null, "b": 1}'],
    [
      ["{}", "input.v.a is missing"],
      ['{"a": 1, "c": 1}', "input.v.c is not a member that this tool takes"],
      ['{"a": 1, "__proto__": 1}', "input.v.__proto__ is not a member that this tool takes"],
      ['{"a": 1, "x y": 1}', 'input.v["x y"] is not a member that this tool takes'],
    ],
  ],
  [
    "{ type: object, additionalProperties: { type: number } }",
    ['{"x": 1}', '{"__proto__": 1}'],
    [['{"x": "1"}', 'input.v.x must be a number, not "1"']],
  ],
  [
    "{ type: object, additionalProperties: false, properties: { __proto__: { type: number }, constructor: {} } }",
    ["{}", '{"__proto__": 1}'],
    [['{"__proto__": "1"}', 'input.v.__proto__ must be a number, not "1"']],
  ],
  [
    '{ anyOf: [{ type: string }, { type: integer, minimum: 1 }, { type: "null" }] }',
    ['"x"', "1", "null"],
    [
      ["0", "input.v must be at least 1, not 0"],
      ["1.5", "input.v must be a whole number, not 1.5"],
      ["true", "input.v must be a text or a number or null, not true"],
    ],
  ],
  [
    "{ anyOf: [{ type: object, additionalProperties: false, required: [k, x], properties: { k: { " +
      "const: a }, x: { type: number } } }, { type: object, additionalProperties: false, required: [k], " +
      "properties: { k: { const: b } } }] }",
    ['{"k": "a", "x": 1}', '{"k": "b"}'],
    [
      ['{"k": "b", "x": 1}', "input.v.x is not a member that this tool takes"],
      ['{"k": "c"}', "input.v must have a `k` that is one of its kinds"],
      ["{}", "input.v must have a `k` that is one of its kinds"],
      ["1", "input.v must be an object, not 1"],
    ],
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
      for (const [json, message] of outside) assert.equal(verdict(schema, json), message, json);
    });
  }
});

test("a contract can use `$ref` in every place that takes a schema", () => {
  const input = `{ type: object, additionalProperties: false, required: [to], $defs: {
      money: { type: object, additionalProperties: false, required: [amount], properties: { amount: { type: number, minimum: 0 } } },
      address: { type: string, minLength: 2 }, alias: { $ref: "#/$defs/address" } },
      properties: { to: { $ref: "#/$defs/alias", description: whom }, sums: { type: array, items: { $ref: "#/$defs/money" } },
        maybe: { anyOf: [{ $ref: "#/$defs/money" }, { type: "null" }] } } }`;
  const rules =
    `[{ rule: r, on: t, when: "input.?sums.orValue([]).exists(x, x.amount > 5) || has(input.maybe) && ` +
    `input.maybe != null && input.maybe.amount > 5", verdict: BLOCK, reason: much }]`;
  const force = compile(contractText({ input, rules }));
  const reason = (sent: unknown): string => judge(force, { input: sent }).reason;
  assert.equal(reason({ to: "xy", sums: [{ amount: 5 }], maybe: null }), taken);
  assert.equal(reason({ to: "x" }), 'Svc: input.to must be at least 2 characters long, not "x"');
  assert.equal(reason({ to: "xy", sums: [{ amount: -1 }] }), "Svc: input.sums[0].amount must be at least 0, not -1");
  assert.equal(reason({ to: "xy", maybe: { amount: 6 } }), "Svc: much");
  assert.equal(reason({ to: "xy", maybe: { amount: "6" } }), 'Svc: input.maybe.amount must be a number, not "6"');
});

const refused: readonly (readonly [schema: string, ...problems: readonly string[]])[] = [
  ["{ type: text }", "schema: `text` is not a type of JSON"],
  ["{ typ: string }", "schema: `typ` is not part of the schema language"],
  ["{ minimum: 1 }", "schema: `minimum` needs `type: number` beside it"],
  ["{ type: string, minimum: 1 }", "schema: `minimum` needs `type: number` beside it"],
  ["{ type: number, pattern: x }", "schema: `pattern` needs `type: string` beside it"],
  ["{ type: string, items: {} }", "schema: `items` needs `type: array` beside it"],
  ['{ type: number, minimum: "1" }', "schema: `minimum` is a number"],
  ["{ type: number, multipleOf: 0 }", "schema: `multipleOf` is a number above 0"],
  ["{ type: string, maxLength: -1 }", "schema: `maxLength` is a whole number of 0 or more"],
  ["{ type: array, maxItems: 1.5 }", "schema: `maxItems` is a whole number of 0 or more"],
  ["{ type: string, pattern: 1 }", "schema: `pattern` is a text"],
  ["{ type: string, pattern: 'a(?=b)' }", "pattern: not a pattern of RE2: invalid or unsupported Perl syntax: `(?=`"],
  ["{ type: string, pattern: '(a)\\1' }", "pattern: not a pattern of RE2: invalid escape sequence: `\\1`"],
  ["{ enum: [] }", "schema: `enum` is a list of values"],
  ["{ enum: a }", "schema: `enum` is a list of values"],
  ["{ type: array, uniqueItems: true }", "schema: `uniqueItems` needs `items` of one scalar type and a `maxItems`"],
  [
    "{ type: array, uniqueItems: yes please }",
    "schema: `uniqueItems` needs `items` of one scalar type and a `maxItems`",
    "schema: `uniqueItems` is true or false",
  ],
  ["{ type: object }", "open-object: an object of an input must say whether it takes members that are not declared"],
  [
    "{ type: object, additionalProperties: false, properties: [a] }",
    "schema: `properties` is a map of names to schemas",
  ],
  ["{ type: object, additionalProperties: false, required: a }", "schema: `required` is a list of names"],
  ["{ type: object, additionalProperties: false, required: [a] }", "schema: `a` is required but not declared"],
  ["{ allOf: [{ type: string }] }", "schema: `allOf` is not part of the schema language"],
  ["{ oneOf: [{ type: string }] }", "schema: `oneOf` is not part of the schema language"],
  ["{ not: { type: string } }", "schema: `not` is not part of the schema language"],
  ["{ type: string, nullable: true }", "schema: `nullable` is not part of the schema language"],
  ["{ constructor: 1 }", "schema: `constructor` is not part of the schema language"],
  [
    "{ __proto__: 1, toString: 2 }",
    "schema: `__proto__` is not part of the schema language",
    "schema: `toString` is not part of the schema language",
  ],
  ["string", "schema: a schema is a map such as `{ type: string }`"],
  ["false", "schema: a schema is a map such as `{ type: string }`"],
  ['{ $ref: "#/$defs/x" }', "schema: `#/$defs/x` names no schema here"],
  ['{ $ref: "https://example.com/x" }', "schema: `https://example.com/x` names no schema here"],
  ['{ $ref: "#/$defs/__proto__" }', "schema: `#/$defs/__proto__` names no schema here"],
  ["{ anyOf: [] }", "schema: `anyOf` is a list of schemas"],
  [
    "{ anyOf: [{ type: string }, { type: string, maxLength: 1 }] }",
    "schema: the branches of `anyOf` must be told apart by `type`, or by one required member with a `const`",
  ],
  [
    "{ anyOf: [{ type: integer }, { type: number }] }",
    "schema: the branches of `anyOf` must be told apart by `type`, or by one required member with a `const`",
  ],
  [
    "{ anyOf: [{}, { type: string }] }",
    "schema: the branches of `anyOf` must be told apart by `type`, or by one required member with a `const`",
  ],
  ["{ anyOf: [{ type: string }, { type: number }], maxLength: 5 }", "schema: `maxLength` cannot stand beside `anyOf`"],
  [
    "{ type: object, additionalProperties: false, anyOf: [{ type: string }] }",
    "schema: `type` cannot stand beside `anyOf`",
    "schema: `additionalProperties` cannot stand beside `anyOf`",
  ],
];

suite("schemas outside the published subset", { tags: ["contract.language"] }, () => {
  test("the compiler refuses each schema outside the subset and says why in one line", () => {
    for (const [schema, ...expected] of refused) assert.deepEqual(problems(withSchema(schema)), expected, schema);
  });

  test("the compiler refuses a keyword beside `$ref`", () => {
    const input =
      "{ type: object, additionalProperties: false, $defs: { a: { type: number } }, properties: { v: { " +
      `$ref: "#/$defs/a", maximum: 5 } } }`;
    assert.deepEqual(problems(contractText({ input })), ["schema: `maximum` cannot stand beside `$ref`"]);
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
    for (const defs of cycles)
      assert.deepEqual(problems(contractText({ input: input(defs) })), ["schema: `a` contains itself"], defs);
  });

  test("the schemas of input and platform must be objects, and `present` is reserved", () => {
    assert.deepEqual(problems(contractText({ input: "{ type: string }" })), ["schema: `input` is always an object"]);
    assert.deepEqual(problems(contractText({ input: "{}" })), ["schema: `input` is always an object"]);
    assert.deepEqual(problems(contractText({ platform: "{ type: array }" })), [
      "schema: `platform` is always an object",
    ]);
    assert.deepEqual(
      problems(contractText({ platform: "{ type: object, properties: { present: { type: boolean } } }" })),
      ["reserved-name: `present` is a reserved name: `platform.present` says whether a snapshot came"],
    );
  });
});

test(
  "the gate judges a snapshot by its schema and accepts other members",
  { tags: ["platform.declared-facts"] },
  () => {
    const force = compile(contractText({ requires: "platform.present" }));
    const reason = (platform: unknown): string => judge(force, { platform }).reason;
    assert.equal(reason({ wallet: "w", spent: 1, more: {} }), taken);
    assert.equal(reason({ wallet: "w" }), "Svc: platform.spent is missing");
    assert.equal(reason({ wallet: "w", spent: "1" }), 'Svc: platform.spent must be a number, not "1"');
  },
);
