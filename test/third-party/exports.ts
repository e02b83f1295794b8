/**
 * Goal: an export folder is a log that the tools of others can check. Method: Tessera's fsck over every case of
 * spec/vectors/exports, good and broken; it finds what C2SP's formats say, and nothing of what only a receipt means.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { temporaryFolder } from "../e2e/gate.ts";
import { placeVector, readVectors, type Vector } from "../exports/vectors.ts";
import { needPrograms } from "./programs.ts";
import { fsck } from "./run-fsck.ts";

/** What lies in the formats of C2SP: the head, its signature, the tiles, the bundles of entries. */
const inSight = new Set(["checkpoint", "signature", "unsigned", "entry", "tile", "root", "file"]);

/** What fsck takes and our verifiers do not: it reads more spellings, looks for one key, and stops at the size. */
const taken = [
  "checkpoint: a signature in another spelling of its base64",
  "checkpoint: a size that begins with 0",
  "entry: a row more",
  "file: no evidence",
  "file: no evidence of the second bundle",
  "signature: one of two is wrong",
  "tile: a byte more",
];

const codeOf = ({ expected }: Vector): string => ("code" in expected ? expected.code : "good");

suite("Tessera's fsck over exports", () => {
  const vectors = readVectors();

  test("finds the good ones whole", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined) return;
    const good = vectors.filter((vector) => codeOf(vector) === "good");
    for (const vector of good) {
      const folder = temporaryFolder(t);
      placeVector(vector, folder);
      const judged = await fsck(t, found.fsck, { at: folder, vkey: vector.keys[0] ?? "" });
      assert.ok(judged.whole, `${vector.name}: ${judged.said}`);
    }
    assert.ok(good.length >= 18);
  });

  test("finds the broken ones broken, where the formats of C2SP are", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined) return;
    const broken = vectors.filter((vector) => inSight.has(codeOf(vector)));
    const whole: string[] = [];
    for (const vector of broken) {
      const folder = temporaryFolder(t);
      placeVector(vector, folder);
      const judged = await fsck(t, found.fsck, { at: folder, vkey: vector.keys[0] ?? "" });
      if (judged.whole) whole.push(vector.name);
    }
    assert.deepEqual(whole.toSorted(), taken);
    assert.ok(broken.length >= 50);
  });
});
