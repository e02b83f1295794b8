/**
 * Goal: a grant knows in which direction each number of a rule may move without making a call worse. Method: a table of
 * conditions with their bounds; and random conditions over numbers that are not negative: if one fires for a call, it also
 * fires for each call that the bounds call worse. Positive control: wrong bounds are noticed.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { boundsOf, type Bound } from "../../../../packages/core/src/contract/compile/bounds.ts";
import { compile, conditionText, judge } from "../../../support/contract-kit.ts";
import { control } from "../../../support/controls/control.ts";
import { randomRuns } from "../../../support/random-test.ts";

type Bounds = ReadonlyMap<string, Bound>;
type BoundsOf = typeof boundsOf;

function boundsIn(condition: string, of: BoundsOf = boundsOf, isFree: (path: string) => boolean = () => false): Bounds {
  const [rule] = compile(conditionText(condition)).tools.get("t")?.routes[0]?.rules ?? [];
  return of(rule?.when ?? assert.fail(condition), isFree);
}

const table: readonly (readonly [condition: string, bounds: Readonly<Record<string, Bound>>])[] = [
  ["input.n > 5", { "input.n": "most" }],
  ["5 <= input.n", { "input.n": "most" }],
  ["input.n < limits.most", { "input.n": "least" }],
  ["!(input.n < 5)", { "input.n": "most" }],
  ["input.n > platform.spent", { "input.n": "most", "platform.spent": "least" }],
  ["input.n + platform.spent > 5 && input.n * 2 > 3", { "input.n": "most", "platform.spent": "most" }],
  ["input.n - platform.spent > 5", { "input.n": "most", "platform.spent": "least" }],
  ["-input.n < -5", { "input.n": "most" }],
  ["input.n > 5 || input.n < 2", { "input.n": "same" }],
  ["input.n == 5", { "input.n": "same" }],
  ["input.n % 7 > 3", { "input.n": "same" }],
  ["input.n * platform.spent > 5", { "input.n": "most", "platform.spent": "most" }],
  ["input.n / platform.spent > 5", { "input.n": "most", "platform.spent": "least" }],
  ["(input.n - 3) * platform.spent > 5", { "input.n": "most", "platform.spent": "same" }],
  ["input.n * (0 - 2) < 5", { "input.n": "same" }],
  ["has(input.m) && input.m > 5", { "input.m": "most" }],
  ["has(input.m)", { "input.m": "present" }],
  ["input.?m.hasValue()", { "input.m": "present" }],
  ["input.?m.orValue(7) > 5", { "input.m": "most" }],
  ["input.?m.hasValue() && input.?m.orValue(0) > 5", { "input.m": "most" }],
  ["has(platform.as_of) && now - timestamp(platform.as_of) > duration('1h')", { "platform.as_of": "least" }],
  ["input.s == 'x' && input.n > 5", { "input.s": "same", "input.n": "most" }],
  ["(input.?b.orValue(false) ? input.n : 2) > 5", { "input.b": "same", "input.n": "most" }],
  ["size(input.?list.orValue([])) > 5", { "input.list": "same" }],
  ["input.?numbers.orValue([]).exists(n, n > input.n)", { "input.numbers": "same", "input.n": "same" }],
  ["has(input.box) && input.box.x > 5", { "input.box": "present", "input.box.x": "most" }],
  ["input.s in limits.names", { "input.s": "same" }],
  ["platform.wallet != input.s", { "platform.wallet": "same", "input.s": "same" }],
  ["tool == 't'", {}],
  ["platform.present && session.present", { platform: "present", session: "present" }],
];

const names = ["input.n", "platform.spent", "platform.price"] as const;

/** Random numeric expressions and conditions over three numbers. */
const { condition } = fc.letrec<{ readonly number: string; readonly condition: string }>((tie) => ({
  number: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(...names.slice(0, 2), "1", "2", "7"),
    fc.tuple(tie("number"), fc.constantFrom("+", "-", "*"), tie("number")).map((parts) => `(${parts.join(" ")})`),
    tie("number").map((of) => `(-${of})`),
  ),
  condition: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.tuple(tie("number"), fc.constantFrom("<", "<=", ">", ">=", "=="), tie("number")).map((parts) => parts.join(" ")),
    fc.tuple(tie("condition"), fc.constantFrom("&&", "||"), tie("condition")).map((parts) => `(${parts.join(" ")})`),
    tie("condition").map((of) => `!(${of})`),
  ),
}));

const value = fc.integer({ min: 0, max: 9 });
const pair = fc.tuple(value, value);

/** Returns a call for which the condition fires, and one that the bounds call worse, for which it does not. */
function counterexample(text: string, calls: readonly (readonly [number, number])[], of: BoundsOf): string | undefined {
  const set = compile(conditionText(text));
  const bounds = boundsIn(text, of);
  const fires = ([n, spent]: readonly [number, number]): boolean =>
    judge(set, { input: { n, s: "x" }, platform: { wallet: "w", spent } }).verdict === "BLOCK";
  const isWorse = (call: readonly [number, number], than: readonly [number, number]): boolean =>
    names.slice(0, 2).every((name, index) => {
      const [now, before] = [call[index] ?? 0, than[index] ?? 0];
      const bound = bounds.get(name);
      if (bound === undefined || bound === "same") return now === before;
      return bound === "most" ? now >= before : now <= before;
    });
  for (const one of calls)
    for (const other of calls)
      if (isWorse(other, one) && fires(one) && !fires(other)) return JSON.stringify({ text, one, other });
  return undefined;
}

const cases = fc.tuple(condition, fc.array(pair, { minLength: 8, maxLength: 8 }));

suite("bounds of a rule", () => {
  test("[P12] each member that a condition reads has its bound", () => {
    for (const [text, expected] of table) assert.deepEqual(Object.fromEntries(boundsIn(text)), expected, text);
  });

  test("[P12] a number that may differ is not bound, and gives a factor no direction", () => {
    const isFree = (path: string): boolean => path === "platform.spent";
    const boundsOfFree = (text: string): unknown => Object.fromEntries(boundsIn(text, boundsOf, isFree));
    assert.deepEqual(boundsOfFree("input.n + platform.spent > 5"), { "input.n": "most" });
    assert.deepEqual(boundsOfFree("input.n * platform.spent > 5"), { "input.n": "same" });
  });

  test("[P12] a call that the bounds call worse fires the rule too", (t) => {
    fc.assert(
      fc.property(cases, ([text, calls]) => {
        assert.equal(counterexample(text, calls, boundsOf), undefined);
      }),
      randomRuns(t, 500),
    );
  });

  control("positive control: bounds that take every number for a growing risk are noticed", () => {
    const wrong: BoundsOf = (core, isFree) => new Map([...boundsOf(core, isFree).keys()].map((name) => [name, "most"]));
    const found = fc
      .sample(cases, { numRuns: 500, seed: 1 })
      .some(([text, calls]) => counterexample(text, calls, wrong));
    assert.ok(found);
  });
});
