/**
 * Goal: the call from which a person starts is one that the contract accepts. Method: the example of each tool of the
 * published contracts, judged by its own schemas; then a table of schemas with the value that the example has.
 * Positive control: an example that leaves members out is noticed.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { exampleCall } from "../../../../packages/core/src/contract/ir.ts";
import type { PolicySet } from "../../../../packages/core/src/contract/mod.ts";
import { jsonText, type Json, type JsonObject } from "../../../../packages/core/src/wire/mod.ts";
import { compile, contractText } from "../../../support/contract-kit.ts";
import { control } from "../../../support/controls/control.ts";

const root = join(import.meta.dirname, "../../../..");

/** Returns the mismatches of the examples of a policy set, with their tools. */
function mismatches(
  { tools, documents }: PolicySet,
  changed = (call: JsonObject): JsonObject => call,
): readonly string[] {
  return [...tools].flatMap(([tool, { routes }]) => {
    const call = changed(exampleCall(documents, tool));
    const part = (name: string): JsonObject => call.get(name) as JsonObject;
    return routes.flatMap(({ validateInput, validatePlatform }) => {
      const wrong = validateInput(part("tool_input")) ?? validatePlatform?.(part("platform_state"), undefined);
      return wrong === undefined ? [] : [`${tool}: ${JSON.stringify(wrong)}`];
    });
  });
}

/** Returns the example of a schema, as the member `v` of an input. */
function example(schema: string): Json | undefined {
  const input = `{ type: object, additionalProperties: false, required: [v], properties: { v: ${schema} },
      $defs: { price: { type: number, minimum: 3 } } }`;
  const policySet = compile(contractText({ input }));
  assert.deepEqual(mismatches(policySet), []);
  const call = exampleCall(policySet.documents, "t").get("tool_input");
  return call instanceof Map ? (call as JsonObject).get("v") : undefined;
}

const table: readonly (readonly [schema: string, example: string])[] = [
  ["{ type: string }", '"text"'],
  ["{ type: string, minLength: 6 }", '"textte"'],
  ["{ type: string, maxLength: 2 }", '"te"'],
  ["{ type: string, pattern: '^[0-9]+$' }", '"1"'],
  ["{ type: string, pattern: '^[A-Z]{3}$' }", '"USD"'],
  ["{ type: string, examples: [alice], maxLength: 9 }", '"alice"'],
  ["{ type: string, default: bob }", '"bob"'],
  ["{ const: 5 }", "5"],
  ["{ enum: [b, a] }", '"b"'],
  ["{ type: boolean }", "false"],
  ["{ type: 'null' }", "null"],
  ["{ type: ['null', string] }", "null"],
  ["{ type: number }", "1"],
  ["{ type: number, minimum: 20 }", "20"],
  ["{ type: number, maximum: -3.5 }", "-4"],
  ["{ type: number, exclusiveMinimum: 0, exclusiveMaximum: 1 }", "0.5"],
  ["{ type: number, minimum: 0.2, maximum: 0.4 }", "0.2"],
  ["{ type: number, multipleOf: 0.1, minimum: 0.25, maximum: 0.35 }", "0.3"],
  ["{ type: number, multipleOf: 5, exclusiveMinimum: 10 }", "15"],
  ["{ type: integer, exclusiveMaximum: -7 }", "-8"],
  ["{ type: integer, minimum: 2.5 }", "3"],
  ["{ type: array, items: { type: boolean } }", "[false]"],
  ["{ type: array, items: { type: boolean }, minItems: 3 }", "[false,false,false]"],
  ["{ type: array, items: { type: boolean }, maxItems: 0 }", "[]"],
  ["{ type: array }", "[]"],
  ["{ type: array, minItems: 2 }", '["",""]'],
  ["{ type: object, additionalProperties: true }", "{}"],
  ["{ type: object, additionalProperties: false, properties: { a: {}, b: { type: number } } }", '{"a":{},"b":1}'],
  [
    "{ type: object, additionalProperties: false, required: [b], properties: { a: {}, b: { type: number } } }",
    '{"b":1}',
  ],
  ["{ anyOf: [{ type: number }, { type: 'null' }] }", "1"],
  ["{ $ref: '#/$defs/price' }", "3"],
  ["true", '""'],
  ["{ type: string, default: null }", '"text"'],
  ["{ type: string, enum: [null, a] }", '"a"'],
  ["{ const: 5, default: 3 }", "5"],
  ["{ type: integer, multipleOf: 0.5 }", "1"],
  ["{ type: integer, enum: [7] }", "7"],
  ["{ type: array, minItems: 101, items: { type: 'null' } }", `[${Array.from({ length: 101 }, () => "null").join()}]`],
  ["{ type: object, additionalProperties: false, required: ['1'], properties: { 1: {}, 2: {} } }", '{"1":{}}'],
];

suite("the example of a call", () => {
  for (const name of globSync(["contracts/**/*.yaml", "examples/agents/*.yaml", "bench/sessions/contracts/*.yaml"], {
    cwd: root,
    exclude: ["**/*.test.yaml", "contracts/packs/*"],
  }).toSorted())
    test(`${name} accepts the example of each tool`, () => {
      const policySet = compile(readFileSync(join(root, name), "utf8"));
      assert.ok(policySet.tools.size > 0);
      assert.deepEqual(mismatches(policySet), []);
    });

  test("each schema has the example of the table, and accepts it", () => {
    for (const [schema, expected] of table) assert.equal(jsonText(example(schema) ?? null), expected, schema);
  });

  test("a pattern of no usual text, and items that must differ, are left to the person", () => {
    for (const [schema, found] of [
      ["{ type: string, pattern: '^ORD-[0-9]{9}$' }", "text"],
      ["{ type: array, items: { type: boolean }, uniqueItems: true, minItems: 2 }", "false"],
    ] as const)
      assert.throws(
        () => example(schema),
        (error: Error) => error.message.includes(found),
      );
  });

  test("no schema has a large example, or one that is not JSON", () => {
    const nested = (levels: number): string =>
      levels === 0 ? "{ type: number }" : `{ type: array, minItems: 100, items: ${nested(levels - 1)} }`;
    for (const schema of [nested(4), "{ type: number, multipleOf: 1e400 }", "{ type: number, minimum: 1e300 }"]) {
      const policySet = compile(
        contractText({ input: `{ type: object, additionalProperties: true, properties: { v: ${schema} } }` }),
      );
      const text = jsonText(exampleCall(policySet.documents, "t"));
      assert.ok(text.length < 10_000, String(text.length));
      JSON.parse(text);
    }
  });

  test("two contracts of one tool have one example", () => {
    const schema = (name: string): string =>
      contractText({ input: `{ type: object, additionalProperties: true, properties: { ${name}: true } }` }, name);
    const policySet = compile(schema("a"), schema("b"));
    assert.deepEqual(mismatches(policySet), []);
    assert.equal(jsonText(exampleCall(policySet.documents, "t").get("tool_input") ?? null), '{"a":"","b":""}');
  });

  control("positive control: a call without what a schema requires is noticed", () => {
    const policySet = compile(contractText());
    const without = (call: JsonObject): JsonObject => new Map<string, Json>([...call, ["tool_input", new Map()]]);
    assert.deepEqual(mismatches(policySet), []);
    assert.match(mismatches(policySet, without).join(), /^t: .*"n"/);
  });
});
