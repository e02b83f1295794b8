/**
 * Goal: tools of any source become a contract that compiles, refuses every call, and names what it could not import.
 * Differences between a contract and its source are reported member by member. Method: tables of schemas and of
 * changes; real tool lists. test/process/cli/import-servers.test.ts starts servers.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { driftOf } from "../../../packages/workbench/src/commands/import-tools/drift.ts";
import { jsonOf, sourceOf } from "../../../packages/workbench/src/commands/import-tools/source.ts";
import {
  contractOf,
  noteText,
  stubsOf,
  type Stub,
} from "../../../packages/workbench/src/commands/import-tools/stubs.ts";
import { toSubset } from "../../../packages/workbench/src/commands/import-tools/subset.ts";
import { yamlFlow } from "../../../packages/workbench/src/commands/import-tools/yaml-flow.ts";
import { compileContracts, renderDiagnostic, type PolicySet } from "../../../packages/readers/src/contract.ts";
import type { Json } from "../../../packages/core/src/wire/mod.ts";
import { sentencesOf } from "../../support/sentences.ts";
import { randomRuns } from "../../support/random-test.ts";

const says = sentencesOf(import.meta.filename);

const root = fileURLToPath(new URL("../../..", import.meta.url));

function stubs(tools: unknown): readonly Stub[] {
  const source = sourceOf(jsonOf(tools), "s");
  assert.ok(source.ok, source.ok ? "" : source.problem);
  return stubsOf(source.value);
}

function compiled(text: string): PolicySet {
  const result = compileContracts([{ name: "c.yaml", text }]);
  assert.ok(result.ok, result.ok ? "" : `${result.problem.map(renderDiagnostic).join("\n")}\n${text}`);
  return result.value;
}

/** Returns the schema and the notes for a member's schema. */
function member(schema: unknown, more: object = {}): { readonly schema: string; readonly notes: string } {
  const input = jsonOf({ type: "object", properties: { x: schema }, ...more });
  const { schema: found, notes } = toSubset(input);
  compiled(contractOf("c", [{ name: "t", summary: "", input: found, notes }]));
  const properties = (found as ReadonlyMap<string, Json>).get("properties") as ReadonlyMap<string, Json>;
  const written = yamlFlow(properties.get("x") ?? null).replaceAll('"', "");
  return { schema: written, notes: notes.map(noteText).join("; ") };
}

suite("the import of a JSON schema", () => {
  const nothing = "";
  /** The result is in the golden file, under the schema. */
  const noted = true;
  const cases: readonly (readonly [schema: unknown, written: string, notes: string | true])[] = [
    [{ type: "string", maxLength: 3, description: "d", default: "a" }, "{type: string, maxLength: 3}", nothing],
    [{ type: "string", pattern: "^a+$" }, "{type: string, pattern: ^a+$}", nothing],
    [{ type: "string", pattern: "(?=a)" }, "{type: string}", noted],
    [{ type: "number", minimum: 0, exclusiveMinimum: true }, "{type: number, exclusiveMinimum: 0}", nothing],
    [{ type: "string", nullable: true }, "{type: [string, null]}", nothing],
    [{ enum: ["a", null], nullable: true }, "{enum: [a, null]}", nothing],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, "{anyOf: [{type: string}, {type: null}]}", nothing],
    [{ oneOf: [{ const: "a" }, { const: "b" }] }, "{enum: [a, b]}", nothing],
    [{ anyOf: [{ type: "integer" }, { type: "number" }] }, "{type: [integer, number]}", noted],
    [{ anyOf: [{ type: "object" }, { type: "object", properties: { a: {} } }] }, "{}", noted],
    [{ type: "object" }, "{type: object, additionalProperties: true}", nothing],
    [
      { type: "object", properties: { a: { type: "string" } }, required: ["a", "b"] },
      "{type: object, additionalProperties: false, required: [a, b], properties: {a: {type: string}, b: {}}}",
      nothing,
    ],
    [
      { type: "object", additionalProperties: { type: "number" } },
      "{type: object, additionalProperties: {type: number}}",
      nothing,
    ],
    [{ type: "array", uniqueItems: true }, "{type: array}", noted],
    [
      { type: "array", uniqueItems: true, maxItems: 3, items: { type: "string" } },
      "{type: array, items: {type: string}, maxItems: 3, uniqueItems: true}",
      nothing,
    ],
    [{ not: { type: "string" } }, "{}", noted],
    [{ type: "object", minProperties: 1 }, "{type: object, additionalProperties: true}", noted],
    [{ properties: { a: {} } }, "{type: object, additionalProperties: false, properties: {a: {}}}", noted],
    [{ type: "string", minimum: 3 }, "{type: string}", noted],
    [{ type: "text" }, "{}", noted],
    [{ allOf: [{ type: "string" }, { maxLength: 3 }] }, "{type: string, maxLength: 3}", nothing],
    [{ allOf: [{ type: "string" }, { type: "number" }] }, "{type: number}", noted],
    [{ $ref: "https://example.com/schema" }, "{}", noted],
    [false, "{}", noted],
    [{ type: "number", maximum: 9007199254740993n }, "{type: number, maximum: 9007199254740993}", nothing],
  ];
  for (const [schema, written, notes] of cases) {
    const shown = JSON.stringify(schema, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
    test(`the importer writes ${shown} as ${written}`, () => {
      const found = member(schema);
      assert.equal(found.schema, written);
      if (notes === noted) says(shown, found.notes);
      else assert.equal(found.notes, notes);
    });
  }

  test("the importer expands references and accepts any value where a schema contains itself", () => {
    const $defs = {
      a: { type: "object", properties: { b: { $ref: "#/$defs/a" }, c: { $ref: "#/$defs/c" } } },
      c: { type: "string" },
    };
    const { schema, notes } = member({ $ref: "#/$defs/a" }, { $defs });
    const level = (b: string): string =>
      `{type: object, additionalProperties: false, properties: {b: ${b}, c: {type: string}}}`;
    assert.equal(schema, level(level("{}")));
    says("contains-itself", notes);
  });

  test("the importer stops expanding references that multiply, and a note says so", () => {
    const level = (at: number): readonly [string, unknown] => {
      const next = { $ref: `#/$defs/l${at + 1}` };
      return [`l${at}`, { type: "object", properties: { a: next, b: next, c: next, d: next } }];
    };
    const $defs = Object.fromEntries([
      ...Array.from({ length: 20 }, (_, at) => level(at)),
      ["l20", { type: "string" }],
    ]);
    says("references-that-multiply", member({ $ref: "#/$defs/l0" }, { $defs }).notes.split("; ").at(-1) ?? "");
  });

  test("any JSON value as a schema gives a contract that compiles, and a second pass changes nothing", (t) => {
    const { json } = fc.letrec<{ json: unknown }>((tie) => ({
      json: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<unknown>(
          true,
          false,
          null,
          "string",
          "object",
          1,
          -1,
          0.5,
          [],
          ["string", "null"],
          "a\u202e\n# b",
          "^a$",
        ),
        fc.array(tie("json"), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom(...keywords), tie("json"), { maxKeys: 5 }),
      ),
    }));
    fc.assert(
      fc.property(json, (schema) => {
        const { schema: input, notes } = toSubset(jsonOf(schema));
        compiled(contractOf("c", [{ name: "t", summary: "", input, notes }]));
        assert.equal(yamlFlow(toSubset(input).schema), yamlFlow(input), "the second time");
      }),
      randomRuns(t, 300),
    );
  });
});

const keywords = (
  "type enum const anyOf oneOf allOf $ref $defs properties required additionalProperties items minimum maximum " +
  "exclusiveMinimum multipleOf minLength maxItems uniqueItems pattern nullable not format a b"
).split(" ");

suite("a contract that import-tools writes", () => {
  const hostile = {
    name: "t",
    description: `"\n    otherwise: ALLOW\n# \u202e\u200b ${"x".repeat(5000)}`,
    inputSchema: { type: "object", properties: { "a\n  b: ALLOW #": { not: {} } } },
  };

  test("text from a hostile server stays on quoted lines of under 320 characters", () => {
    const text = contractOf("c", stubs({ tools: [hostile] }));
    const plan = compiled(text).tools.get("t");
    assert.deepEqual(
      plan?.routes.map(({ otherwise }) => otherwise),
      ["BLOCK"],
    );
    assert.doesNotMatch(text, /[\u202e\u200b]/);
    assert.ok(
      text.split("\n").every((line) => line.length < 320 && !/^ *otherwise: ALLOW/.test(line)),
      text,
    );
    assert.match(text, /# input\.a\\n {2}b: ALLOW #: "not"/);
  });

  test("the importer refuses tool names with hidden or lookalike characters, invalid names and duplicates", () => {
    const problem = (...names: readonly string[]): string => {
      const source = sourceOf(jsonOf(names.map((name) => ({ name, inputSchema: {} }))), "s");
      return source.ok ? "" : source.problem;
    };
    assert.equal(problem("a.b-c_d/e", "A.b"), "");
    says("lookalike-letter", problem("p\u0430y"));
    for (const name of ["a\u200b", "a b", "a\n", ""]) assert.match(problem(name), /hidden characters/);
    assert.match(problem("a*"), /cannot be the name/);
    assert.match(problem("a".repeat(257)), /cannot be the name/);
    assert.match(problem("a", "a"), /two tools are called "a"/);
  });

  test("the importer reads tool lists in the formats of MCP, Anthropic and OpenAI", () => {
    const schema = { type: "object", properties: { q: { type: "string" } } };
    for (const tool of [
      { name: "t", inputSchema: schema },
      { name: "t", input_schema: schema },
      { type: "function", function: { name: "t", parameters: schema } },
      { type: "function", name: "t", parameters: schema },
    ])
      assert.match(contractOf("c", stubs([tool])), /properties: \{ q: \{ type: string \} \}/);
  });

  test("a contract imported from a recorded tool list shows no drift from that list", (t) => {
    const file = join(root, "..", "shared", "eval", "dev", "tools.json");
    if (!existsSync(file)) return t.skip("the recorded tool lists are not beside the repository");
    for (const [suiteName, tools] of Object.entries(
      JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>,
    )) {
      const found = stubs(tools);
      assert.deepEqual(
        driftOf(found, compiled(contractOf("c", found))),
        { added: [], gone: [], changed: [] },
        suiteName,
      );
    }
  });
});

suite("the import of an OpenAPI document", () => {
  const document = {
    openapi: "3.0.3",
    paths: {
      "/pets/{id}": {
        parameters: [{ $ref: "#/components/parameters/id" }],
        put: {
          operationId: "updatePet",
          summary: "Update a pet",
          parameters: [{ name: "dry", in: "query", schema: { type: "boolean" } }],
          requestBody: {
            required: true,
            content: { "application/json": { schema: { $ref: "#/components/schemas/Pet" } } },
          },
        },
        delete: { parameters: [] },
      },
      "/tags": {
        post: { operationId: "tag", requestBody: { content: { "application/json": { schema: { type: "array" } } } } },
      },
    },
    components: {
      parameters: { id: { name: "id", in: "path", required: true, schema: { type: "integer" } } },
      schemas: {
        Pet: { type: "object", required: ["name"], properties: { id: { type: "string" }, name: { type: "string" } } },
      },
    },
  };

  test("parameters and body members become one input, and operationId names the tool", () => {
    const found = stubs(document);
    compiled(contractOf("c", found));
    assert.deepEqual(
      found.map(({ name, input }) => `${name} ${yamlFlow(input).replaceAll('"', "")}`),
      [
        "updatePet {type: object, additionalProperties: false, required: [id, name], " +
          "properties: {id: {type: integer}, dry: {type: boolean}, body_id: {type: string}, name: {type: string}}}",
        "delete_pets_id {type: object, additionalProperties: false, required: [id], properties: {id: {type: integer}}}",
        "tag {type: object, additionalProperties: false, properties: {body: {type: array}}}",
      ],
    );
  });

  test("the gate's own OpenAPI document becomes a contract without drift", () => {
    const found = stubs(JSON.parse(readFileSync(join(root, "spec", "openapi.json"), "utf8")));
    const policySet = compiled(contractOf("c", found));
    assert.ok(policySet.tools.size >= 5);
    assert.deepEqual(driftOf(found, policySet), { added: [], gone: [], changed: [] });
  });

  test("the importer refuses every version of OpenAPI except 3", () => {
    const source = sourceOf(jsonOf({ ...document, openapi: "2.0" }), "s");
    assert.equal(source.ok ? "" : source.problem, "only OpenAPI 3 is supported");
  });
});

suite("drift between a contract and its source", () => {
  const base = {
    type: "object",
    additionalProperties: false,
    required: ["to"],
    properties: {
      to: { type: "array", items: { type: "string" }, maxItems: 5 },
      kind: { enum: ["a", "b"] },
      size: { type: "integer", minimum: 0, maximum: 10 },
    },
  };
  const changed = (change: Partial<typeof base.properties>): object => ({
    ...base,
    properties: { ...base.properties, ...change },
  });

  /** Returns each difference between a source and a contract as a line. */
  function drift(source: object, contract: object): readonly string[] {
    const policySet = compiled(contractOf("c", stubs([{ name: "t", inputSchema: contract }])));
    const { added, gone, changed: found } = driftOf(stubs([{ name: "t", inputSchema: source }]), policySet);
    assert.deepEqual([...added, ...gone], []);
    return found.flatMap(({ members }) => members.map(({ at, what }) => `${at}: ${what}`));
  }

  test("an equal or narrower contract has no drift", () => {
    assert.deepEqual(drift(base, base), []);
    for (const narrower of [
      changed({ to: { type: "array", items: { type: "string", maxLength: 9 } as { type: string }, maxItems: 3 } }),
      changed({ kind: { enum: ["a"] } }),
      changed({ size: { type: "integer", minimum: 1, maximum: 9 } }),
    ])
      assert.deepEqual(drift(base, narrower), []);
  });

  const table: readonly (readonly [source: object, name: string])[] = [
    [changed({ to: { type: "array", items: { type: "number" }, maxItems: 5 } }), "items-of-another-type"],
    [changed({ to: { type: "array", items: { type: "string" }, maxItems: 4 } }), "fewer-items"],
    [changed({ kind: { enum: ["a", "c"] } }), "values-not-listed"],
    [changed({ size: { type: "integer", minimum: 1, maximum: 10 } }), "larger-minimum"],
    [{ ...base, required: ["to", "size"] }, "newly-required"],
    [{ ...base, required: [] }, "no-longer-required"],
    [{ ...base, properties: { ...base.properties, cc: { type: "string" } } }, "new-member"],
    [{ ...base, properties: { to: base.properties.to, size: base.properties.size } }, "member-gone"],
  ];
  for (const [source, name] of table)
    test(`drift is reported: ${name}`, () => says(name, drift(source, base).join("; ")));

  test("drift names new tools and removed tools", () => {
    const policySet = compiled(contractOf("c", stubs([{ name: "a", inputSchema: base }])));
    assert.deepEqual(driftOf(stubs([{ name: "b", inputSchema: base }]), policySet), {
      added: ["b"],
      gone: ["a"],
      changed: [],
    });
  });
});
