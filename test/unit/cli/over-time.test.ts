/**
 * Goal: the report's slices are at most 60, equal and dense, and lose no count and no amount, whatever the times are.
 * Method: random rows, counted by a naive second implementation that knows the length of the slices. Positive control:
 * the comparison notices a row that is counted in another slice.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { OverTime } from "../../../packages/records/src/report/over-time.ts";
import { Contracts } from "../../../packages/records/src/replay/decide-again.ts";
import { randomRuns } from "../../support/random-test.ts";

const acts = ["opened", "approved", "denied", "expired"] as const;

interface Told {
  /** Milliseconds after the act before. */
  readonly after: number;
  readonly act: (typeof acts)[number];
}

interface Slice {
  readonly from: number;
  readonly to: number;
  readonly approvals: Readonly<Record<string, number>>;
}

const start = Date.UTC(2026, 10, 21, 9, 17, 3, 141);

function dated(told: readonly Told[]): readonly { readonly at: number; readonly act: string }[] {
  let at = start;
  return told.map(({ after, act }) => ({ at: (at += after), act }));
}

function slicesOf(told: readonly Told[]): readonly Slice[] {
  const overTime = new OverTime(new Contracts({ contractText: async () => undefined }));
  for (const { at, act } of dated(told)) overTime.count(act, at);
  return overTime.json;
}

const told = fc.array(
  fc.record({
    after: fc.oneof(fc.nat(100), fc.nat(100_000), fc.nat(1_000_000_000), fc.nat(100_000_000_000)),
    act: fc.constantFrom(...acts),
  }),
  { minLength: 1, maxLength: 200 },
);

test("slices are at most 60, equal and without a gap, and start at multiples of their length", (t) => {
  fc.assert(
    fc.property(told, (all) => {
      const slices = slicesOf(all);
      assert.ok(slices.length >= 1 && slices.length <= 60);
      const [first] = slices as readonly [Slice];
      const length = first.to - first.from;
      for (const [at, { from, to }] of slices.entries())
        assert.deepEqual([from, to], [first.from + at * length, first.from + (at + 1) * length]);
      assert.equal(first.from % length, 0);
      const rows = dated(all);
      assert.ok(first.from <= (rows[0]?.at ?? 0) && (slices.at(-1)?.to ?? 0) > (rows.at(-1)?.at ?? 0));
    }),
    randomRuns(t),
  );
});

test("each act is counted in the slice of its time", (t) => {
  const differs = (all: readonly Told[], shiftMs: number): boolean =>
    slicesOf(all).some(({ from, to, approvals }) =>
      acts.some((act) => {
        const naive = dated(all).filter((row) => row.act === act && row.at + shiftMs >= from && row.at + shiftMs < to);
        return naive.length !== approvals[act];
      }),
    );
  fc.assert(
    fc.property(told, (all) => !differs(all, 0)),
    randomRuns(t),
  );
  const day = [
    { after: 0, act: "opened" },
    { after: 86_400_000, act: "denied" },
  ] as const;
  assert.ok(differs(day, 3_600_000), "positive control");
});

test("a day has slices of an hour, and an hour has slices of five minutes", () => {
  const lengthOf = (ms: number): number => {
    const [slice] = slicesOf([
      { after: 0, act: "opened" },
      { after: ms, act: "expired" },
    ]) as readonly [Slice];
    return (slice.to - slice.from) / 1000;
  };
  assert.deepEqual(
    [0, 59_000, 600_000, 3_600_000, 86_400_000, 7 * 86_400_000, 365 * 86_400_000].map(lengthOf),
    [1, 1, 15, 300, 3600, 10_800, 691_200],
  );
});
