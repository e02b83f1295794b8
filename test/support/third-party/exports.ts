/**
 * Goal: other projects' tools can check an export folder as a log. Method: Tessera's fsck runs over every case of
 * spec/vectors/exports, good and broken, and finds the errors that C2SP's formats define. It also runs over folders
 * that `svc-gate export` writes.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { control } from "../controls/control.ts";
import { fillLedger } from "../../../bench/fill.ts";
import { command } from "../command.ts";
import { startGate, temporaryFolder, type Running } from "../gate.ts";
import { writeVector, readVectors, type Vector } from "../exports/vectors.ts";
import { askMany } from "./asking.ts";
import { needPrograms, runProgram } from "./programs.ts";
import { fsck } from "./run-fsck.ts";

/** The files in C2SP formats: the head, its signature, the tiles, the bundles of entries. */
const inSight = new Set(["checkpoint", "signature", "unsigned", "entry", "tile", "root", "file"]);

/**
 * Cases that fsck accepts and our verifiers refuse: it reads more spellings, looks for one key, and stops at the size.
 */
const taken = [
  "checkpoint: a signature in another spelling of its base64",
  "checkpoint: a size that starts with 0",
  "entry: a row more",
  "file: no evidence",
  "file: no evidence of the second bundle",
  "signature: one of two is wrong",
  "tile: a byte more",
];

const codeOf = ({ expected }: Vector): string => ("code" in expected ? expected.code : "good");

suite("Tessera's fsck over exports", () => {
  const vectors = readVectors();

  test("fsck accepts the valid exports", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined) return;
    const good = vectors.filter((vector) => codeOf(vector) === "good");
    for (const vector of good) {
      const folder = temporaryFolder(t);
      writeVector(vector, folder);
      const judged = await fsck(t, found.fsck, { at: folder, vkey: vector.keys[0] ?? "" });
      assert.ok(judged.whole, `${vector.name}: ${judged.said}`);
    }
    assert.ok(good.length >= 18);
  });

  test("fsck refuses the broken exports, if the formats of C2SP show the error", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined) return;
    const broken = vectors.filter((vector) => inSight.has(codeOf(vector)));
    const whole: string[] = [];
    for (const vector of broken) {
      const folder = temporaryFolder(t);
      writeVector(vector, folder);
      const judged = await fsck(t, found.fsck, { at: folder, vkey: vector.keys[0] ?? "" });
      if (judged.whole) whole.push(vector.name);
    }
    assert.deepEqual(whole.toSorted(), taken);
    assert.ok(broken.length >= 50);
  });
});

suite("exports that `svc-gate export` writes", () => {
  /** Makes or extends an export folder of a gate's ledger; returns the results of fsck and of Go's libraries. */
  async function exported(t: TestContext, gate: Running, rows: number): Promise<string | undefined> {
    const found = needPrograms(t, "fsck", "outsider");
    if (found === undefined) return undefined;
    const folder = join(gate.folder, "export");
    await untilKept(join(gate.folder, "data", "checkpoint"), rows);
    const { code, stdout, stderr } = await command(["export", folder, "--data-dir", join(gate.folder, "data")]);
    assert.equal(code, 0, stdout + stderr);
    const vkey = gate.ledger.verifiers[0]?.text ?? "";
    const judged = await fsck(t, found.fsck, { at: folder, vkey });
    assert.deepEqual([judged.whole, judged.size], [true, rows], judged.said);
    const indices = [0, 1, Math.floor(rows / 2), rows - 1];
    const looked = await runProgram(found.outsider, ["log", folder, vkey, ...indices.map(String)]);
    assert.equal(looked.code, 0, looked.stderr);
    const { size, included, canonical } = JSON.parse(looked.stdout);
    assert.deepEqual([size, included, canonical], [rows, indices, indices.length]);
    return folder;
  }

  test("a folder that is extended as rows come and parts are erased is valid each time", async (t) => {
    const gate = await startGate(t);
    await askMany(gate, 200);
    if ((await exported(t, gate, 200)) === undefined) return;
    await askMany(gate, 56);
    await exported(t, gate, 256);
    await askMany(gate, 44);
    const erase = ["erase", "1-9", "--part", "input", "--reason", "asked for", "--data-dir", join(gate.folder, "data")];
    assert.equal((await command(erase)).code, 0);
    await exported(t, gate, 301);
  });

  test("66,000 rows", async (t) => {
    const folder = temporaryFolder(t);
    await fillLedger(join(folder, "data"), 66_000);
    await exported(t, await startGate(t, { folder }), 66_000);
  });

  control("positive control: a change in the export is found", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined) return;
    const gate = await startGate(t);
    await askMany(gate, 300);
    const folder = await exported(t, gate, 300);
    const vkey = gate.ledger.verifiers[0]?.text ?? "";
    for (const path of ["checkpoint", "tile/0/000", "tile/0/001.p/44", "tile/1/000.p/1", "tile/entries/001.p/44"]) {
      const file = join(folder ?? "", path);
      const sound = readFileSync(file);
      const bytes = Buffer.from(sound);
      const at = Math.floor(bytes.length / 2);
      bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      writeFileSync(file, bytes);
      const judged = await fsck(t, found.fsck, { at: folder ?? "", vkey });
      assert.ok(!judged.whole, `${path}: ${judged.said}`);
      writeFileSync(file, sound);
    }
  });
});

/**
 * Waits until the folder's head covers the rows: a gate writes it once a second, and an export ends there. The test's
 * time limit is the bound.
 */
async function untilKept(file: string, rows: number): Promise<void> {
  while (!existsSync(file) || readFileSync(file, "utf8").split("\n")[1] !== String(rows)) await wait(50);
}
