/**
 * Goal: `sql` reports everything that a text would do in PostgreSQL, or fails. Method: a corpus of hostile and plain
 * texts with the whole record of each (spec/vectors/functions/sql.json). Random texts and texts at the limits give a
 * value or an `EvaluationError`, and the parser still works afterwards. A guard by regular expression fails on the
 * corpus.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { before, suite, test } from "node:test";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { memberTypes, nodes } from "../../../../../packages/readers/src/sql/nodes.ts";
import { loadFunctions } from "../../../../../packages/core/src/contract/mod.ts";
import { functions } from "../../../../../packages/readers/src/ir.ts";
import { compile, conditionText, judge, snapshot } from "../../../../support/contract-kit.ts";
import { readRows, record, type Json } from "../../../../support/contract-records.ts";
import { control } from "../../../../support/controls/control.ts";
import { randomRuns } from "../../../../support/random-test.ts";
import { sentencesOf } from "../../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** `npm test` runs a part of the random cases. */
const share = Number(process.env["PROPERTY_SHARE"] ?? 1);

const sql = functions.find(({ name }) => name === "sql");
const rows = readRows("sql");

/** Returns the record of a text as JSON, or the message of its error. */
function read(text: string): Json | string {
  assert.ok(sql !== undefined);
  return record(sql, text);
}

function seen(of: Json): Json {
  const statements = of["statements"] as readonly Json[];
  return { ...of, statements: statements.map(({ kind }) => kind), limited: statements.map(({ limited }) => limited) };
}

test("a call of sql() is an error until the parser is loaded", { tags: ["contract.language"] }, () => {
  const message = read("select 1");
  assert.ok(typeof message === "string");
  says("the parser is not loaded", message);
});

suite("the function sql()", () => {
  before(async () => sql?.load?.());

  test(`sql() gives the expected result for ${rows.length} texts`, { tags: ["contract.language"] }, () => {
    assert.ok(rows.length >= 50);
    for (const { text, expected, why } of rows) {
      const found = read(text);
      const label = `${why}: ${JSON.stringify(text.slice(0, 200))}`;
      if (expected === "error") assert.equal(typeof found, "string", label);
      else {
        assert.ok(typeof found === "object", `${label}: ${JSON.stringify(found)}`);
        const parts = seen(found);
        assert.deepEqual(Object.fromEntries(Object.keys(expected).map((key) => [key, parts[key]])), expected, label);
      }
    }
  });

  test("every node type of the grammar has a role, and every untyped member has a type", () => {
    const { types, untyped } = grammar();
    assert.deepEqual(missing(types, untyped, nodes, memberTypes), []);
    assert.ok(types.length > 250 && untyped.length > 100, `${types.length} types, ${untyped.length} members`);
  });

  control("positive control: a missing node type or a missing member is noticed", () => {
    const { types, untyped } = grammar();
    const fewerNodes = new Map([...nodes].filter(([type]) => type !== "SortBy"));
    const fewerMembers = new Map([...memberTypes].filter(([name]) => name !== "typeName"));
    assert.deepEqual(missing(types, untyped, fewerNodes, memberTypes), ["SortBy"]);
    assert.ok(missing(types, untyped, nodes, fewerMembers).includes("TypeCast.typeName: TypeName"));
  });

  control("positive control: a guard that looks for words accepts harmful texts of the corpus", () => {
    const isAllowed = (text: string): boolean => /^\s*(?:select|with|explain|values|table|show)\b/i.test(text);
    const isForbidden = (text: string): boolean => /\b(?:insert|update|delete|drop|alter|truncate|grant)\b/i.test(text);
    const writing = rows.filter(({ expected }) => expected === "error" || expected["readOnly"] === false);
    const byWord = writing.filter(({ text }) => isAllowed(text));
    const byWords = writing.filter(({ text }) => isAllowed(text) && !isForbidden(text));
    assert.ok(byWord.length > 25, `${byWord.length}`);
    assert.ok(byWords.length > 15, `${byWords.length}`);
  });

  test("every text gives a value or an EvaluationError, and the parser still works", (t) => {
    const words =
      "select from where with as ( ) ; , ' \" $$ -- /* */ \n delete update " +
      "insert into t a.b 1 * = :: not and or union values for explain do copy";
    const piece = fc.oneof(fc.constantFrom(...words.split(" ")), fc.string({ unit: "binary", maxLength: 6 }));
    const known = fc.constantFrom(...rows.map(({ text }) => text.slice(0, 300)));
    const mutated = fc
      .tuple(known, fc.nat(300), fc.nat(20), piece)
      .map(([text, at, length, put]) => text.slice(0, at) + put + text.slice(at + length));
    const made = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(" "));
    fc.assert(
      fc.property(fc.oneof(made, mutated), (text) => {
        read(text);
      }),
      randomRuns(t, 3000 * share),
    );
    works();
  });

  test("the parser still works after texts below, at and above each bound", () => {
    const edges: readonly (readonly [before: string, unit: string, after: string])[] = [
      ["select ", "1+", "1"],
      ["select ", "not ", "true"],
      ["select ", "- ", "1"],
      ["select 1", "::int", ""],
      ["select 1", " union select 1", ""],
      ["select 'a'", " || 'a'", ""],
      ["select a from t", " join t on true", ""],
      ["select now()", " at time zone 'a'", ""],
      ["select a", ".a", " from t"],
      ["select a", "[1]", ""],
      ["select ", "case when a then ", ""],
      ["select a", " collate c", ""],
      ["select a", " is null", ""],
      ["select ", "a,", "a"],
      ["insert into t values (1)", ",(-1)", ""],
      ["with ", "a as (select 1), ", "b as (select 1) select 1"],
    ];
    for (const [start, unit, end] of edges) {
      for (const times of [60, 250, 700, 1400, 2200, 5000]) {
        read(start + unit.repeat(times) + end);
        works();
      }
    }
    for (const depth of [60, 64, 65, 1000, 15_000]) {
      read(`select ${"(".repeat(depth)}1${")".repeat(depth)}`);
      read(`select ${"(select ".repeat(Math.min(depth, 3000))}1${")".repeat(Math.min(depth, 3000))}`);
      works();
    }
  });

  control("positive control: without the bounds, a very long text crashes the parser", async () => {
    // One fault in its own thread: after some thirty faults the parser gives wrong answers or hangs.
    const worker = new Worker(
      `const { parentPort } = require("node:worker_threads");
       import("libpg-query").then(async ({ loadModule, parseSync }) => {
         await loadModule();
         try { parseSync("select " + "1+".repeat(20_000) + "1"); } catch (error) { parentPort.postMessage(error.name); }
       });`,
      { eval: true, resourceLimits: { stackSizeMb: 1 } },
    );
    const [name] = await once(worker, "message");
    assert.equal(name, "RangeError");
    await worker.terminate();
  });

  test("sql() accepts a text at each bound and refuses a larger one", () => {
    assert.equal(typeof read(`select '${"x".repeat(32_768 - 9)}'`), "object");
    assert.equal(typeof read(`select '${"x".repeat(32_768 - 8)}'`), "string");
    assert.equal(typeof read(`select ${"(".repeat(64)}1${")".repeat(64)}`), "object");
    assert.equal(typeof read(`select ${"(".repeat(65)}1${")".repeat(65)}`), "string");
    assert.equal(typeof read("select 1;".repeat(200)), "object");
    assert.equal(typeof read("select 1;".repeat(201)), "string");
  });

  test("a contract that calls sql() decides, and blocks a text in doubt", async () => {
    const policySet = compile(
      conditionText("!sql(input.s).readOnly || sql(input.s).reads.exists(t, !(t in limits.names))"),
    );
    const verdict = (s: string): string => judge(policySet, { platform: snapshot, input: { n: 1, s } }).verdict;
    await loadFunctions(policySet);
    assert.equal(verdict("select count(*) from alice"), "ALLOW");
    assert.equal(verdict("select count(*) from secrets"), "BLOCK");
    assert.equal(verdict("with x as (delete from alice returning *) select * from alice"), "BLOCK");
    assert.equal(verdict("select pg_sleep(9) from alice"), "BLOCK");
    assert.equal(verdict("select"), "ALLOW");
    assert.equal(verdict("selec"), "BLOCK");
  });
});

interface Grammar {
  readonly types: readonly string[];
  /** Members that always have one node type, so the tree does not name it. */
  readonly untyped: readonly { readonly node: string; readonly member: string; readonly type: string }[];
}

/** PostgreSQL's node types and their members, from the parser's declarations. */
function grammar(): Grammar {
  const parser = createRequire(import.meta.url).resolve("libpg-query");
  const file = createRequire(parser)
    .resolve("@pgsql/types")
    .replace(/index\.js$/, "types.d.ts");
  const text = readFileSync(file, "utf8");
  const union = text.slice(text.indexOf("export type Node ="), text.indexOf("export interface"));
  const types = [...union.matchAll(/^ {4}(\w+): \w+;$/gm)].map(([, type]) => type ?? "");
  const untyped = [...text.matchAll(/export interface (\w+) \{(.*?)\n\}/gs)].flatMap(([, node = "", members = ""]) =>
    [...members.matchAll(/(\w+)\??: (\w+);/g)]
      .map(([, member = "", type = ""]) => ({ node, member, type }))
      .filter(({ type }) => types.includes(type)),
  );
  return { types, untyped };
}

/** Returns the entries that the tables lack. A refused node needs no types for its members. */
function missing(
  types: Grammar["types"],
  untyped: Grammar["untyped"],
  roles: ReadonlyMap<string, string>,
  members: ReadonlyMap<string, string>,
): readonly string[] {
  const known = untyped.filter(({ node, type }) => roles.get(node) !== "refused" && roles.get(type) !== "refused");
  return [
    ...types.filter((type) => !roles.has(type)),
    ...known
      .filter(({ node, member, type }) => (members.get(`${node}.${member}`) ?? members.get(member)) !== type)
      .map(({ node, member, type }) => `${node}.${member}: ${type}`),
  ];
}

function works(): void {
  assert.equal((read("select a from t") as Json)["readOnly"], true);
}
