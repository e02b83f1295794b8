/**
 * Goal: no two disclosures have the same salt. Method: SALTS disclosures are made, by default ten million, and the first
 * 64 bits of their salts are sorted and compared. Positive control: the same comparison finds one repeated salt.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { disclose } from "../../packages/core/src/record/entry/disclosure.ts";

/** `npm test` makes fewer. */
const count = Number(process.env["SALTS"] ?? 10_000_000);

test("all disclosures have different salts", () => {
  const salts = new BigUint64Array(count);
  for (let at = 0; at < count; at += 1) {
    // The text starts with `["`; 16 bytes behind it are 12 bytes of the salt.
    const text = Buffer.from(disclose("call", "1").slice(0, 24), "base64url").subarray(2);
    salts[at] = Buffer.from(text.toString("latin1"), "base64url").readBigUInt64LE();
  }
  const last = salts[count - 1];
  salts.sort();
  assert.equal(repeated(salts), undefined);
  salts[0] = last ?? 0n;
  salts.sort();
  assert.equal(repeated(salts), last, "positive control: a repeated salt is found");
});

function repeated(sorted: BigUint64Array): bigint | undefined {
  for (let at = 1; at < sorted.length; at += 1) if (sorted[at] === sorted[at - 1]) return sorted[at];
  return undefined;
}
