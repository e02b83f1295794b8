/**
 * Goal: the counts of `svc-gate report` by which approvals are watched. Method: rows as a gate writes them, with times
 * on both sides of each limit. Each case differs from its neighbour in one respect, and so does its count.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { ReceiptCheck } from "../../../packages/records/src/replay/recorded.ts";
import { DecidedApprovals } from "../../../packages/records/src/report/decided.ts";
import { linesMax } from "../../../packages/records/src/report/lines.ts";
import { makeEvidence } from "../../../packages/core/src/record/entry/evidence.ts";
import { leafText } from "../../../packages/core/src/record/entry/leaf.ts";
import { leafOf } from "../../support/ledger-fixture.ts";

const dayMs = 86_400_000;
const start = Date.UTC(2026, 10, 21);

interface Vote {
  readonly key?: string;
  /** Null if more votes are needed. */
  readonly useBy?: null;
}

/** A report that is given rows, and numbers them. */
class Rows {
  readonly report = new DecidedApprovals();
  #seq = 0;

  /** A call that opens an approval. Returns its row. */
  opens(at: number = start, rule = "pay.large"): number {
    this.#seq += 1;
    const leaf = { ...leafOf(this.#seq, null), at, rule };
    this.report.add({ leaf, trace: { asked: { how: "opened" } } } as unknown as ReceiptCheck);
    return this.#seq;
  }

  acts(act: string, input: object, at: number, key = "gate"): void {
    this.#seq += 1;
    const { stored, digest } = makeEvidence(["null", JSON.stringify(input), "null", '"why"', "{}", "[]"]);
    const leaf = leafText({ ...leafOf(this.#seq, act), at, key, evidence: digest });
    this.report.addChange({ seq: this.#seq, leaf, evidence: stored });
  }

  approves(row: number, at: number, { key = "anna", useBy }: Vote = {}): void {
    this.acts("approval.approve", { row, use_by: useBy === undefined ? at + 1 : useBy }, at, key);
  }

  denies(row: number, at: number, key = "anna"): void {
    this.acts("approval.deny", { row }, at, key);
  }

  makes(name: string, at: number, { act = "keys.create", tenant = null as string | null } = {}): void {
    this.acts(act, { name, tenant }, at, "operator");
  }

  get line(): any {
    return this.report.json[0];
  }

  get text(): string {
    return this.report.text.join("\n");
  }
}

suite("watched approvals in the report", () => {
  test("the share of expired approvals is of those that ended", () => {
    const rows = new Rows();
    const [one = 0, two = 0, three = 0, four = 0, five = 0] = Array.from({ length: 6 }, () => rows.opens());
    assert.equal(rows.line.expired_share, null, "none ended");
    assert.match(rows.text, / +0 +- +0( +-){3}$/m);
    rows.acts("approval.expire", { rows: [one] }, start + 9000);
    assert.equal(rows.line.expired_share, 1);
    rows.denies(two, start + 9000);
    rows.acts("approval.cancel", { rows: [three], why: "person" }, start + 9000);
    rows.acts("approval.supersede", { pairs: [[four, 6]] }, start + 9000);
    rows.approves(five, start + 9000);
    assert.equal(rows.line.expired_share, 0.25, "the fifth and the sixth are still open");
    assert.match(rows.text, / 25% /);
    rows.acts("approval.use", { uses: [{ approval: five, needed: true, row: 20 }] }, start + 9000);
    assert.equal(rows.line.expired_share, 0.2, "the sixth is still open");
  });

  for (const [what, decide] of [
    ["a vote", (rows: Rows, row: number, at: number) => rows.approves(row, at)],
    ["a vote before others", (rows: Rows, row: number, at: number) => rows.approves(row, at, { useBy: null })],
    ["a denial", (rows: Rows, row: number, at: number) => rows.denies(row, at)],
  ] as const)
    test(`${what} within three seconds is fast, and later it is not`, () => {
      const rows = new Rows();
      decide(rows, rows.opens(), start + 3000);
      assert.equal(rows.line.fast, 0);
      decide(rows, rows.opens(), start + 2999);
      assert.equal(rows.line.fast, 1);
    });

  test("a vote on a call before the report's first row is not fast, because nothing says when it was sent", () => {
    const rows = new Rows();
    rows.approves(1000, start);
    assert.deepEqual([rows.line.rule, rows.line.fast], ["(opened earlier)", 0]);
  });

  for (const act of ["keys.create", "keys.rotate", "keys.update"])
    test(`an approval less than a day after ${act} is by a young key`, () => {
      const rows = new Rows();
      rows.makes("anna", start, { act });
      rows.approves(rows.opens(start + dayMs), start + dayMs);
      assert.equal(rows.line.young, 0);
      rows.approves(rows.opens(), start + dayMs - 1);
      assert.equal(rows.line.young, 1);
    });

  test("only an approval by the young key itself counts", () => {
    const rows = new Rows();
    rows.makes("anna", start);
    rows.makes("bob", start, { tenant: "acme" });
    rows.makes("cleo", start, { act: "keys.revoke" });
    for (const key of ["bob", "cleo"]) rows.approves(rows.opens(), start + 5000, { key });
    rows.denies(rows.opens(), start + 5000);
    assert.equal(rows.line.young, 0, "a tenant's key of the same name, a revoked key, a denial");
    rows.approves(rows.opens(), start + 5000);
    assert.equal(rows.line.young, 1);
  });

  test("a decision of a person on their own call is counted apart", () => {
    const rows = new Rows();
    const [own, other] = [rows.opens(), rows.opens()];
    rows.acts("approval.approve", { row: own, use_by: start + 9000, self: true }, start + 5000, "anna");
    rows.approves(other, start + 5000);
    assert.deepEqual([rows.line.approved, rows.line.self], [2, 1]);
  });

  test("without a row of a key the count of young keys is unknown", () => {
    const rows = new Rows();
    rows.approves(rows.opens(), start + 5000);
    assert.equal(rows.line.young, null);
    assert.match(rows.text, /pay\.large.* 0 +- +0 +- +5s +5s$/m);
  });

  test("a rule that is always approved, or never, is named from ten decisions on", () => {
    for (const [always, decides, line] of [
      [
        "approved",
        "approves",
        "rule pay.large: all 10 decisions were approvals. Does a person need to decide these calls?",
      ],
      ["denied", "denies", "rule pay.large: all 10 decisions were denials. Should the contract block these calls?"],
    ] as const) {
      const rows = new Rows();
      for (let count = 0; count < 9; count += 1) rows[decides](rows.opens(), start + 5000);
      assert.equal(rows.line.always, null);
      assert.doesNotMatch(rows.text, /rule pay/);
      rows[decides](rows.opens(), start + 5000);
      assert.equal(rows.line.always, always);
      assert.ok(rows.text.endsWith(`\n  ${line}`), rows.text);
      rows[always === "approved" ? "denies" : "approves"](rows.opens(), start + 5000);
      assert.equal(rows.line.always, null, "one decision differs");
    }
  });

  test("the line of approvals that were opened earlier is not a rule that is always approved", () => {
    const rows = new Rows();
    for (let row = 1000; row < 1010; row += 1) rows.approves(row, start);
    assert.deepEqual([rows.line.approved, rows.line.always], [10, null]);
  });

  test("rules beyond the limit of lines share a line, which is not a rule that is always approved", () => {
    const rows = new Rows();
    for (let rule = 0; rule < linesMax; rule += 1) rows.opens(start, `r.${rule}`);
    for (let rule = 0; rule < 10; rule += 1) rows.approves(rows.opens(start, `more.${rule}`), start + 5000);
    assert.deepEqual([rows.line.rule, rows.line.approved, rows.line.always], ["(others)", 10, null]);
  });
});
