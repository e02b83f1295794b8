/**
 * Goal: no two members share a path, and each spelling that a person may type finds its member. Method: a table; random
 * names, also with dots, quotes and brackets. Positive control: paths that only join names are noticed.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { isPartOf, memberBelow, pathNames, readPath } from "../../../packages/core/src/wire/mod.ts";
import { control } from "../../support/controls/control.ts";
import { randomRuns } from "../../support/random-test.ts";

const table: readonly (readonly [written: string, path: string | undefined])[] = [
  ["input", "input"],
  ["input.usd", "input.usd"],
  ["platform.wallet.id", "platform.wallet.id"],
  ["input.x-to", 'input."x-to"'],
  ['input."x-to".a', 'input."x-to".a'],
  ['input["x-to"].a', 'input."x-to".a'],
  ['input["a"]', "input.a"],
  ['input."a.b"', 'input."a.b"'],
  ['input.""', 'input.""'],
  [String.raw`input."\u0041"`, "input.A"],
  ["", undefined],
  ["input.", undefined],
  ["input..a", undefined],
  ['input."a', undefined],
  [String.raw`input."\x"`, undefined],
  ["input[0]", undefined],
  ["has(input.a)", undefined],
];

const names = fc.array(fc.oneof(fc.string(), fc.constantFrom("a", "b", "a.b", 'a"b', "", "x-to", "a]")), {
  minLength: 1,
  maxLength: 4,
});

const differs = (below: typeof memberBelow, [one, other]: readonly (readonly string[])[]): boolean => {
  const [path, second] = [one, other].map((each = []) => each.reduce(below, "input"));
  return (path === second) === (JSON.stringify(one) === JSON.stringify(other));
};

suite("paths of members", () => {
  test("each spelling of a member gives its one path, and other texts give none", () => {
    for (const [written, path] of table) assert.equal(readPath(written), path, written);
  });

  test("a path gives its names back, and is that of no other member", (t) => {
    fc.assert(
      fc.property(names, names, (one, other) => {
        const path = one.reduce(memberBelow, "input");
        assert.deepEqual(pathNames(path), ["input", ...one]);
        assert.ok(differs(memberBelow, [one, other]));
        assert.equal(isPartOf(path, other.reduce(memberBelow, "input")), startsWith(one, other));
      }),
      randomRuns(t, 1000),
    );
  });

  control("positive control: paths that only join names are noticed", () => {
    const join: typeof memberBelow = (path, name) => `${path}.${name}`;
    assert.ok(!differs(join, [["a.b"], ["a", "b"]]));
  });
});

function startsWith(path: readonly string[], first: readonly string[]): boolean {
  return first.every((name, index) => path[index] === name);
}
