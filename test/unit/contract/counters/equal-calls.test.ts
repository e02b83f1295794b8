/**
 * Goal: a counter `per: call` counts exactly the calls with an equal tool and an equal input. Method: tables of inputs in
 * several spellings, and of inputs that differ in one thing.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { keyText, shownKey } from "../../../../packages/records/src/explain/key.ts";
import { prepare, type Caller, type CounterUpdate } from "../../../../packages/core/src/contract/mod.ts";
import { compile, contractText, judge, request, snapshot, type Call } from "../../../support/contract-kit.ts";

const caller: Caller = { keyName: "default", sessionId: "s" };

function withCounter(definition: string): string {
  return contractText({ requires: "platform.present", counters: `{ k: ${definition} }` });
}

function updates(text: string, call: Call, from: Caller = caller): readonly CounterUpdate[] {
  return prepare(compile(text), request({ platform: snapshot, ...call }), from).updates;
}
suite("a counter per call counts calls with equal tools and inputs", () => {
  const text = withCounter("{ of: t, per: call }");
  const keyOf = (input: unknown, contract = text, from: Caller = caller): string | undefined =>
    updates(contract, { input }, from)[0]?.key;

  test("numbers are compared by value, and members in any order", () => {
    const equal = [
      '{"n": 1, "s": "x", "list": ["a", "b"], "open": {"p": 1, "q": 2.50}, "any": [{"a": 1e2}]}',
      '{"any": [{"a": 100.0}], "open": {"q": 2.5, "p": 1.0}, "list": ["a", "b"], "s": "\\u0078", "n": 10e-1}',
    ];
    assert.equal(new Set(equal.map((input) => keyOf(input))).size, 1);
    assert.equal(keyOf(equal[0], text, { keyName: "another", sessionId: null }), keyOf(equal[0]));
  });

  test("a key has one spelling for each number, and is hardly longer than the input", () => {
    const keys = (numbers: readonly string[]): number =>
      new Set(numbers.map((number) => keyOf(`{"n": 1, "s": "x", "any": ${number}}`))).size;
    assert.equal(keys(["0", "-0", "0.0", "0e5", "-0e-3"]), 1);
    assert.equal(keys(["100", "1e2", "100.0", "0.001e5", "1.0E+2"]), 1);
    assert.equal(keys(["1", "10", "0.1", "-1", "-10", "-0.1", "1e400", "9007199254740993", "9007199254740992"]), 9);
    const many = `{"n": 1, "s": "x", "any": [${Array(1000).fill("9e400").join(",")}]}`;
    assert.ok((keyOf(many)?.length ?? 0) < 2 * many.length);
  });

  test("each other value, type, order of a list, absent member or tool is another call", () => {
    const inputs = [
      '{"n": 1, "s": "x"}',
      '{"n": 2, "s": "x"}',
      '{"n": 1, "s": "y"}',
      '{"n": 1, "s": "x", "list": []}',
      '{"n": 1, "s": "x", "list": ["a", "b"]}',
      '{"n": 1, "s": "x", "list": ["b", "a"]}',
      '{"n": 1, "s": "x", "list": ["a,b"]}',
      '{"n": 1, "s": "x", "any": null}',
      '{"n": 1, "s": "x", "any": 1}',
      '{"n": 1, "s": "x", "any": "1"}',
      '{"n": 1, "s": "x", "any": {"a": {}}}',
      '{"n": 1, "s": "x", "any": {"a": []}}',
    ];
    assert.equal(new Set(inputs.map((input) => keyOf(input))).size, inputs.length);
    const open = "{ input: { type: object, additionalProperties: true }, otherwise: ALLOW }";
    const second = `  u: ${open} # svc-gate: allow open-input because it is a test\ncounters:`;
    const two = withCounter("{ of: ['*'], per: call }").replace("counters:", second);
    const [ofT, ofU] = ["t", "u"].map((tool) => updates(two, { tool })[0]?.key);
    assert.ok(ofT !== undefined && ofU !== undefined && ofT !== ofU);
  });

  test("explain shows a person no input in a key, and programs get none either", () => {
    const key = keyOf('{"n": 1, "s": "secret"}', withCounter("{ of: t, per: [key, call] }")) ?? "";
    assert.ok(key.includes("secret"));
    assert.equal(keyText(key), 'key "default", calls equal to this one');
    assert.equal(shownKey(key), '[["key","default"],["call","t"]]');
  });

  test("members that an approval is not bound to do not count, and a change of their list starts another counter", () => {
    const unbound = text.replace("    otherwise:", "    approval: { unbound: [input.t] }\n    otherwise:");
    const [one, other] = ['{"n": 1, "s": "x", "t": "a"}', '{"n": 1, "s": "x"}'];
    assert.equal(keyOf(one, unbound), keyOf(other, unbound));
    assert.notEqual(keyOf(one), keyOf(other), "positive control: without the list it counts");
    const identities = [text, unbound].map((contract) => compile(contract).counters[0]?.identity);
    assert.notEqual(identities[0], identities[1]);
  });

  test("an input of any length has a key, and one that fails its schema is not counted", () => {
    const long = (end: string): unknown => ({ n: 1, s: "x".repeat(200_000) + end });
    assert.notEqual(keyOf(long("a")), keyOf(long("b")));
    assert.equal(judge(compile(text), { input: long("a"), platform: snapshot }).verdict, "ALLOW");
    assert.deepEqual(updates(text, { input: {} }), []);
  });
});
