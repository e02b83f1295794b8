/**
 * Goal: an editor's schema and the gate's reader accept the same files. Method: every file of the repository and every
 * block of the reference is valid; each file in a table of wrong ones is not; the keys of each map equal the reader's
 * own list.
 */
import assert from "node:assert/strict";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { parse } from "yaml";
import {
  approvalKeys,
  approvalStatuses,
  callKeys,
  caseKeys,
  decisionKeys,
  decisionResults,
  expectKeys,
  fileKeys,
  nextSteps,
  outcomeKeys,
  outcomeRefusals,
  sessionKeys,
  templateKeys,
} from "../../../packages/workbench/src/test/document.ts";
import { starterContract, starterMandate } from "../../../packages/gate/src/cli/starter.ts";
import { outcomeRows } from "../../../packages/core/src/record/entry/mod.ts";
import { countings } from "../../../packages/core/src/contract/core/counter.ts";
import { documentKeys } from "../../../packages/core/src/contract/ir.ts";
import { jsonTypes } from "../../../packages/core/src/contract/schema/schema.ts";
import { keywords } from "../../../packages/core/src/contract/schema/keywords.ts";
import { calendarUnits, weekdays } from "../../../packages/core/src/contract/value/time.ts";
import { modes, verdicts } from "../../../packages/core/src/wire/mod.ts";
import { command } from "../../support/command.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** The part of JSON Schema that these tests read. */
interface Node {
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: boolean | Node;
  readonly anyOf?: readonly Node[];
  readonly items?: Node;
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly $defs?: Readonly<Record<string, Node>>;
}

const schemas = {
  contract: JSON.parse(read("spec/schemas/contract.schema.json")) as Node,
  mandate: JSON.parse(read("spec/schemas/mandate.schema.json")) as Node,
  pack: JSON.parse(read("spec/schemas/pack.schema.json")) as Node,
  test: JSON.parse(read("spec/schemas/test.schema.json")) as Node,
};
type Kind = keyof typeof schemas;

const ajv = new Ajv2020({
  strict: true,
  strictTypes: false,
  allErrors: true,
  allowUnionTypes: true,
  strictRequired: false,
});
const validators: Readonly<Record<Kind, ValidateFunction>> = {
  contract: ajv.compile(schemas.contract),
  mandate: ajv.compile(schemas.mandate),
  pack: ajv.compile(schemas.pack),
  test: ajv.compile(schemas.test),
};

function problems(kind: Kind, text: string): readonly string[] {
  const validate = validators[kind];
  if (validate(parse(text, { maxAliasCount: 0 }))) return [];
  return (validate.errors ?? []).map(({ instancePath, keyword, message }) => `${instancePath} ${keyword}: ${message}`);
}

function kindOf(path: string, text: string): Kind {
  if (path.endsWith(".test.yaml")) return "test";
  if (/^pack:/m.test(text)) return "pack";
  return /^mandate:/m.test(text) ? "mandate" : "contract";
}

const files = ["mandate.yaml", ...globSync(["contracts/**/*.yaml", "examples/**/*.yaml"], { cwd: root })];

suite("files that the gate accepts", () => {
  for (const path of files)
    test(`${path} is valid`, () => assert.deepEqual(problems(kindOf(path, read(path)), read(path)), []));

  test("the blocks of spec/contract.md and the files that init writes are valid", () => {
    const blocks = Array.from(
      read("spec/contract.md").matchAll(/^```yaml\n([\s\S]*?)^```$/gm),
      ([, text = ""]) => text,
    );
    assert.ok(blocks.length > 2);
    for (const text of [...blocks, starterContract, starterMandate])
      assert.deepEqual(problems(kindOf("", text), text), [], text);
  });
});

suite("files with mistakes", () => {
  const tool = "t: { input: { type: object, additionalProperties: false }, otherwise: ALLOW }";
  const base = `contract: c\ntools: { ${tool} }\n`;
  const rule = (more: string): string =>
    `${base}rules: [{ rule: r, on: t, when: a, verdict: BLOCK, reason: r${more === "" ? "" : `, ${more}`} }]`;
  const cases: readonly (readonly [kind: Kind, text: string, problem: RegExp])[] = [
    ["contract", "contract: C\ntools: {}", /^\/contract pattern: /],
    ["contract", "contract: c", /^ required: .*'tools'/m],
    ["contract", `${base}tool: {}`, /^ additionalProperties: /m],
    ["contract", "contract: c\ntools: { t: { input: {} } }", /^\/tools\/t required: .*'otherwise'/m],
    ["contract", base.replace("ALLOW", "allow"), /\/tools\/t\/otherwise/],
    ["contract", base.replace("t: {", "t: { aliases: Bash,"), /^\/tools\/t\/aliases type: /m],
    ["contract", base.replace("t: {", "t: { aliases: [Bash, Bash],"), /^\/tools\/t\/aliases uniqueItems: /m],
    ["contract", base.replace("type: object", "typ: object"), /\/tools\/t\/input/],
    ["contract", base.replace("type: object", "type: text"), /\/tools\/t\/input\/type/],
    ["contract", `${base}platform: { allOf: [] }`, /\/platform/],
    ["contract", `${base}platform: { properties: { a: { minLength: -1 } } }`, /\/platform/],
    ["contract", rule("final: yes"), /\/rules\/0\/final/],
    ["contract", rule("mode: enforce"), /\/rules\/0\/mode/],
    ["contract", rule("then: x"), /^\/rules\/0 additionalProperties: /m],
    ["contract", `${base}limits: { a-b: 1 }`, /\/limits/],
    ["contract", `${base}sensitive: input.a`, /^\/sensitive type: /m],
    ["contract", `${base}sensitive: [input.a, input]`, /^\/sensitive\/1 pattern: /m],
    ["contract", `${base}sensitive: [input.${"a".repeat(123)}]`, /^\/sensitive\/0 maxLength: .*\b128\b/m],
    ["contract", `${base}sensitive: [input.a, input.a]`, /^\/sensitive uniqueItems: /m],
    [
      "contract",
      `${base}sensitive: [${Array.from({ length: 17 }, (_, at) => `input.a${at}`).join()}]`,
      /^\/sensitive maxItems: .*\b16\b/m,
    ],
    ["contract", `${base}let: { input: "1" }`, /\/let/],
    ["contract", `${base}counters: { k: { of: t } }`, /^\/counters\/k required: .*'per'/m],
    ["contract", `${base}counters: { k: { of: t, per: gate, within: soon } }`, /\/counters\/k\/within/],
    ["contract", `${base}counters: { k: { of: t, per: gate, counting: all } }`, /\/counters\/k\/counting/],
    ["mandate", "mandate: m", /^ required: .*'contracts'/m],
    ["mandate", "mandate: m\ncontracts: c.yaml", /^\/contracts type: /m],
    ["mandate", "mandate: m\ncontracts: [{ tools: [t] }]", / required: .*'file'/],
    ["mandate", "mandate: m\ncontracts: []\ncounters: { c: { k: { starts: full } } }", /\/counters\/c\/k\/starts/],
    ["test", "cases: []", /^\/cases minItems: .*\b1\b/m],
    ["test", "cases: [{ case: a, tool: t, expect: Allow }]", /\/cases\/0\/expect/],
    ["test", "cases: [{ case: a, calls: [{ tool: t, calls: [] }] }]", /^\/cases\/0\/calls\/0 additionalProperties: /m],
    ["test", "cases: [{ case: a, tool: t, after: soon, expect: ALLOW }]", /\/cases\/0\/after/],
    ["test", "persons: { anna: null }\ncases: [{ case: a, tool: t, expect: ALLOW }]", /^\/persons\/anna type: /m],
    ["test", "cases: [{ case: a, calls: [{ approve: anna, deny: ben }] }]", /^\/cases\/0\/calls\/0 oneOf: /m],
    ["test", "cases: [{ case: a, calls: [{ approve: anna, tool: t }] }]", /calls\/0 additionalProperties: /],
    [
      "test",
      "cases: [{ case: a, calls: [{ approve: anna, expect: ALLOW }] }]",
      /^\/cases\/0\/calls\/0\/expect enum: /m,
    ],
    ["test", "cases: [{ case: a, calls: [{ outcome: made }] }]", /^\/cases\/0\/calls\/0\/outcome enum: /m],
    ["test", "cases: [{ case: a, calls: [{ outcome: failed, amount: 1 }] }]", /calls\/0\/outcome const: /],
    ["test", "cases: [{ case: a, calls: [{ outcome: done, tool: t }] }]", /calls\/0 additionalProperties: /],
    ["test", "cases: [{ case: a, tool: t, expect: { approval: waiting } }]", /\/cases\/0\/expect\/approval/],
    ["test", "cases: [{ case: a, tool: t, approval: last, expect: ALLOW }]", /^\/cases\/0 additionalProperties: /m],
  ];
  test("the texts that the cases change are valid", () => {
    for (const text of [base, rule(""), rule("mode: observe"), `${base}sensitive: [input.a]`])
      assert.deepEqual(problems("contract", text), []);
  });
  for (const [kind, text, problem] of cases) {
    test(`the ${kind} schema refuses ${text.replace(base, "").replaceAll("\n", "; ")}`, () =>
      assert.match(problems(kind, text).join("\n"), problem));
  }
});

suite("the keys in the schemas", () => {
  const keys = (node: Node | undefined): readonly string[] => {
    assert.equal(node?.additionalProperties, false, "it takes keys that it does not name");
    return Object.keys(node.properties ?? {}).toSorted();
  };
  /** The branch of a choice that is a map. */
  const map = (node: Node | undefined): Node | undefined =>
    node?.anyOf?.find(({ properties }) => properties !== undefined);
  const { contract, mandate, pack, test: tests } = schemas;
  const defs = contract.$defs ?? {};
  const testDefs = tests.$defs ?? {};
  const table: readonly (readonly [what: string, node: Node | undefined, wanted: readonly string[]])[] = [
    ["a contract", contract, documentKeys.contract],
    ["a tool", defs["tool"], documentKeys.tool],
    ["a rule", defs["rule"], documentKeys.rule],
    ["a counter", defs["counter"], documentKeys.counter],
    ["a requirement", map(defs["requirement"]), documentKeys.requirement],
    ["otherwise", map(defs["tool"]?.properties?.["otherwise"]), documentKeys.outcome],
    ["a limit", map(defs["limit"]), documentKeys.limit],
    ["a schema", map(defs["schema"]), keywords],
    ["a pack", pack, documentKeys.pack],
    ["the commands of a contract", contract.properties?.["commands"], documentKeys.commands],
    ["a form", defs["form"], documentKeys.form],
    ["a program", defs["program"], documentKeys.program],
    ["an exception", defs["exception"], documentKeys.exception],
    ["a form that is left out", defs["weaker"], documentKeys.weaker],
    ["a mandate", mandate, documentKeys.mandate],
    ["a contract in a mandate", map(mandate.$defs?.["entry"]), documentKeys.entry],
    ["a test file", tests, fileKeys],
    ["a template", testDefs["template"], templateKeys],
    ["a case", testDefs["case"], caseKeys],
    ["a case of several calls", testDefs["session"], sessionKeys],
    ["a call", testDefs["call"], callKeys],
    ["a decision", testDefs["decision"], decisionKeys],
    ["an outcome", testDefs["outcome"], outcomeKeys],
    ["an expectation", map(testDefs["expect"]), expectKeys],
    ["an expected approval", testDefs["approval"], approvalKeys],
  ];
  for (const [what, node, wanted] of table)
    test(`the schema has the reader's keys for ${what}`, () => assert.deepEqual(keys(node), wanted.toSorted()));

  test("each enum of a schema has the reader's words", () => {
    const words = (node: Node | undefined): readonly string[] => (node?.enum ?? []).map(String).toSorted();
    const counter = defs["counter"]?.properties ?? {};
    assert.deepEqual(words(defs["verdict"]), verdicts.toSorted());
    assert.deepEqual(words(counter["counting"]), countings.toSorted());
    assert.deepEqual(words(counter["week_starts"]), weekdays.toSorted());
    assert.deepEqual(
      words(counter["within"]?.anyOf?.find((node) => node.enum !== undefined)),
      calendarUnits.toSorted(),
    );
    assert.deepEqual(words(tests.properties?.["mode"]), modes.toSorted());
    assert.deepEqual(words(testDefs["status"]), approvalStatuses.toSorted());
    assert.deepEqual(words(testDefs["approval"]?.properties?.["next"]), nextSteps.toSorted());
    assert.deepEqual(words(testDefs["decision"]?.properties?.["expect"]), decisionResults.toSorted());
    const outcome = testDefs["outcome"]?.properties ?? {};
    assert.deepEqual(words(outcome["outcome"]), outcomeRows.outcomeStatuses.toSorted());
    assert.deepEqual(words(outcome["expect"]), outcomeRefusals.toSorted());
    assert.deepEqual(
      words({ enum: (defs["jsonType"]?.enum ?? []).filter((type) => type !== null) }),
      jsonTypes.toSorted(),
    );
  });

  test("each key of a schema has a description", () => {
    for (const [what, node] of table)
      for (const [name, { description }] of Object.entries(node?.properties ?? {}))
        assert.ok(description !== undefined || name in defs || name in testDefs, `${name} of ${what}`);
  });
});

suite("references to a schema", () => {
  const pointed = (text: string): string => /^# yaml-language-server: \$schema=(\S+)\n/.exec(text)?.[1] ?? "";

  for (const path of files) {
    test(`${path} names the schema of its kind`, () => {
      const target = join(dirname(path), pointed(read(path)));
      assert.equal(target, join("spec", "schemas", `${kindOf(path, read(path))}.schema.json`));
    });
  }

  test("the files that init writes name a schema that init writes too and `schema` prints", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "svc-gate-schema-"));
    t.after(() => rmSync(folder, { recursive: true }));
    assert.equal((await command(["init", folder])).code, 0);
    for (const path of ["mandate.yaml", "contracts/starter.yaml"]) {
      const target = join(folder, dirname(path), pointed(readFileSync(join(folder, path), "utf8")));
      assert.ok(existsSync(target), target);
      const kind = path === "mandate.yaml" ? "mandate" : "contract";
      assert.equal(readFileSync(target, "utf8"), (await command(["schema", kind])).stdout);
    }
    const refused = await command(["schema", "contracts"]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /has no schema/);
  });
});
