/**
 * The content of an erasure's row, and the comparison of erasure rows with missing parts. Goal: a part may be missing
 * only if a later row names its row and part, however many rows and ranges there are. Method: bodies as a gate writes
 * them, and each kind of wrong body; random erasures against a naive list of rows and parts.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Readable } from "node:stream";
import fc from "fast-check";
import { Retention } from "../../../../packages/gate/src/server/erasure/retention.ts";
import {
  erasableParts,
  erasureBody,
  MissingParts,
  rangesOf,
  readErasure,
  withWhatQuotes,
  type ErasablePart,
  type Erasure,
} from "../../../../packages/core/src/record/entry/erasure.ts";
import {
  evidenceDigest,
  makeEvidence,
  missingParts,
  partText,
  withoutParts,
} from "../../../../packages/core/src/record/entry/evidence.ts";
import { canonical, good, type Canonical } from "../../../../packages/core/src/wire/mod.ts";
import { leafOf } from "../../../support/ledger-fixture.ts";
import { randomRuns } from "../../../support/random-test.ts";

function evidenceOf(body: Canonical | string): string {
  const input = typeof body === "string" ? body : canonical(body);
  return makeEvidence(["null", input, "null", '"why"', "{}", "[]"]).stored;
}

suite("the row of an erasure", () => {
  const whole: Erasure = {
    parts: ["platform", "reason"],
    rows: [
      [3, 3],
      [7, 9],
    ],
  };

  test("the body that a gate writes can be read back", () => {
    assert.equal(canonical(erasureBody(whole)), '{"parts":["platform","reason"],"rows":[[3,3],[7,9]]}');
    assert.deepEqual(readErasure(evidenceOf(erasureBody(whole)), 10), whole);
  });

  const wrong: readonly (readonly [title: string, body: Canonical | string])[] = [
    ["a list in place of an object", "[]"],
    ["null in place of an object", "null"],
    ["no parts", { parts: [], rows: [[1, 1]] }],
    ["an unknown part", { parts: ["body"], rows: [[1, 1]] }],
    ["the part effects", { parts: ["effects"], rows: [[1, 1]] }],
    ["parts out of order", { parts: ["reason", "platform"], rows: [[1, 1]] }],
    ["a part twice", { parts: ["reason", "reason"], rows: [[1, 1]] }],
    ["no rows", { parts: ["reason"], rows: [] }],
    ["row 0", { parts: ["reason"], rows: [[0, 1]] }],
    ["a range that runs backwards", { parts: ["reason"], rows: [[3, 2]] }],
    [
      "ranges that overlap",
      {
        parts: ["reason"],
        rows: [
          [1, 3],
          [3, 4],
        ],
      },
    ],
    [
      "ranges out of order",
      {
        parts: ["reason"],
        rows: [
          [5, 5],
          [3, 4],
        ],
      },
    ],
    ["its own row", { parts: ["reason"], rows: [[9, 10]] }],
    ["a row that is still to come", { parts: ["reason"], rows: [[11, 11]] }],
    ["half a row", '{"parts":["reason"],"rows":[[1,1.5]]}'],
    ["another spelling of a number", '{"parts":["reason"],"rows":[[1,1.0]]}'],
    ["a text in place of a number", { parts: ["reason"], rows: [["1", "2"]] }],
    ["a range of three numbers", { parts: ["reason"], rows: [[1, 2, 3]] }],
    ["another member", { parts: ["reason"], rows: [[1, 1]], why: "x" }],
  ];
  for (const [title, body] of wrong) {
    test(`an erasure with ${title} is refused, and its row is broken`, () => {
      const evidence = evidenceOf(body);
      assert.equal(readErasure(evidence, 10), undefined);
      assert.equal(new MissingParts().pass(leafOf(10, "erase"), evidence, [])?.seq, 10);
    });
  }

  test("erasing a part also erases the parts that may quote it, and nothing else", () => {
    const cases: readonly (readonly [readonly ErasablePart[], string])[] = [
      [["platform"], "outcome platform reason"],
      [["input"], "input outcome reason"],
      [["reason", "call"], "call outcome reason"],
      [["reason"], "reason"],
      [["outcome"], "outcome"],
    ];
    for (const [parts, gone] of cases) assert.equal(withWhatQuotes(parts).join(" "), gone);
  });

  test("erasing parts keeps their digests, and erasing them again changes nothing", () => {
    const { stored, digest } = makeEvidence(['"call"', '{"a":1}', "null", '"why"', "{}", "[]"]);
    const erased = withoutParts(stored, ["input", "reason"]);
    assert.equal(evidenceDigest(erased), digest);
    assert.deepEqual(missingParts(stored), []);
    assert.deepEqual(missingParts(erased), ["input", "reason"]);
    assert.equal(partText(erased, "input"), undefined);
    assert.equal(partText(erased, "effects"), "[]");
    assert.equal(withoutParts(erased, ["input"]), erased);
  });
});

suite("missing parts that a walk finds", () => {
  const parts = fc.subarray([...erasableParts], { minLength: 1 });
  /** Makes rows of checks that lack parts, rows that name some earlier rows, and empty rows between them. */
  const history = fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.record({ kind: fc.constant("check" as const), lacks: parts }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant("whole" as const) }) },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant("erase" as const), parts, of: fc.array(fc.nat(), { minLength: 1 }) }),
      },
    ),
    { maxLength: 60 },
  );

  test("a walk reports the first row with a missing part that no later row names", (t) => {
    fc.assert(
      // Rows deep in the ledger too, at the border of two chunks of the remembered ranges.
      fc.property(history, fc.constantFrom(1, 65_530, 131_071), (rows, first) => {
        const missing = new MissingParts();
        const naive = new Set<string>();
        for (const [index, row] of rows.entries()) {
          const seq = first + index;
          if (row.kind === "check") {
            missing.pass(leafOf(seq, null), "", row.lacks);
            for (const part of row.lacks) naive.add(`${seq} ${part}`);
          } else if (row.kind === "erase" && index > 0) {
            const named = [...new Set(row.of.map((number) => first + (number % index)))].toSorted((a, b) => a - b);
            const erasure = { parts: row.parts, rows: rangesOf(named) };
            assert.equal(missing.pass(leafOf(seq, "erase"), evidenceOf(erasureBody(erasure)), []), undefined);
            for (const part of row.parts) for (const number of named) naive.delete(`${number} ${part}`);
          }
        }
        const left = [...naive].map((entry) => Number(entry.split(" ")[0]));
        assert.equal(missing.first?.seq, left.length === 0 ? undefined : Math.min(...left));
      }),
      randomRuns(t, 500),
    );
  });

  test("consecutive rows become one range", () => {
    assert.deepEqual(rangesOf([]), []);
    assert.deepEqual(rangesOf([3, 7, 8, 9, 11]), [
      [3, 3],
      [7, 9],
      [11, 11],
    ]);
  });
});

suite("retention", () => {
  test("retention rewrites the indexes at most once a day, also if nothing more is erased", async () => {
    const hourMs = 3_600_000;
    let [now, rows] = [0, 0];
    const done: string[] = [];
    const receipts = [{ seq: 1, hash: "" }];
    const eraser = {
      eraseOlder: (_: unknown, rewrite: boolean) => {
        done.push(`${now / hourMs} erase ${rows}${rewrite && rows > 0 ? " and rewrite" : ""}`);
        return Promise.resolve(
          good({ matched: rows, not_present: [], rows, parts: rows, acts: 0, receipts, more: false, remains: null }),
        );
      },
      clear: (rewrite: boolean) => {
        done.push(`${now / hourMs} clear${rewrite ? " and rewrite" : ""}`);
        return Promise.resolve(null);
      },
    };
    const ledger = { rows: { find: () => Readable.from([]) } };
    const log = { error: assert.fail, info: assert.fail, warn: assert.fail };
    const retention = new Retention({ eraser, ledger, days: 1, tenant: null, log, now: () => now });
    for (const [hour, found] of [
      [0, 5],
      [1, 5],
      [23, 0],
      [24, 0],
      [25, 0],
      [49, 0],
      [50, 3],
      [51, 0],
    ] as const) {
      [now, rows] = [hour * hourMs, found];
      await retention.run();
    }
    assert.deepEqual(
      done.filter((line) => !line.endsWith("erase 0")),
      ["0 erase 5 and rewrite", "1 erase 5", "24 clear and rewrite", "50 erase 3 and rewrite"],
    );
  });
});
