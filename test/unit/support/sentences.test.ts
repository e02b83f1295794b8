/**
 * Goal: a sentence is compared with its golden file, without the parts that differ from run to run. Method: a golden
 * file of its own.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { sentencesOf } from "../../support/sentences.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-gate-sentences-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, "a.test.ts");
const golden = join(folder, "a.sentences.json");

suite("golden files of sentences", () => {
  test("a sentence that is not in the file, or is another one there, fails", () => {
    writeFileSync(golden, JSON.stringify({ full: "the disk is full" }));
    const says = sentencesOf(file);
    says("full", "the disk is full");
    assert.throws(() => says("full", "the disk was full"), /UPDATE_GOLDEN=1/);
    assert.throws(() => says("empty", "the disk is full"), /UPDATE_GOLDEN=1/);
  });

  test("temporary folders, ports, hashes, moments and named texts do not matter", () => {
    writeFileSync(golden, JSON.stringify({ all: "FOLDER/x at 127.0.0.1:PORT has HASH since MOMENT: WHO" }));
    const path = join(tmpdir(), "svc-gate-Ab_3.x", "x");
    const text = `${path} at 127.0.0.1:4711 has ${"0a".repeat(32)} since 2026-11-22T10:00:00.000Z: ada`;
    sentencesOf(file)("all", text, { WHO: "ada" });
  });

  test("UPDATE_GOLDEN=1 rewrites the file, sorted, and refuses one name for two sentences", (t) => {
    process.env["UPDATE_GOLDEN"] = "1";
    t.after(() => delete process.env["UPDATE_GOLDEN"]);
    const says = sentencesOf(file);
    says("two", "2");
    says("one", "1");
    says("one", "1");
    assert.throws(() => says("one", "3"), /two sentences/);
    assert.equal(readFileSync(golden, "utf8"), '{\n  "one": "1",\n  "two": "2"\n}\n');
  });
});
