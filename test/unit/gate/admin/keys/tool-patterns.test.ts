/**
 * Goal: a tool pattern matches as docs/guides/keys.md says. Method: random patterns and names are compared with regular
 * expressions.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toolMatcher } from "../../../../../packages/gate/src/server/policy/tool-patterns.ts";
import { randomRuns } from "../../../../support/random-test.ts";

test("a tool pattern matches the same names as its regular expression, without slow backtracking", (t) => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "."), maxLength: 8 });
  const written = fc.string({ unit: fc.constantFrom("a", "b", ".", "*"), maxLength: 6 });
  fc.assert(
    fc.property(fc.array(written, { minLength: 1, maxLength: 3 }), text, (patterns, name) => {
      const model = patterns.map((each) => new RegExp(`^${each.replaceAll(".", "\\.").replaceAll("*", ".*")}$`));
      assert.equal(
        toolMatcher(patterns)(name),
        model.some((each) => each.test(name)),
      );
    }),
    randomRuns(t, 2000),
  );
  assert.equal(toolMatcher(["*a".repeat(100)])("a".repeat(99) + "b".repeat(100_000)), false);
  assert.equal(toolMatcher(null)("anything"), true);
});
