/**
 * Goal: an independent verifier, given only published data, agrees with us about proofs, tiles, heads and proof files,
 * and accepts nothing less. Method: the Go program in tools/third-party/outsider; every proof of small trees both ways,
 * thousands of damaged ones judged by two libraries and by us, and a log's published files.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../controls/control.ts";
import { leafHash } from "../../../packages/core/src/record/entry/leaf.ts";
import { isIncluded } from "../../../packages/core/src/record/tree/merkle.ts";
import { proofText } from "../../../packages/core/src/record/tree/proof-file.ts";
import {
  consistencyProof,
  inclusionProof,
  rootAt,
  type HashReader,
} from "../../../packages/core/src/record/tree/tiles.ts";
import { isConsistent } from "../tree-proofs.ts";
import { temporaryFolder } from "../gate.ts";
import { needPrograms, runProgram } from "./programs.ts";
import { makeLog, writeSite } from "./site.ts";

/** The program's input and output: see `claim` in its proofs.go. */
interface Claim {
  readonly kind: "inclusion" | "consistency";
  readonly index: number;
  readonly leaf?: string;
  readonly from: number;
  readonly fromRoot?: string;
  readonly size: number;
  readonly root: string;
  readonly proof: readonly string[];
}

const bytes = (hex = ""): Buffer => Buffer.from(hex, "hex");

function isValid({ kind, index, leaf, from, fromRoot, size, root, proof }: Claim): boolean {
  const common = { size, root: bytes(root), proof: proof.map(bytes) };
  return kind === "inclusion"
    ? isIncluded({ ...common, index, leaf: bytes(leaf) })
    : isConsistent({ ...common, from, fromRoot: bytes(fromRoot) });
}

const parseClaims = (text: string): Claim[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Claim);

suite("proofs by our code and by Go's", () => {
  const sizeMax = 80;
  const leaves = Array.from({ length: sizeMax }, (_, at) => bytes(leafHash(`leaf ${at}`)));
  const read: HashReader = async (level, from, count) => {
    assert.equal(level, 0);
    return Buffer.concat(leaves.slice(from, from + count));
  };

  test("every proof of every tree of up to 80 leaves is the same, and our code accepts it too", async (t) => {
    const found = needPrograms(t, "outsider");
    if (found === undefined) return;
    const { stdout } = await runProgram(found.outsider, ["proofs", String(sizeMax)]);
    const claims = parseClaims(stdout);
    assert.equal(claims.length, sizeMax * (sizeMax + 1));
    for (const claim of claims) {
      const { kind, index, from, size, root, proof } = claim;
      const ours = await (kind === "inclusion"
        ? inclusionProof(read, index, size)
        : consistencyProof(read, from, size));
      const text = `${kind} ${index} ${from} ${size}`;
      assert.deepEqual(
        ours.map((hashed) => hashed.toString("hex")),
        proof,
        text,
      );
      assert.equal((await rootAt(read, size)).toString("hex"), root, text);
      assert.ok(isValid(claim), text);
    }
  });

  test("sumdb, transparency-dev/merkle and our code judge damaged proofs alike", async (t) => {
    const found = needPrograms(t, "outsider");
    if (found === undefined) return;
    const { stdout } = await runProgram(found.outsider, ["proofs", "24"]);
    const claims = parseClaims(stdout).flatMap((claim) => [claim, ...damaged(claim)]);
    const input = claims.map((claim) => JSON.stringify(claim)).join("\n");
    const judged = await runProgram(found.outsider, ["judge"], { input });
    const lines = judged.stdout.trim().split("\n");
    assert.equal(lines.length, claims.length, judged.stderr);
    const counts = { good: 0, bad: 0 };
    for (const [at, claim] of claims.entries()) {
      const ours = isValid(claim);
      assert.equal(lines[at], `${ours} ${ours}`, JSON.stringify(claim));
      counts[ours ? "good" : "bad"] += 1;
    }
    assert.ok(counts.good >= 600 && counts.bad > 8000, JSON.stringify(counts));
    t.diagnostic(`${counts.good} hold, ${counts.bad} do not`);
  });
});

/** Returns a claim with one fault, or with a harmless change. The empty tree is left out, because no head signs it. */
function damaged(claim: Claim): readonly Claim[] {
  const { index, from, size, root, leaf, fromRoot, proof } = claim;
  const [first = root] = proof;
  return [
    { ...claim, index: index + 1, from: from + 1 },
    { ...claim, index: Math.max(0, index - 1), from: Math.max(1, from - 1) },
    { ...claim, size: size + 1 },
    { ...claim, size: size * 2 },
    { ...claim, size: Math.max(1, size - 1) },
    { ...claim, root: flipped(root) },
    { ...claim, ...(leaf === undefined ? {} : { leaf: flipped(leaf) }) },
    { ...claim, ...(fromRoot === undefined ? {} : { fromRoot: flipped(fromRoot) }) },
    { ...claim, proof: proof.slice(1) },
    { ...claim, proof: proof.slice(0, -1) },
    { ...claim, proof: proof.toReversed() },
    { ...claim, proof: [...proof, root] },
    { ...claim, proof: [first, ...proof] },
    ...proof.map((_, at) => ({
      ...claim,
      proof: proof.map((hashed, other) => (other === at ? flipped(hashed) : hashed)),
    })),
  ];
}

function flipped(hex: string): string {
  return `${(Number.parseInt(hex.slice(0, 1), 16) ^ 4).toString(16)}${hex.slice(1)}`;
}

suite("a log's published files", () => {
  for (const { size, indices } of [
    { size: 1, indices: [0] },
    { size: 700, indices: [0, 1, 255, 256, 511, 512, 698, 699] },
    { size: 66_000, indices: [0, 255, 65_535, 65_536, 65_999] },
  ])
    test(`a folder of ${size} rows has a valid head, all rows in the tree, and leaves in RFC 8785`, async (t) => {
      const found = needPrograms(t, "outsider");
      if (found === undefined) return;
      const log = makeLog({ size });
      const folder = temporaryFolder(t);
      await writeSite(folder, log);
      const looked = await runProgram(found.outsider, ["log", folder, log.vkey, ...indices.map(String)]);
      assert.equal(looked.code, 0, looked.stderr);
      const root = (await log.checkpoint()).split("\n")[2];
      assert.deepEqual(JSON.parse(looked.stdout), {
        origin: "svc-gate/third",
        size,
        root,
        included: indices,
        canonical: indices.length,
      });
    });

  control("positive control: an entry, a tile or a head of another history is refused", async (t) => {
    const found = needPrograms(t, "outsider");
    if (found === undefined) return;
    const log = makeLog({ size: 700 });
    const folder = temporaryFolder(t);
    await writeSite(folder, makeLog({ size: 700, fork: 600, signer: log.signer }));
    writeFileSync(join(folder, "checkpoint"), await log.checkpoint());
    for (const index of ["0", "650"])
      assert.equal((await runProgram(found.outsider, ["log", folder, log.vkey, index])).code, 1);
    writeFileSync(join(folder, "checkpoint"), (await log.checkpoint()).replace("\n700\n", "\n699\n"));
    const looked = await runProgram(found.outsider, ["log", folder, log.vkey]);
    assert.match(looked.stderr, /signature/);
  });
});

suite("proof files", () => {
  for (const { size, index } of [
    { size: 1, index: 0 },
    { size: 2, index: 1 },
    { size: 700, index: 513 },
    { size: 66_000, index: 65_999 },
  ])
    test(`row ${index + 1} of ${size}`, async (t) => {
      const found = needPrograms(t, "outsider");
      if (found === undefined) return;
      const log = makeLog({ size });
      const leaf = log.texts[index] ?? "";
      const file = join(temporaryFolder(t), "row.tlog-proof");
      const text = proofText({ leaf, index, proof: await log.inclusion(index), checkpoint: await log.checkpoint() });
      writeFileSync(file, text);
      const looked = await runProgram(found.outsider, ["proof", file, log.vkey]);
      assert.equal(looked.code, 0, looked.stderr);
      const wanted = { origin: "svc-gate/third", size, index, leaf, hash: leafHash(leaf) };
      assert.deepEqual(JSON.parse(looked.stdout), wanted);
    });

  control("positive control: no character of a proof file can be changed", async (t) => {
    const found = needPrograms(t, "outsider");
    if (found === undefined) return;
    const log = makeLog({ size: 5 });
    const index = 3;
    const text = proofText({
      leaf: log.texts[index] ?? "",
      index,
      proof: await log.inclusion(index),
      checkpoint: await log.checkpoint(),
    });
    const file = join(temporaryFolder(t), "row.tlog-proof");
    // Go reads a signature's last base64 character in four spellings; we write and read only one of them.
    const spelledFreely = text.length - "?=\n".length;
    for (let at = 0; at < text.length; at += 3) {
      if (at === spelledFreely) continue;
      const changed = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
      writeFileSync(file, changed);
      const looked = await runProgram(found.outsider, ["proof", file, log.vkey]);
      assert.equal(looked.code, 1, `character ${at}: ${looked.stdout}`);
    }
  });
});
