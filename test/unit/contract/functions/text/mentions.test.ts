/**
 * Goal: `mentions` finds a value in a text only if the text contains the whole value as a word. Method: a corpus of one
 * line per case, with hostile neighbours and look-alikes; generated texts around a name, with characters that may and
 * may not touch it.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { compileExpression } from "../../../../../packages/readers/src/ir.ts";
import { randomRuns } from "../../../../support/random-test.ts";

const corpus = new URL("../../../../../spec/vectors/functions/mentions.json", import.meta.url);

interface Corpus {
  readonly rows: readonly (readonly [text: string, value: string | number, mentioned: boolean])[];
}

function mentions(text: string, value: string | number): string {
  const source = `mentions(${literal(text)}, ${literal(value)})`;
  const compiled = compileExpression(source);
  assert.ok(compiled.ok, source);
  const result = compiled.value.evaluate();
  assert.ok(result.ok, source);
  return result.value.shown;
}

/** CEL has the text escapes of JSON, except for pairs of surrogates. */
function literal(value: string | number): string {
  if (typeof value === "number") return String(value);
  return `"${Array.from(value, (character) => escaped(character)).join("")}"`;
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (/^[\w @.,:;#$%'+-]$/.test(character)) return character;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

test("mentions agrees with the corpus for every text and value", () => {
  const { rows } = JSON.parse(readFileSync(corpus, "utf8")) as Corpus;
  assert.ok(rows.length > 100);
  for (const [text, value, mentioned] of rows) {
    assert.equal(mentions(text, value), String(mentioned), JSON.stringify([text, value]));
  }
});

test("a name between gaps is mentioned, but not with another character on either side", (t) => {
  const word = fc.stringMatching(/^[A-Za-z0-9]{1,12}$/);
  const gap = fc.constantFrom(" ", "\n", "'", '"', "(", ")", "<", ">", "[", "]", "", ";");
  const growth = fc.constantFrom("a", "Z", "0", "_", "-", "@", "/", "é", "\u200b", "\u0430", "+", "%", "\u0301");
  fc.assert(
    fc.property(word, gap, gap, growth, growth, (name, before, after, left, right) => {
      assert.equal(mentions(`${before}${name}${after}`, name), "true");
      assert.equal(mentions(`${before}${left}${name}${after}`, name), "false");
      assert.equal(mentions(`${before}${name}${right}${after}`, name), "false");
    }),
    randomRuns(t),
  );
});

test("an amount is mentioned with or without trailing zeros, and other amounts are not", (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 99_999 }), fc.integer({ min: 0, max: 99 }), (whole, cents) => {
      const written = `${whole}.${String(cents).padStart(2, "0")}`;
      assert.equal(mentions(`pay $${written}, please`, Number(written)), "true");
      assert.equal(mentions(`pay $${written}, please`, whole * 10 + 1), "false");
      assert.equal(mentions(`pay $${written}9, please`, Number(written)), "false");
    }),
    randomRuns(t),
  );
});
