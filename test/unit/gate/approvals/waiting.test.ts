/**
 * Goal: many requests may wait at once, because each reads only the approval that it waits for. Method: a ledger that
 * counts what is read from it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Approval } from "../../../../packages/svc-gate/src/approvals/mod.ts";
import { nobody } from "../../../../packages/svc-gate/src/gate/approvals/deciders.ts";
import { ApprovalDesk } from "../../../../packages/svc-gate/src/gate/approvals/desk.ts";

const pending = (row: number): Approval =>
  ({ row, status: "pending", asking: { decide_by: Date.now() + 3_600_000 } }) as unknown as Approval;

/** A desk over a ledger whose approvals are pending. */
function openDesk(): { readonly desk: ApprovalDesk; readonly read: number[] } {
  const read: number[] = [];
  const desk = new ApprovalDesk({
    ledger: {
      isShared: false,
      approvals: ({ rows = [] }) => {
        read.push(...rows);
        return Promise.resolve(rows.map(pending));
      },
    },
    deciders: nobody,
    policy: () => assert.fail("nobody decides"),
    exclusive: () => assert.fail("nobody decides"),
  });
  return { desk, read };
}

test("a request that begins to wait reads its own approval, and not those that others wait for", async () => {
  const { desk, read } = openDesk();
  const waiting = Array.from({ length: 100 }, (_, at) => desk.wait(pending(at), 60_000, new AbortController().signal));
  assert.equal(desk.waiting, 100);
  assert.deepEqual(
    read,
    Array.from({ length: 100 }, (_, at) => at),
  );
  // Positive control: a look for everyone, as after an erasure, reads all of them.
  await desk.look();
  assert.equal(read.length, 200);
  desk.close();
  for (const ended of await Promise.all(waiting)) assert.equal(ended.status, "pending");
});
