/**
 * Goal: a feature of CEL in the contract language has CEL's meaning. Method: CEL's own conformance and parser cases
 * (cel-spec), each run through the module's public API. A case passes or is listed with its reason in
 * cel-conformance-skips.json; a listed case that passes or no longer exists fails the list.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import {
  getConformanceSuite,
  getParsingSuite,
  type IncrementalTest,
  type IncrementalTestSuite,
} from "@bufbuild/cel-spec/testdata/tests.js";
import { compileExpression } from "../../../../packages/readers/src/ir.ts";
import { readJson, type Json } from "../../../../packages/core/src/wire/mod.ts";
import { control } from "../../../support/controls/control.ts";

type CelValue = Extract<IncrementalTest["original"]["resultMatcher"], { case: "value" }>["value"];
type Skips = {
  readonly reasons: Readonly<Record<string, string>>;
  readonly skips: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
};
type Case = { readonly section: string; readonly name: string; readonly run: () => string };

const list: Skips = JSON.parse(readFileSync(new URL("cel-conformance-skips.json", import.meta.url), "utf8"));
/** Static errors that mean "this is not in the language". A conformance case never means these by an error. */
const notInLanguage = new Set(["left-out", "unknown-function", "syntax"]);

/** A value that JSON cannot represent: bytes, types, messages, and keys that are not texts. */
class NotJson extends Error {}

function jsonText({ kind }: CelValue): string {
  switch (kind.case) {
    case "nullValue":
      return "null";
    case "boolValue":
    case "int64Value":
    case "uint64Value":
      return String(kind.value);
    case "doubleValue":
      if (!Number.isFinite(kind.value)) throw new NotJson(`the double ${kind.value}`);
      return String(kind.value);
    case "stringValue":
      return JSON.stringify(kind.value);
    case "listValue":
      return `[${kind.value.values.map(jsonText).join(",")}]`;
    case "mapValue":
      return `{${kind.value.entries.map(({ key, value }) => `${keyText(key)}:${optionalText(value)}`).join(",")}}`;
    default:
      throw new NotJson(String(kind.case));
  }
}

function keyText(key: CelValue | undefined): string {
  if (key?.kind.case !== "stringValue") throw new NotJson("a key that is not a text");
  return JSON.stringify(key.kind.value);
}

function optionalText(value: CelValue | undefined): string {
  if (value === undefined) throw new NotJson("nothing");
  return jsonText(value);
}

function json(text: string): Json {
  const read = readJson(`{"value":${text}}`);
  assert.ok(read.ok, text);
  return read.value.members.get("value") ?? null;
}

/** Returns a value in the spelling of `evaluate`. */
function spelling(value: CelValue): string {
  const compiled = compileExpression("value", new Map([["value", json(jsonText(value))]]));
  assert.ok(compiled.ok);
  const result = compiled.value.evaluate();
  assert.ok(result.ok);
  return result.value.exact;
}

/** Returns the expected value's spelling, or undefined for an error. */
function expectation({ original: { resultMatcher: matcher } }: IncrementalTest): string | undefined {
  if (matcher.case === undefined) return "true";
  if (matcher.case === "value") return spelling(matcher.value);
  if (matcher.case === "typedResult" && matcher.value.result !== undefined) return spelling(matcher.value.result);
  if (matcher.case === "evalError" || matcher.case === "anyEvalErrors") return undefined;
  throw new NotJson(matcher.case);
}

/** Returns "passes", or a description of the failure. */
function outcome(each: IncrementalTest): string {
  try {
    const expected = expectation(each);
    const bindings = Object.entries(each.original.bindings).map(([name, { kind }]): [string, Json] => {
      if (kind.case !== "value") throw new NotJson(String(kind.case));
      return [name, json(jsonText(kind.value))];
    });
    return compare(each.original.expr, new Map(bindings), expected);
  } catch (error) {
    if (error instanceof NotJson) return `not JSON: ${error.message}`;
    throw error;
  }
}

function compare(text: string, bindings: ReadonlyMap<string, Json>, expected: string | undefined): string {
  const compiled = compileExpression(text, bindings);
  if (!compiled.ok) {
    const [first] = compiled.problem;
    const isError = expected === undefined && !notInLanguage.has(first?.code ?? "");
    return isError ? "passes" : `does not compile (${first?.code}): ${first?.message}`;
  }
  const result = compiled.value.evaluate();
  if (!result.ok) return expected === undefined ? "passes" : `an error: ${result.problem}`;
  return result.value.exact === expected ? "passes" : `${result.value.exact}, not ${expected ?? "an error"}`;
}

/** Runs a parser case: the parser must refuse what cel-go refuses and read what cel-go reads. */
function parses({ original: { expr }, error, ast }: IncrementalTest): string {
  const compiled = compileExpression(expr);
  const problems = compiled.ok ? [] : compiled.problem;
  if (ast === undefined) return problems.length > 0 ? "passes" : `compiles, against: ${error ?? "no tree"}`;
  const syntax = problems.find(({ code }) => code === "syntax");
  return syntax === undefined ? "passes" : `a syntax error: ${syntax.message}`;
}

function casesOf(from: IncrementalTestSuite, run: (each: IncrementalTest) => string, path: readonly string[]): Case[] {
  const section = path.join("/");
  const seen = new Map<string, number>();
  const own = from.tests.map((each): Case => {
    const count = (seen.get(each.name) ?? 0) + 1;
    seen.set(each.name, count);
    return { section, name: count === 1 ? each.name : `${each.name} #${count}`, run: () => run(each) };
  });
  return [...own, ...from.suites.flatMap((inner) => casesOf(inner, run, [...path, inner.name]))];
}

const cases = [...casesOf(getConformanceSuite(), outcome, []), ...casesOf(getParsingSuite(), parses, ["parsing"])];
const outcomes = new Map(cases.map(({ section, name, run }) => [`${section}/${name}`, run()]));

function listed({ skips }: Skips): Map<string, string> {
  const found = new Map<string, string>();
  for (const [section, reasons] of Object.entries(skips)) {
    for (const [reason, names] of Object.entries(reasons)) {
      for (const name of names) found.set(`${section}/${name}`, reason);
    }
  }
  return found;
}

function faults(skips: Skips): string[] {
  const known = listed(skips);
  const failing = [...outcomes].filter(([name, result]) => result !== "passes" && !known.has(name));
  const stale = [...known.keys()].filter((name) => (outcomes.get(name) ?? "passes") === "passes");
  const unexplained = [...known].filter(([, reason]) => skips.reasons[reason] === undefined);
  return [
    ...failing.map(([name, result]) => `${name}: ${result}`),
    ...stale.map((name) => `${name} is listed, and ${outcomes.has(name) ? "passes" : "is no more"}`),
    ...unexplained.map(([name, reason]) => `${name} is listed for "${reason}", which the list does not explain`),
  ];
}

suite("CEL's conformance cases", () => {
  test("over 2400 conformance cases exist, and over 600 of them pass", { tags: ["contract.language"] }, () => {
    const passing = [...outcomes.values()].filter((result) => result === "passes").length;
    assert.ok(cases.length > 2400 && outcomes.size === cases.length, `${cases.length} cases, ${outcomes.size} names`);
    assert.ok(passing > 600, `${passing} of ${cases.length} pass`);
  });

  test(
    "every case passes or is listed with a reason, and the list is not stale",
    { tags: ["contract.language"] },
    () => {
      assert.deepEqual(faults(list), []);
    },
  );

  test("no listed case reveals a defect of the engine", () => {
    assert.deepEqual(
      [...outcomes].filter(([, result]) => result.includes("the engine failed")),
      [],
    );
  });

  control("positive control: an unlisted, stale, missing or unexplained case is noticed", () => {
    const [passing] = [...outcomes].find(([, result]) => result === "passes") ?? [""];
    const [failing] = listed(list).keys();
    const at = passing.lastIndexOf("/");
    const doctored: Skips = {
      reasons: list.reasons,
      skips: { ...list.skips, [passing.slice(0, at)]: { "no-reason": [passing.slice(at + 1), "gone"] } },
    };
    assert.equal(faults(doctored).length >= 4, true, String(failing));
    assert.ok(faults({ reasons: list.reasons, skips: {} }).length > 1000);
  });
});
