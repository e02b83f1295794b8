/**
 * Goal: many requests may wait at once, because each reads only the approval that it waits for. Method: a ledger that
 * counts what is read from it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Approval } from "../../../../packages/core/src/approvals/mod.ts";
import { ApprovalWaits } from "../../../../packages/gate/src/server/approvals/waits.ts";

const pending = (row: number): Approval =>
  ({ row, status: "pending", asking: { decide_by: Date.now() + 3_600_000 } }) as unknown as Approval;

/** The waits of a ledger whose approvals are pending. */
function openWaits(): { readonly waits: ApprovalWaits; readonly read: number[] } {
  const read: number[] = [];
  const waits = new ApprovalWaits({
    isShared: false,
    tables: {
      approvals: ({ rows = [] }) => {
        read.push(...rows);
        return Promise.resolve(rows.map(pending));
      },
    },
  });
  return { waits, read };
}

test("a request that starts to wait reads its own approval, and not those that others wait for", async () => {
  const { waits, read } = openWaits();
  const waiting = Array.from({ length: 100 }, (_, at) => waits.wait(pending(at), 60_000, new AbortController().signal));
  assert.equal(waits.size, 100);
  assert.deepEqual(
    read,
    Array.from({ length: 100 }, (_, at) => at),
  );
  // Positive control: a look for everyone, as after an erasure, reads all of them.
  await waits.look();
  assert.equal(read.length, 200);
  waits.close();
  for (const ended of await Promise.all(waiting)) assert.equal(ended.status, "pending");
});
