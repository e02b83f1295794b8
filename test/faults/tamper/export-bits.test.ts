/**
 * Goal: every changed bit of the data that an outsider receives is noticed: of an export's checkpoint, tiles, bundles,
 * evidence and contracts, and of a row's proof. Method: bits of the exports of spec/vectors are flipped one at a time.
 * The verifier without dependencies must name the row to which the byte belongs. For a proof, the gate's own verifier
 * runs too. TAMPER_BITS=all flips every bit; in the ledger of 300 rows, only some bytes of its tiles. Positive
 * controls: a verifier that compares no tiles, and one that reads no evidence.
 */
import assert from "node:assert/strict";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { proofText, verifyProof } from "../../../packages/core/src/record/tree/proof-file.ts";
import { parseVerifierKey } from "../../../packages/core/src/record/tree/note.ts";
import { inclusionProof, parseBundle, tilePath } from "../../../packages/core/src/record/tree/tiles.ts";
import { readerOfTiles } from "../../support/tree-proofs.ts";
import { control } from "../../support/controls/control.ts";
import { temporaryFolder } from "../../support/ledger-fixture.ts";
import { mutatedFile, type Mutation } from "../../support/mutation/mutate.ts";
import { bitsOf } from "../../support/ledger-tamper-cases.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const exportsFolder = join(root, "spec", "vectors", "exports");
const isWhole = process.env["TAMPER_BITS"] === "all";

interface Report {
  readonly ok: boolean;
  readonly problem: { readonly code: string; readonly row: number } | null;
}
type Verify = (target: string, keys: readonly string[]) => Report;

const verifier = join(root, "verify", "svc-verify.mjs");
const load = async (file: string): Promise<Verify> =>
  ((await import(pathToFileURL(file).href)) as { readonly verify: Verify }).verify;

interface Case {
  readonly base: string;
  readonly keys: readonly string[];
  readonly changes: readonly unknown[];
}

/** Returns the keys under which an export of the vectors is valid. */
function keysOf(base: string): readonly string[] {
  const { cases } = JSON.parse(readFileSync(join(exportsFolder, "cases.json"), "utf8")) as {
    readonly cases: readonly Case[];
  };
  const good = cases.find((found) => found.base === base && found.changes.length === 0);
  assert.ok(good !== undefined, base);
  return good.keys;
}

/**
 * Returns the row that must be named for each byte of an export's file; undefined if any row with a sentence will do.
 */
function rowsOf(name: string, bytes: Buffer): (byte: number) => number | undefined {
  const first = Number(/\/(\d{3})(?:\.p\/\d+)?$/.exec(name)?.[1] ?? 0) * 256 + 1;
  const ends = (lengths: readonly number[]): ((byte: number) => number | undefined) => {
    let end = 0;
    const all = lengths.map((length) => (end += length));
    return (byte) => all.findIndex((to) => byte < to) + first;
  };
  if (name === "checkpoint") return () => 0;
  if (name.startsWith("tile/entries/")) return ends((parseBundle(bytes) ?? []).map(({ length }) => length + 2));
  if (name.startsWith("tile/0/")) return (byte) => Math.floor(byte / 32) + first;
  if (name.startsWith("tile/1/")) return (byte) => (Math.floor(byte / 32) + first - 1) * 256 + 1;
  if (name.startsWith("evidence/"))
    return ends(
      bytes
        .toString("latin1")
        .split("\n")
        .map(({ length }) => length + 1),
    );
  return () => undefined;
}

interface Turned {
  turned: number;
  readonly missed: string[];
}

/** Flips bits of a folder's files; returns those that are not found, or found at another row, by the file's folder. */
function transaction(
  folder: string,
  base: string,
  verify: Verify,
  isLooked: (name: string, byte: number) => boolean,
): ReadonlyMap<string, Turned> {
  const keys = keysOf(base);
  assert.equal(verify(folder, keys).ok, true);
  const found = new Map<string, Turned>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())) {
    const file = join(entry.parentPath, entry.name);
    const name = relative(folder, file);
    const bytes = readFileSync(file);
    const rowOf = rowsOf(name, bytes);
    const group = name.replace(/\/[0-9a-fx.p/]+(?:\.txt)?$/, "");
    const turned = found.get(group) ?? { turned: 0, missed: [] };
    found.set(group, turned);
    for (const [byte, was] of bytes.entries()) {
      if (!isLooked(name, byte)) continue;
      for (const bit of bitsOf(byte)) {
        writeFileSync(file, Buffer.from(bytes).fill(was ^ (1 << bit), byte, byte + 1));
        const { problem } = verify(folder, keys);
        const row = rowOf(byte);
        turned.turned += 1;
        if (problem === null || (row !== undefined && problem.row !== row))
          turned.missed.push(
            `${name}, byte ${byte}, bit ${bit}: ${problem === null ? "nothing" : `${problem.code} at row ${problem.row}, not ${row}`}`,
          );
      }
    }
    writeFileSync(file, bytes);
  }
  assert.equal(verify(folder, keys).ok, true, "every bit was turned back");
  for (const [group, { turned, missed }] of [...found].filter(([, each]) => each.turned > 0))
    console.log(`  ${base}: ${group.padEnd(16)} ${turned} turned ${turned - missed.length} found`);
  return found;
}

function copyOf(t: TestContext, base: string): string {
  const folder = temporaryFolder(t);
  cpSync(join(exportsFolder, base), folder, { recursive: true });
  return folder;
}

suite("an export, bit by bit", () => {
  const large = /^(?:evidence|tile)\//;
  const looked: readonly (readonly [base: string, isLooked: (name: string, byte: number) => boolean])[] = [
    ["worked", (name, byte) => isWhole || !large.test(name) || byte % 5 === 0],
    ["acts", (name, byte) => isWhole || !large.test(name) || byte % 11 === 0],
    ["long", (name, byte) => name.startsWith("tile/1/") || (name.startsWith("tile/0/") && byte % 97 === 0)],
  ];
  for (const [base, isLooked] of looked) {
    test(`the verifier finds each flipped bit of ${base} at its row, except in log.json`, async (t) => {
      const found = transaction(copyOf(t, base), base, await load(verifier), isLooked);
      const { turned: hints = 0, missed: ignored = [] } = found.get("log.json") ?? {};
      assert.equal(ignored.length, hints);
      assert.deepEqual(
        [...found].filter(([group]) => group !== "log.json").flatMap(([, { missed }]) => missed),
        [],
      );
      assert.ok([...found.values()].reduce((sum, { turned }) => sum + turned, 0) > 100);
    });
  }

  const removed: readonly (readonly [title: string, removed: Mutation, missed: string])[] = [
    [
      "compares no tile",
      { within: "Tree.compare", find: "need(this.tiles[level].hexSlice($$place) === node, $$said);", put: "" },
      "tile",
    ],
    [
      "compares no evidence with its leaf",
      { within: "checkEvidence", find: "need(sha256($digests) === leaf.evidence, $$said);", put: "" },
      "evidence",
    ],
  ];
  for (const [title, mutation, group] of removed) {
    control(`positive control: a verifier that ${title} is noticed`, async (t) => {
      const mutant = join(temporaryFolder(t), "svc-verify.mjs");
      writeFileSync(mutant, mutatedFile(verifier, [mutation]));
      const found = transaction(
        copyOf(t, "worked"),
        "worked",
        await load(mutant),
        (name, byte) => name.startsWith(group) && !name.includes("entries") && byte % 13 === 0,
      );
      const { turned, missed } = found.get(group) ?? { turned: 0, missed: [] };
      // A bit that makes an invalid base64url digit is noticed without any hash.
      assert.ok(missed.length > turned / 10, `${missed.length} of ${turned} missed`);
    });
  }
});

test("neither verifier accepts a row's proof with a flipped bit", async (t) => {
  const folder = copyOf(t, "long");
  const keys = keysOf("long");
  const read = (path: string): Buffer => readFileSync(join(folder, path));
  const checkpoint = read("checkpoint").toString("utf8");
  const size = Number(checkpoint.split("\n")[1]);
  const index = 7;
  const proof = await inclusionProof(
    readerOfTiles(size, async (wanted) => read(tilePath(wanted))),
    index,
    size,
  );
  const leaf = (parseBundle(read("tile/entries/000")) ?? [])[index]?.toString("utf8") ?? "";
  const text = proofText({ leaf, index, proof, checkpoint });
  const known = keys.map(parseVerifierKey).flatMap((key) => (key.ok ? [key.value] : []));
  const verify = await load(verifier);
  const file = join(folder, "8.tlog-proof");
  const takes = (bytes: Buffer): readonly boolean[] => {
    writeFileSync(file, bytes);
    return [verifyProof(bytes.toString("utf8"), known).ok, verify(file, keys).ok];
  };
  const bytes = Buffer.from(text);
  assert.deepEqual(takes(bytes), [true, true]);
  const missed: string[] = [];
  let turned = 0;
  for (const [byte, was] of bytes.entries()) {
    for (const bit of bitsOf(byte)) {
      const taken = takes(Buffer.from(bytes).fill(was ^ (1 << bit), byte, byte + 1));
      turned += 1;
      if (taken.includes(true)) missed.push(`byte ${byte}, bit ${bit}: ${taken.join()}`);
    }
  }
  console.log(`  proof of ${bytes.length} bytes        ${turned} turned ${turned - missed.length} found`);
  assert.deepEqual(missed, []);
});
