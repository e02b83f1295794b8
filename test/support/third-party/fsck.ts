/**
 * Goal: Tessera's fsck, which shares no code with us, accepts a whole log and finds every change. Method: its program
 * runs over folders of many sizes; then with one byte flipped in each file. A running gate and an export are in gate.ts
 * and exports.ts.
 */
import assert from "node:assert/strict";
import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../controls/control.ts";
import { temporaryFolder } from "../gate.ts";
import { needPrograms } from "./programs.ts";
import { fsck } from "./run-fsck.ts";
import { makeLog, writeSite } from "./site.ts";

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
    statSync(join(folder, path)).isFile(),
  );
}

suite("Tessera's fsck", () => {
  for (const size of [1, 2, 255, 256, 257, 513, 65_536, 66_000])
    test(`fsck accepts a log of ${size} rows`, async (t) => {
      const found = needPrograms(t, "fsck");
      if (found === undefined) return;
      const log = makeLog({ size });
      const folder = temporaryFolder(t);
      await writeSite(folder, log);
      const judged = await fsck(t, found.fsck, { at: folder, vkey: log.vkey });
      assert.deepEqual([judged.whole, judged.size], [true, size], judged.said);
    });

  control("positive control: one byte flipped in any file of a log is found", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined) return;
    const log = makeLog({ size: 700 });
    const sound = temporaryFolder(t);
    await writeSite(sound, log);
    const paths = filesBelow(sound);
    assert.deepEqual(paths.toSorted(), [
      "checkpoint",
      "tile/0/000",
      "tile/0/001",
      "tile/0/002.p/188",
      "tile/1/000.p/2",
      "tile/entries/000",
      "tile/entries/001",
      "tile/entries/002.p/188",
    ]);
    for (const path of paths) {
      const folder = temporaryFolder(t);
      cpSync(sound, folder, { recursive: true });
      const bytes = readFileSync(join(folder, path));
      const at = Math.floor(bytes.length / 2);
      bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      writeFileSync(join(folder, path), bytes);
      const judged = await fsck(t, found.fsck, { at: folder, vkey: log.vkey });
      assert.ok(!judged.whole, `${path}: ${judged.said}`);
    }
  });

  control("positive control: a consistent rewritten history is not the signed one", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined) return;
    const log = makeLog({ size: 300 });
    const folder = temporaryFolder(t);
    await writeSite(folder, makeLog({ size: 300, fork: 299, signer: log.signer }));
    const itself = await fsck(t, found.fsck, { at: folder, vkey: log.vkey });
    assert.ok(itself.whole, itself.said);
    writeFileSync(join(folder, "checkpoint"), await log.checkpoint());
    const judged = await fsck(t, found.fsck, { at: folder, vkey: log.vkey });
    assert.match(judged.said, /calculated root .* but checkpoint claims/);
    assert.ok(!judged.whole);
  });

  control("positive control: another key does not open the log", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined) return;
    const folder = temporaryFolder(t);
    await writeSite(folder, makeLog({ size: 3 }));
    const judged = await fsck(t, found.fsck, { at: folder, vkey: makeLog({ size: 1 }).vkey });
    assert.ok(!judged.whole, judged.said);
  });
});
