/**
 * Goal: the reader gives JSON its meaning: it accepts nothing that JSON.parse refuses, gives the same values, and
 * refuses more than JSON.parse only for a listed reason. Method: random values, random texts and mutated good texts are
 * compared with JSON.parse; numbers by exact value, with a second, naive reading of their digits. The seed is printed
 * if a case fails.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { Decimal, limits, readJson, type Json } from "../../../packages/core/src/wire/mod.ts";
import { control } from "../../support/controls/control.ts";
import { randomRuns } from "../../support/random-test.ts";

/** `npm test` runs a part of the random cases. */
const share = Number(process.env["PROPERTY_SHARE"] ?? 1);

const runs = 4000 * share;

/** How the reader's sentences start for texts that only JSON.parse accepts. */
const stricter: readonly RegExp[] = [
  /^a byte order mark/,
  /^expected one JSON object/,
  /^the member ".*" appears twice/,
  /\bNUL$/,
  /\bunpaired surrogate$/,
  /^nested deeper than 64 levels/,
  /^a number of \d+ digits/,
  /^an exponent beyond 400/,
];

/** Returns the number's numerator and power of ten, read without the reader's code. */
function naive(text: string): string {
  const [, sign = "", whole = "", fraction = "", power = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+(?=\d)/, "");
  const zeros = /0*$/.exec(digits)?.[0].length ?? 0;
  const kept = digits.slice(0, digits.length - zeros);
  return kept === "" ? "0" : `${sign}${kept}e${Number(power) - fraction.length + zeros}`;
}

/** Returns the value as JSON.parse has it, with each number as its sent text. */
function plain(value: Json): unknown {
  if (typeof value === "number") return naive(String(value));
  if (value instanceof Decimal) return naive(value.text);
  if (Array.isArray(value)) return value.map(plain);
  if (!(value instanceof Map)) return value;
  return [...value].map(([name, member]) => [name, plain(member)]);
}

/** Returns the same from JSON.parse, which passes a number's source text to its reviver. */
function parsed(text: string): unknown {
  type Reviver = (name: string, value: unknown, context: { readonly source?: string }) => unknown;
  const revive: Reviver = (_, value, { source }) => {
    if (typeof value === "number") return naive(source ?? "");
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    return Object.entries(value);
  };
  return JSON.parse(text, revive as (name: string, value: unknown) => unknown);
}

/** Returns a description of the difference; undefined if both agree. */
function difference(text: string, read = readJson): string | undefined {
  // A bug of Node 26.10: after the name `\`, JSON.parse reads each name of one escaped character as that name.
  if (/"\\(?:u[0-9a-fA-F]{4}|[^u])"\s*:/.test(text)) return undefined;
  const ours = read(text);
  let theirs: unknown;
  try {
    theirs = parsed(text);
  } catch {
    return ours.ok ? "taken, and JSON.parse refuses it" : undefined;
  }
  if (!ours.ok) {
    const { sentence } = ours.problem;
    return stricter.some((reason) => reason.test(sentence)) ? undefined : `refused: ${sentence}`;
  }
  return same(
    [...ours.value.members].map(([name, value]) => [name, plain(value)]),
    theirs,
  )
    ? undefined
    : "another value";
}

/** Compares members as a set, because JSON.parse puts names that look like indexes first. */
function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

function sorted(value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  const isMembers = value.every((item) => Array.isArray(item) && item.length === 2 && typeof item[0] === "string");
  const items = value.map(sorted);
  return isMembers ? items.toSorted((x, y) => (JSON.stringify(x) < JSON.stringify(y) ? -1 : 1)) : items;
}

function agrees(text: string): void {
  const problem = difference(text);
  assert.equal(problem, undefined, `${problem}: ${JSON.stringify(text)}`);
}

const hostileNames = ["__proto__", "constructor", "toString", "a", "a", "", "\u0000", "é", "1", "01", "\ud800"];
const numberText = fc
  .tuple(
    fc.constantFrom("", "-", "+", "--"),
    fc.constantFrom("0", "1", "12", "00", "9007199254740993", "1".repeat(40), "1".repeat(41), "", "٣"),
    fc.constantFrom("", ".", ".0", ".10", ".5e", "e", "e0", "E+400", "e-401", "e1.5", ".1e3"),
  )
  .map((parts) => parts.join(""));
const escapeText = fc.constantFrom(
  "\\n",
  "\\u0061",
  "\\ud83d\\ude00",
  "\\ud800",
  "\\/",
  "\\x",
  "\\",
  "\t",
  "😀",
  "\u2028",
);
const stringText = fc.array(fc.oneof(escapeText, fc.string({ maxLength: 3 }))).map((parts) => `"${parts.join("")}"`);
const space = fc.constantFrom("", "", "", " ", "\n", "\t\r", "\u00a0", "/**/");

const { value: valueText } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom("null", "true", "false", "nul", "NaN"),
    numberText,
    stringText,
    fc
      .array(
        fc.tuple(space, tie("value")).map((pair) => pair.join("")),
        { maxLength: 4 },
      )
      .map((items) => `[${items.join(",")}]`),
    fc
      .array(
        fc.tuple(
          fc.constantFrom(...hostileNames).map((name) => JSON.stringify(name)),
          space,
          tie("value"),
        ),
        { maxLength: 4 },
      )
      .map((members) => `{${members.map(([name, gap, value]) => `${name}${gap}:${gap}${value}`).join(",")}}`),
  ),
}));
const goodObject = fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ stringUnit: "binary" }));

suite("the JSON reader compared with JSON.parse", () => {
  test("the reader reads everything that JSON.stringify writes, with the same value", (t) => {
    fc.assert(
      fc.property(goodObject, fc.integer({ min: 0, max: 3 }), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const names = Object.keys(value);
        fc.pre(!/\\u0000|\\ud[89a-f]/.test(text) && names.every((name) => !name.includes("\0")));
        assert.ok(readJson(text).ok, text);
        agrees(text);
      }),
      randomRuns(t, runs),
    );
  });

  test("the reader agrees with JSON.parse on near-JSON or refuses it for a listed reason", (t) => {
    fc.assert(
      fc.property(valueText, space, (value, gap) => agrees(`${gap}{"x":${gap}${value}}`)),
      randomRuns(t, runs),
    );
  });

  test("the reader agrees with JSON.parse after one character is removed, inserted or replaced", (t) => {
    const units = fc.constantFrom(...'{}[]:,"\\0-.eE+ \n\ttn\u0000\ud800'.split(""));
    fc.assert(
      fc.property(
        goodObject,
        fc.nat(),
        units,
        fc.constantFrom("remove", "insert", "replace"),
        (value, at, unit, how) => {
          const text = JSON.stringify(value);
          const from = at % (text.length + 1);
          agrees(text.slice(0, from) + (how === "remove" ? "" : unit) + text.slice(how === "insert" ? from : from + 1));
        },
      ),
      randomRuns(t, runs),
    );
  });

  test("the reader agrees with JSON.parse on random text", (t) => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => agrees(text)),
      randomRuns(t, runs),
    );
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 20 }), (text) => agrees(`{"a":${text}}`)),
      randomRuns(t, runs),
    );
  });

  test("the text of a member is its JSON without white space outside strings", (t) => {
    fc.assert(
      fc.property(goodObject, fc.integer({ min: 0, max: 3 }), (value, indent) => {
        const read = readJson(JSON.stringify(value, null, indent));
        if (!read.ok) return;
        for (const [name, member] of Object.entries(value))
          assert.equal(read.value.source(name), JSON.stringify(member));
      }),
      randomRuns(t, runs),
    );
  });

  test("the reader reads an object nested at the depth limit", () => {
    agrees(`{"a":${"[".repeat(limits.jsonDepthMax - 1)}${"]".repeat(limits.jsonDepthMax - 1)}}`);
  });

  control("positive control: a reader that rounds, trims, repairs or refuses valid JSON is noticed", () => {
    const lax = (repair: (text: string) => string) => (text: string) => readJson(repair(text));
    assert.equal(
      difference(
        '{"a":0.1}',
        lax((text) => text.replace("0.1", "0.10000000000000001")),
      ),
      "another value",
    );
    assert.equal(
      difference(
        '{"a":"x "}',
        lax((text) => text.replace(" ", "")),
      ),
      "another value",
    );
    assert.match(
      difference(
        '{"a":1,}',
        lax((text) => text.replace(",}", "}")),
      ) ?? "",
      /^taken/,
    );
    assert.match(
      difference(
        '{"a":9007199254740993}',
        lax((text) => text.replace("3}", "2}")),
      ) ?? "",
      /^another/,
    );
    assert.match(
      difference(
        '{"a":1}',
        lax(() => "{a:1}"),
      ) ?? "",
      /^refused/,
    );
  });
});
