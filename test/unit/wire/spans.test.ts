/**
 * Goal: the search for a member's value in a text finds it exactly, or not at all. Method: a table of texts with the
 * found parts. Random objects, written with random escapes, are compared with a reader that knows no positions: the
 * text at a span must parse to the member, and with `null` instead the whole must parse to the object with `null`.
 * The seed is printed if a case fails.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { findMembers, limits, readJson, type Json } from "../../../packages/core/src/wire/mod.ts";
import { control } from "../../support/controls/control.ts";
import { randomRuns, type RandomRuns } from "../../support/random-test.ts";

const pathOf = (name: string): readonly string[] => name.split(".");

/** Returns the text of each named member's value; undefined if it was not found. */
function cut(text: string, ...names: readonly string[]): readonly (string | undefined)[] {
  return findMembers(text, names.map(pathOf)).map((span) => span && text.slice(span.from, span.to));
}

const table: readonly (readonly [what: string, text: string, found: Readonly<Record<string, string | undefined>>])[] = [
  ["an empty object", "{}", { a: undefined, "a.b": undefined }],
  ["null, which stands for a missing snapshot", "null", { a: undefined }],
  ["a list in place of an object", '["a",{"b":1}]', { a: undefined, "a.b": undefined }],
  ["numbers as they were sent", '{"a":1.50e+02,"b":-0}', { a: "1.50e+02", b: "-0" }],
  ["the last member", '{"b":[],"a":true}', { a: "true" }],
  ["the literals null, true and false", '{"a":null,"b":true,"c":false}', { a: "null", b: "true", c: "false" }],
  ["an empty string", '{"a":"","b":1}', { a: '""', b: "1" }],
  [
    "an object and its members",
    '{"a":{"b":{"c":1},"d":2}}',
    {
      a: '{"b":{"c":1},"d":2}',
      "a.b": '{"c":1}',
      "a.b.c": "1",
      "a.d": "2",
      "a.c": undefined,
    },
  ],
  [
    "the same name at other depths",
    '{"x":{"a":1},"a":{"x":{"a":2}}}',
    { a: '{"x":{"a":2}}', "x.a": "1", "a.x.a": "2" },
  ],
  [
    "paths through an array, a string or a number",
    '{"a":[{"b":1}],"c":"{\\"b\\":1}","d":1}',
    {
      a: '[{"b":1}]',
      "a.b": undefined,
      "c.b": undefined,
      "d.b": undefined,
    },
  ],
  [
    "an array of closing brackets",
    '{"a":["}","]",{"}":"{"},[[]]],"b":2}',
    {
      a: '["}","]",{"}":"{"},[[]]]',
      b: "2",
    },
  ],
  [
    "quotes and backslashes in strings",
    String.raw`{"x":"\\","y":"\"}","a":"\\\"","b":1}`,
    {
      a: String.raw`"\\\""`,
      b: "1",
    },
  ],
  ["a name with escapes", String.raw`{"cust\u006fmer":{"\u0065mail":"x@y"}}`, { "customer.email": '"x@y"' }],
  ["names that only look alike", String.raw`{"cust\\u006fmer":1,"customer ":2,"Customer":3}`, { customer: undefined }],
  [
    "names that prototypes also have",
    '{"__proto__":{"constructor":1}}',
    {
      "__proto__.constructor": "1",
      constructor: undefined,
      toString: undefined,
    },
  ],
  ["a value that equals a name", '{"b":"a","a":"b"}', { a: '"b"', b: '"a"' }],
  ["white space in strings", '{"a b":1,"a":" { , } "}', { a: '" { , } "' }],
];

suite("the search for members in a JSON text", () => {
  for (const [what, text, found] of table)
    test(`the search finds the right values for ${what}`, () =>
      assert.deepEqual(cut(text, ...Object.keys(found)), Object.values(found)));

  test("the search accepts no paths, a repeated path and an empty path", () => {
    assert.deepEqual(findMembers('{"a":1}', []), []);
    assert.deepEqual(cut('{"a":1}', "a", "a"), ["1", "1"]);
    assert.deepEqual(findMembers('{"a":1}', [[]]), [undefined]);
  });

  test("the search skips values at the depth limit and ten thousand members", () => {
    const deep = "[".repeat(limits.jsonDepthMax - 1) + "]".repeat(limits.jsonDepthMax - 1);
    assert.deepEqual(cut(`{"x":${deep},"a":1}`, "a", "x"), ["1", deep]);
    const far = "[".repeat(100_000) + "]".repeat(100_000);
    assert.deepEqual(cut(`{"x":${far},"a":1}`, "a"), ["1"]);
    const many = Array.from({ length: 10_000 }, (_, at) => `"m${at}":{"a":${at}}`).join(",");
    assert.deepEqual(cut(`{${many}}`, "m9999.a", "m0.a", "m10000.a"), ["9999", "0", undefined]);
  });
});

type Plain = null | boolean | number | string | readonly Plain[] | { readonly [name: string]: Plain };

const isObject = (value: Plain | undefined): value is { readonly [name: string]: Plain } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const memberNames = ["a", "b", "ab", "é", "", '"', "\\", "__proto__"];

const { object } = fc.letrec<{ object: Plain; value: Plain }>((tie) => ({
  object: fc
    .uniqueArray(fc.tuple(fc.constantFrom(...memberNames), tie("value")), { selector: ([name]) => name, maxLength: 5 })
    .map((members) => Object.fromEntries(members)),
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(
      fc.integer(),
      fc.constantFrom(null, true, "", "a", '","a":{', "}]", "\\"),
      fc.string({ unit: "grapheme" }),
    ),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("object"),
    tie("object"),
  ),
}));
const path = fc.array(fc.constantFrom(...memberNames), { minLength: 1, maxLength: 3 });

/** JSON of the value in which some characters of texts and names are written as escapes. */
function written(value: Plain, isEscaped: () => boolean): string {
  if (typeof value === "string")
    return JSON.stringify(value).replace(/\\.[^\\"]{0,4}|[^"\\]/gu, (piece) =>
      !piece.startsWith("\\") && isEscaped()
        ? [...Array(piece.length).keys()]
            .map((at) => `\\u${piece.charCodeAt(at).toString(16).padStart(4, "0")}`)
            .join("")
        : piece,
    );
  if (Array.isArray(value)) return `[${value.map((item: Plain) => written(item, isEscaped)).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${written(name, isEscaped)}:${written(member, isEscaped)}`,
  );
  return `{${members.join(",")}}`;
}

/** Parses with the gate's reader, because Node 26 reads `{"\\"":1}` as `{"\\":1}` after it has read the latter. */
function read(text: string): Plain {
  const document = readJson(`{"it":${text}}`);
  assert.ok(document.ok, text);
  return plain(document.value.members.get("it") ?? null);
}

function plain(value: Json): Plain {
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, member]) => [name, plain(member)]));
  return Array.isArray(value) ? value.map(plain) : (value as Plain);
}

/** Returns the value below an object, found in the naive way. */
function below(value: Plain | undefined, [name, ...rest]: readonly string[]): Plain | undefined {
  if (name === undefined) return value;
  return isObject(value) && Object.hasOwn(value, name) ? below(value[name], rest) : undefined;
}

/** Returns the object with null instead of a member that it has. */
function cleared(value: Plain, [name = "", ...rest]: readonly string[]): Plain {
  if (!isObject(value)) throw new Error("no object");
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      if (key !== name) return [key, member];
      return [key, rest.length === 0 ? null : cleared(member, rest)];
    }),
  );
}

/** Returns a random object with paths for which a finder is wrong, or undefined; counts the cases that occurred. */
function findsWrong(
  find: typeof findMembers,
  runs: RandomRuns,
  met = { found: 0, absent: 0, escaped: 0 },
): string | undefined {
  const coins = fc.infiniteStream(fc.nat(9));
  const some = fc.array(path, { minLength: 1, maxLength: 4 });
  const agrees = fc.property(object, some, coins, (value, paths, coin) => {
    const text = written(value, () => coin.next().value === 0);
    assert.deepEqual(read(text), value);
    for (const [at, span] of find(text, paths).entries()) {
      const wanted = paths[at] ?? [];
      assert.equal(span === undefined, below(value, wanted) === undefined);
      met[span === undefined ? "absent" : "found"] += 1;
      if (span === undefined) continue;
      const { from, to } = span;
      assert.deepEqual(read(text.slice(from, to)), below(value, wanted));
      assert.deepEqual(read(`${text.slice(0, from)}null${text.slice(to)}`), cleared(value, wanted));
      if (text.slice(0, from).includes("\\u")) met.escaped += 1;
    }
  });
  const found = fc.check(agrees, runs);
  const { failed, counterexample, errorInstance } = found;
  return failed ? `seed ${found.seed}: ${JSON.stringify(counterexample)}: ${String(errorInstance)}` : undefined;
}

/** For tests that must not depend on luck. */
const fixed: RandomRuns = { seed: 1, numRuns: 1500, endOnFailure: true };

suite("random objects with random paths", () => {
  test("the search agrees with a reader that parses the whole text", (t) => {
    assert.equal(findsWrong(findMembers, randomRuns(t, 1500)), undefined);
  });

  test("the random objects have members that are found, absent, and behind an escape", () => {
    const met = { found: 0, absent: 0, escaped: 0 };
    assert.equal(findsWrong(findMembers, fixed, met), undefined);
    assert.ok(met.found > 20 && met.absent > 20 && met.escaped > 3, JSON.stringify(met));
  });

  /** The searches that one would write first. */
  const wrong: readonly (readonly [what: string, find: typeof findMembers])[] = [
    ["that compares names as they are written", (text, paths) => findMembers(text.replaceAll(/\\(?=u)/g, "/"), paths)],
    [
      "that looks for the last name anywhere",
      (text, paths) =>
        paths.map((names) => {
          const name = `${JSON.stringify(names.at(-1))}:`;
          const from = text.indexOf(name) + name.length;
          return from < name.length ? undefined : { from, to: text.slice(from).search(/[,}]/) + from };
        }),
    ],
  ];
  for (const [what, find] of wrong)
    control(`positive control: a search ${what} is noticed`, () =>
      assert.match(findsWrong(find, fixed) ?? "nothing", /^seed /),
    );
});
