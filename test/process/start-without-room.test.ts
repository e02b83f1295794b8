/**
 * Goal: the error of a start on a full disk names the folder, the space it needs and the remedy. Method: a disk of 32
 * MiB; a larger one shows that only space was missing.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { control } from "../support/controls/control.ts";
import { smallDisk } from "../support/faults/small-disk.ts";
import { runGate } from "../support/gate-process.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

test(
  "the start error with under 64 MiB free names the folder and the needed space",
  { tags: ["attack-14"] },
  async (t) => {
    const disk = smallDisk(t, 32);
    if (disk === undefined) return t.skip("this user may not mount a file system");
    const data = join(disk, "data");
    const ended = await runGate(["serve"], { settings: { SVC_DATA_DIR: data } });
    assert.ok(ended !== "served");
    assert.equal(ended.code, 1);
    says("under 64 MiB are free", ended.stderr.trimEnd(), { DATA: data });
  },
);

control("positive control: the same start on a larger disk serves", { tags: ["attack-14"] }, async (t) => {
  const disk = smallDisk(t, 96);
  if (disk === undefined) return t.skip("this user may not mount a file system");
  assert.equal(await runGate(["serve"], { settings: { SVC_DATA_DIR: join(disk, "data") } }), "served");
});
