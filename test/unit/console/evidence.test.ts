/**
 * Goal: the console calls two inputs equal only if they are, and finds each part of an answer that is not in the
 * receipt's evidence. Method: random inputs with names that look like paths, compared with `assert.deepEqual`; receipts
 * with sensitive members. Positive control: a comparison by joined names is noticed.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import {
  compareMembers,
  isShownTruly,
  pathText,
  readValue,
  recordedOf,
  type MemberComparison,
} from "../../../packages/console/src/browser/evidence.ts";
import { jsonText, type ReceiptJson } from "../../../packages/core/src/wire/mod.ts";
import { control } from "../../support/controls/control.ts";
import { randomRuns } from "../../support/random-test.ts";

/** The members of two JSON texts that differ. */
function differences(before: string, now: string): readonly MemberComparison[] {
  return compareMembers(readValue(before), readValue(now)).filter(({ isSame }) => !isSame);
}

const found: readonly (readonly [before: string, now: string])[] = [
  ['{"amount":{"usd":5},"amount.usd":5}', '{"amount":{"usd":9000},"amount.usd":5}'],
  ['{"to":"x","cc":{"a":"p"}}', '{"to":"x","cc.a":"p"}'],
  ['{"to":"x","l":["p"]}', '{"to":"x","l[0]":"p"}'],
  ['{"a":[]}', '{"a":{}}'],
  ['{"a":{}}', "{}"],
  ['{"a":null}', "{}"],
  ['{"a":1}', '{"a":"1"}'],
  ['{"a":1.0}', '{"a":1}'],
  ['{"a":9007199254740993}', '{"a":9007199254740992}'],
  ['{"a":[1,2]}', '{"a":[2,1]}'],
  ['{"a":["1,2"]}', '{"a":["1","2"]}'],
  ["abc", '"abc"'],
  ['1,"x":2', "1"],
];

const names = fc.constantFrom("a", "b", "a.b", "a[0]", "0", "", 'a"', '"a"', "a\\", "input");
const { value: json } = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: "small" }, fc.constantFrom(1, "1", null, true, "", "a"), tie("object"), tie("list")),
  object: fc.dictionary(names, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  list: fc.array(tie("value"), { maxLength: 3 }),
}));
const inputs = fc.dictionary(names, json, { maxKeys: 3, noNullPrototype: true });

type Compare = (before: string, now: string) => readonly unknown[];

function isEqual(before: unknown, now: unknown): boolean {
  try {
    assert.deepEqual(before, now);
    return true;
  } catch {
    return false;
  }
}

/** Half of the pairs are equal but for the order of members. */
const pairs = fc.oneof(
  fc.tuple(inputs, inputs),
  inputs.map((each) => [each, reversed(each)] as const),
);

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, each]) => [name, reversed(each)]),
  );
}

function assertCompares(compare: Compare, [before, now]: readonly [unknown, unknown]): void {
  const isSame = compare(JSON.stringify(before), JSON.stringify(now)).length === 0;
  assert.equal(isSame, isEqual(before, now), JSON.stringify([before, now]));
}

/** A comparison by texts such as `a.b[0]`. */
const byJoinedNames: Compare = (before, now) => {
  const leaves = (value: unknown, path: string): readonly string[] => {
    if (value === null || typeof value !== "object") return [`${path}=${JSON.stringify(value)}`];
    const isList = Array.isArray(value);
    const inner = Object.entries(value).flatMap(([name, each]) =>
      leaves(each, isList ? `${path}[${name}]` : `${path}.${name}`),
    );
    return inner.length === 0 ? [`${path}=${JSON.stringify(value)}`] : inner;
  };
  const [one, other] = [leaves(JSON.parse(before), ""), leaves(JSON.parse(now), "")];
  return [...one.filter((leaf) => !other.includes(leaf)), ...other.filter((leaf) => !one.includes(leaf))];
};

const encoded = (...part: readonly unknown[]): string =>
  Buffer.from(JSON.stringify(["s".repeat(22), ...part])).toString("base64url");
const erased = `!${"d".repeat(43)}`;

/** A receipt whose evidence has these parts, and says nothing else. */
function receiptOf(input: unknown, members: readonly string[] = []): ReceiptJson {
  const parts = [erased, erased, encoded("input", input), erased, erased, erased];
  return { seq: 1, hash: "", at: 1, leaf: '{"at":1,"seq":1}', evidence: [...parts, ...members] };
}

const reference = { "...": "digest" };
const secret = encoded("input.card.number", "4711");

/** Receipts, and whether an answer shows them truly. */
const answers: readonly (readonly [receipt: ReceiptJson, shown: unknown, isTrue: boolean])[] = [
  [receiptOf({ a: 1 }), { a: 1 }, true],
  [receiptOf({ a: 1 }), { a: 2 }, false],
  [receiptOf({ a: { b: 1 } }), { "a.b": 1 }, false],
  [receiptOf({ a: [1] }), { "a[0]": 1 }, false],
  [receiptOf({ a: 1 }), null, false],
  [{ ...receiptOf({}), evidence: [erased, erased, erased, erased, erased, erased] }, null, true],
  [{ ...receiptOf({}), evidence: [erased, erased, erased, erased, erased, erased] }, { a: "forged" }, false],
  [receiptOf([{ bytes: 9000, head: "{", sha256: "" }]), null, true],
  [receiptOf([{ bytes: 9000, head: "{", sha256: "" }]), { a: "forged" }, false],
  [{ ...receiptOf({}), reason: "forged" }, {}, false],
  [{ ...receiptOf({}), tool_name: "forged" }, {}, false],
  [{ ...receiptOf({}), session_id: "forged" }, {}, false],
  [{ ...receiptOf({}), key_kind: "host" }, {}, false],
  [receiptOf({ card: { number: reference } }, [secret]), { card: { number: "4711" } }, true],
  [receiptOf({ card: { number: reference } }, [secret]), { card: { number: "4712" } }, false],
  [receiptOf({ card: { number: reference } }, [secret]), { card: {}, "card.number": "4711" }, false],
  [receiptOf({ card: { number: reference } }, [`${erased}input.card.number`]), { card: { number: reference } }, true],
  [receiptOf({ card: { number: reference } }, [`${erased}input.card.number`]), { card: { number: "4711" } }, false],
  [receiptOf({ card: { number: reference, to: 1 } }, [`${erased}input.card.number`]), { card: { to: 1 } }, false],
  [receiptOf({ card: { number: reference, to: 1 } }, [`${erased}input.card.number`]), { card: { to: 2 } }, false],
  [
    receiptOf({ card: { number: reference }, "card.number.x": 1 }, [`${erased}input.card.number`]),
    { card: { number: reference }, "card.number.x": 2 },
    false,
  ],
];

suite("the console's comparisons", () => {
  test("inputs that differ are never called the same", () => {
    for (const [before, now] of found) {
      assert.notEqual(differences(before, now).length, 0, `${before} and ${now}`);
      assert.equal(differences(now, now).length, 0, now);
    }
  });

  test("two inputs are the same exactly if all their members are", (t) => {
    fc.assert(
      fc.property(pairs, (pair) => assertCompares(differences, pair)),
      randomRuns(t, 1000),
    );
  });

  control("positive control: a comparison by joined names is noticed", (t) => {
    const property = fc.property(pairs, (pair) => assertCompares(byJoinedNames, pair));
    assert.throws(() => fc.assert(property, randomRuns(t, 3000)));
  });

  test("no two members have the same path", () => {
    const paths = [["a", "b"], ["a.b"], ["a", 0], ["a[0]"], ["a", "0"], ['a."0"'], [""], ["", ""]];
    assert.equal(new Set(paths.map(pathText)).size, paths.length);
    assert.equal(pathText(["lines", 2, "amount"]), "lines[2].amount");
  });

  test("an earlier input has its sensitive members, or says that they were erased", () => {
    const card = (members: readonly string[]): unknown => {
      const { value, erased: gone } = recordedOf(receiptOf({ card: { number: reference } }, members), "input") ?? {};
      return [jsonText(value ?? null), gone];
    };
    assert.deepEqual(card([secret]), ['{"card":{"number":"4711"}}', []]);
    assert.deepEqual(card([`${erased}input.card.number`]), [
      '{"card":{"number":{"...":"digest"}}}',
      [["card", "number"]],
    ]);
    assert.equal(recordedOf({ evidence: [erased, erased, erased] }, "input"), undefined);
  });

  test("an answer is true only if each member is what the evidence has", () => {
    for (const [receipt, shown, isTrue] of answers) {
      const raw = shown === null ? {} : { tool_input: JSON.stringify(shown) };
      assert.equal(isShownTruly(receipt, raw), isTrue, JSON.stringify(shown));
    }
  });
});
