/**
 * Goal: a key has more than its share only if nobody with less could use the rest. Method: examples, and random
 * keys compared with giving out one item at a time to the key that got least. Positive control: equal shares, of
 * which nothing is passed on.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Shares } from "../../../../packages/gate/src/server/admission/shares.ts";
import { control } from "../../../support/controls/control.ts";
import { randomRuns } from "../../../support/random-test.ts";

/** How many items each key of each tenant has. */
type Counts = readonly (readonly number[])[];

/** Returns the keys past their share, as `tenant/key`, in alphabetical order. */
function past(counts: Counts, max: number): readonly string[] {
  const shares = new Shares<{ readonly of: string }>();
  for (const [tenant, keys] of counts.entries())
    for (const [key, count] of keys.entries())
      for (let n = 0; n < count; n += 1)
        shares.add({ of: `${tenant}/${key}` }, { tenant: tenant === 0 ? null : `t${tenant}`, id: `k${key}` });
  return shares
    .pastShare(max)
    .map(([first]) => first?.of ?? "")
    .toSorted();
}

/** Gives `max` items, one at a time, to the key that has got least and wants more. */
function given(wanted: readonly number[], max: number): readonly number[] {
  const got = wanted.map(() => 0);
  for (let left = max; left > 0; left -= 1) {
    const open = got.flatMap((count, at) => (count < (wanted[at] ?? 0) ? [at] : []));
    const least = open.toSorted((a, b) => (got[a] ?? 0) - (got[b] ?? 0))[0];
    if (least === undefined) break;
    got[least] = (got[least] ?? 0) + 1;
  }
  return got;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** The keys that a model gives at least one item too many, by whole items. */
function pastByModel(counts: Counts, max: number): readonly string[] {
  const ofTenants = given(counts.map(sum), max);
  return counts
    .flatMap((keys, tenant) => {
      const got = given(keys, ofTenants[tenant] ?? 0);
      const most = Math.max(0, ...got);
      return keys.flatMap((count, key) => (count > most ? [`${tenant}/${key}`] : []));
    })
    .toSorted();
}

test("a lone key has all of it, and several have what the others leave", () => {
  assert.deepEqual(past([[46]], 46), []);
  assert.deepEqual(past([[47]], 46), ["0/0"]);
  assert.deepEqual(past([[2, 30, 14]], 46), []);
  assert.deepEqual(past([[2, 30, 16]], 46), ["0/1"], "16 and 28 of 44, so only one has more than 22");
  assert.deepEqual(past([[5], [10, 10, 10, 10]], 40), ["1/0", "1/1", "1/2", "1/3"]);
  assert.deepEqual(past([[21], [20]], 40), ["0/0"], "tenants have equal shares");
});

const anyCounts = fc.array(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 }), {
  minLength: 1,
  maxLength: 4,
});

test("every key that a model counts as past its share is, and somebody is if too many are in use", (t) => {
  fc.assert(
    fc.property(anyCounts, fc.integer({ min: 1, max: 60 }), (counts, max) => {
      const found = past(counts, max);
      assert.equal(found.length > 0, sum(counts.map(sum)) > max);
      for (const key of pastByModel(counts, max))
        assert.ok(found.includes(key), `${key} of ${JSON.stringify(counts)}, ${max}`);
    }),
    randomRuns(t, 500),
  );
});

control("positive control: equal shares of which nothing is passed on differ from the model", () => {
  const equal = (keys: readonly number[], max: number): readonly number[] =>
    keys.filter((count) => count > max / keys.length);
  assert.deepEqual(equal([2, 25, 16], 46), [25, 16]);
  assert.deepEqual(past([[2, 25, 16]], 43), []);
});
