import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { check, type Answer } from "./gate.ts";
import type { Desk } from "./approvals.ts";

/** Draws a `call_id`. */
export const drawn = (): string => randomBytes(16).toString("hex");

/** Asserts that a second answer is the first one again. */
export function assertRepeats(first: Answer, second: Answer): void {
  assert.equal(second.status, 200, second.text);
  assert.deepEqual(second.json, { ...first.json, repeated: true });
}

/** Asserts that a gate refuses a call because its `call_id` was used. */
export async function assertRefused(desk: Pick<Desk, "address">, call: object, words: RegExp): Promise<void> {
  const { status, json } = await check(desk, call);
  assert.deepEqual([status, json.code], [409, "call-id-used"]);
  assert.match(json.detail, words);
}
