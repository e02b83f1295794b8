/**
 * Goal: the text of a call from which a person starts is the same call, can be read, and is not too large for the gate.
 * Method: a table, and random calls that a JSON parser compares. Positive control: a text with a raw hidden character.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { prettyText } from "../../../packages/console/src/browser/pretty.ts";
import { limits, readJson } from "../../../packages/core/src/wire/mod.ts";
import { control } from "../../support/controls/control.ts";
import { randomRuns } from "../../support/random-test.ts";

const table: readonly (readonly [text: string, pretty: string])[] = [
  ["{}", "{}"],
  ['{"a":1.10,"b":90071992547409931}', '{\n  "a": 1.10,\n  "b": 90071992547409931\n}'],
  ['{"l":[1,"x",null],"m":[]}', '{\n  "l": [1, "x", null],\n  "m": []\n}'],
  ['{"l":[{"a":{}},[1]]}', '{\n  "l": [\n    {\n      "a": {}\n    },\n    [1]\n  ]\n}'],
  ['{"a\u200b":"\u202e\u{e0041}"}', String.raw`{` + "\n  " + String.raw`"a\u200b": "\u202e\udb40\udc41"` + "\n}"],
];

const hidden = /[\p{Cf}\p{Cc}\p{Default_Ignorable_Code_Point}\ufffc]/u;

suite("the text of a call", () => {
  test("has a line for each member, and escapes for hidden characters", () => {
    for (const [text, expected] of table) assert.equal(prettyText(text), expected);
  });

  test("is the same call", (t) => {
    const property = fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), (call) => {
      fc.pre(readJson(JSON.stringify(call)).ok);
      const text = prettyText(JSON.stringify(call));
      assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(call)));
      assert.doesNotMatch(text.replaceAll("\n", ""), hidden);
    });
    fc.assert(property, randomRuns(t, 300));
  });

  test("is one line if it would be too large for the gate", () => {
    const deep = (inner: string): string => `${'{"a":'.repeat(60)}${inner}${"}".repeat(60)}`;
    for (const inner of [`[${"1,".repeat(120_000)}1]`, `[${"{},".repeat(9000)}{}]`, `[${'{"b":1},'.repeat(5000)}1]`]) {
      const text = prettyText(deep(inner));
      assert.ok(text.length <= limits.bodyBytesMax, String(text.length));
      assert.equal(JSON.stringify(JSON.parse(text)), deep(inner));
    }
  });

  control("positive control: a raw hidden character is noticed", () => {
    assert.match(JSON.stringify({ a: "\u200b" }), hidden);
    assert.match(JSON.stringify({ a: "\ufffc" }), hidden);
  });
});
