/**
 * Goal: a start in a folder without room says which folder, how much room it needs and what to do. Method: a disk of 32 MiB; a
 * larger one shows that room is all that was missing.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { smallDisk } from "./faults/small-disk.ts";
import { runGate } from "./gate-process.ts";

test("[attack 14] a start in a folder with under 64 MiB free names the folder and the room, and no database", async (t) => {
  const disk = smallDisk(t, 32);
  if (disk === undefined) return t.skip("this user may not mount a file system");
  const data = join(disk, "data");
  const ended = await runGate(["serve"], { settings: { SVC_DATA_DIR: data } });
  assert.ok(ended !== "served");
  assert.equal(ended.code, 1);
  assert.equal(
    ended.stderr,
    `svc-gate: the ledgers cannot be opened: under 64 MiB are free in ${data}; the gate needs that much free room there ` +
      "before each batch: free some, or name a folder on another disk with SVC_DATA_DIR\n",
  );
});

test("[attack 14] positive control: the same start on a larger disk serves", async (t) => {
  const disk = smallDisk(t, 96);
  if (disk === undefined) return t.skip("this user may not mount a file system");
  assert.equal(await runGate(["serve"], { settings: { SVC_DATA_DIR: join(disk, "data") } }), "served");
});
