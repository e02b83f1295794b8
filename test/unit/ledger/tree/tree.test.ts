/**
 * Goal: the tree over the rows, its proofs, its tiles and its signed heads follow RFC 6962 and C2SP. Method: each size
 * and index is compared with a naive version of the RFC's recursion. Every proof is also tried with one hash, its leaf
 * or its root changed, and must then fail.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { openCheckpoint } from "../../../../packages/core/src/record/tree/checkpoint.ts";
import { emptyRoot, Frontier, isIncluded, nodeHash } from "../../../../packages/core/src/record/tree/merkle.ts";
import { parseVerifierKey, verifierKey } from "../../../../packages/core/src/record/tree/note.ts";
import { proofText, verifyProof } from "../../../../packages/core/src/record/tree/proof-file.ts";
import {
  makeSigningKey,
  readSigningKeys,
  Signer,
  writeFirstKey,
  writeSigningKeys,
} from "../../../../packages/gate/src/ledger/signing/signing-key.ts";
import {
  consistencyProof,
  entryBundle,
  frontierRoots,
  inclusionProof,
  levelSize,
  parseBundle,
  parseTilePath,
  rootAt,
  tilePath,
  tilesOf,
  type HashReader,
} from "../../../../packages/core/src/record/tree/tiles.ts";
import { isConsistent, readerOfTiles } from "../../../support/tree-proofs.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** Compares the message of an error with the sentence of this name. */
const saying =
  (name: string) =>
  ({ message }: Error): true => {
    says(name, message);
    return true;
  };

const sizeMax = 700;
const texts = Array.from({ length: sizeMax }, (_, at) => `leaf ${at}`);
const leaves = texts.map((text) => hash("sha256", `\0${text}`, "buffer"));

/** Computes the root by the definition itself: RFC 6962, section 2.1. */
function naiveRoot(hashes: readonly Buffer[]): Buffer {
  const [only = emptyRoot] = hashes;
  if (hashes.length < 2) return only;
  let split = 1;
  while (split * 2 < hashes.length) split *= 2;
  return nodeHash(naiveRoot(hashes.slice(0, split)), naiveRoot(hashes.slice(split)));
}

function changed(bytes: Uint8Array): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(7) ^ 4, 7);
  return copy;
}

/** Grows a tree: returns its frontier at each size, and all inner hashes that it gave out on the way. */
function grown(size: number): { readonly frontier: Frontier; readonly read: HashReader } {
  const frontier = new Frontier();
  const nodes = new Map<string, Buffer>();
  for (const leaf of leaves.slice(0, size)) {
    for (const { level, index, hash: root } of frontier.append(leaf.toString("hex")))
      nodes.set(`${level} ${index}`, root);
  }
  const at = (level: number, index: number): Buffer => {
    const found = level === 0 ? leaves[index] : nodes.get(`${level} ${index}`);
    assert.ok(found !== undefined && (level > 0 || index < size), `level ${level} has no hash ${index}`);
    return found;
  };
  const read: HashReader = (level, from, count) =>
    Promise.resolve(Buffer.concat(Array.from({ length: count }, (_, index) => at(level, from + index))));
  return { frontier, read };
}

const sizes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 64, 100, 255, 256, 257, 300, 511, 512, 513, sizeMax];

suite("the tree over the rows", () => {
  test("the tree grows to the root that RFC 6962 defines, and resumes from its stored frontier", async () => {
    for (const size of sizes) {
      const { frontier, read } = grown(size);
      const root = naiveRoot(leaves.slice(0, size));
      assert.deepEqual(frontier.root(), root, `size ${size}`);
      assert.deepEqual(Frontier.parse(size, frontier.text())?.root(), root);
      assert.equal(
        Frontier.parse(size + 1, frontier.text())?.size,
        bitsOf(size + 1) === bitsOf(size) ? size + 1 : undefined,
      );
      assert.deepEqual(new Frontier(size, await frontierRoots(read, size)).root(), root);
      if (size > 0) assert.deepEqual(await rootAt(read, size), root);
    }
  });

  test("an inclusion proof is valid only for its own leaf, index and root", async () => {
    for (const size of sizes) {
      const { frontier, read } = grown(size);
      const root = frontier.root();
      for (let index = 0; index < size; index += Math.max(1, Math.floor(size / 23))) {
        const leaf = leaves[index] ?? emptyRoot;
        const proof = await inclusionProof(read, index, size);
        const inclusion = { index, size, leaf, proof, root };
        assert.ok(isIncluded(inclusion), `leaf ${index} of ${size}`);
        assert.ok(!isIncluded({ ...inclusion, leaf: changed(leaf) }));
        assert.ok(!isIncluded({ ...inclusion, root: changed(root) }));
        assert.ok(!isIncluded({ ...inclusion, proof: [...proof, root] }));
        assert.ok(!isIncluded({ ...inclusion, index: size }));
        if (proof.length > 0) assert.ok(!isIncluded({ ...inclusion, proof: proof.slice(1) }));
        for (const changedAt of proof.keys())
          assert.ok(
            !isIncluded({ ...inclusion, proof: proof.map((step, at) => (at === changedAt ? changed(step) : step)) }),
          );
      }
    }
  });

  test("a consistency proof is valid only for its own two trees", async () => {
    for (const size of sizes) {
      const { frontier, read } = grown(size);
      const root = frontier.root();
      for (const from of sizes.filter((smaller) => smaller <= size)) {
        const fromRoot = naiveRoot(leaves.slice(0, from));
        const proof = await consistencyProof(read, from, size);
        const consistency = { from, size, fromRoot, root, proof };
        assert.ok(isConsistent(consistency), `${from} to ${size}`);
        assert.ok(!isConsistent({ ...consistency, fromRoot: changed(fromRoot) }));
        if (from > 0) assert.ok(!isConsistent({ ...consistency, root: changed(root) }));
        assert.ok(!isConsistent({ ...consistency, proof: [...proof, root] }));
        assert.ok(!isConsistent({ ...consistency, from: size, size: from }) || from === size);
        for (const index of proof.keys())
          assert.ok(
            !isConsistent({ ...consistency, proof: proof.map((step, at) => (at === index ? changed(step) : step)) }),
          );
      }
    }
  });

  test("the tree read from tiles equals the tree read from leaves", async () => {
    const { frontier, read } = grown(sizeMax);
    const tiles = readerOfTiles(sizeMax, ({ level, index, width }) => read(level, index * 256, width));
    assert.deepEqual(await rootAt(tiles, sizeMax), frontier.root());
    const proof = await inclusionProof(tiles, 612, sizeMax);
    assert.deepEqual(proof, await inclusionProof(read, 612, sizeMax));
    assert.deepEqual([...tilesOf(sizeMax, 0)].map(tilePath).concat([...tilesOf(sizeMax, 1)].map(tilePath)), [
      "tile/0/000",
      "tile/0/001",
      "tile/0/002.p/188",
      "tile/1/000.p/2",
    ]);
    const short = readerOfTiles(sizeMax, async ({ level, index, width }) =>
      (await read(level, index * 256, width)).subarray(32),
    );
    await assert.rejects(rootAt(short, sizeMax), /\btile.1.000.p.2\b.*\b32\b.*\b64\b/);
  });
});

function bitsOf(size: number): number {
  return size.toString(2).replaceAll("0", "").length;
}

test("tiles have the paths that C2SP defines, and other paths are refused", () => {
  const cases: readonly (readonly [string, number | "entries", number, number])[] = [
    ["tile/0/000", 0, 0, 256],
    ["tile/0/x001/x234/067", 0, 1_234_067, 256],
    ["tile/1/999.p/1", 1, 999, 1],
    ["tile/entries/x001/000.p/255", "entries", 1000, 255],
  ];
  for (const [path, level, index, width] of cases) {
    assert.equal(tilePath({ level, index, width }), path);
    assert.deepEqual(parseTilePath(path), { level, index, width });
  }
  for (const path of [
    "tile/0/0",
    "tile/0/x000/001",
    "tile/0/000.p/0",
    "tile/0/000.p/256",
    "tile/00/000",
    "tile/0/000/",
    "tile/0/1234",
  ])
    assert.equal(parseTilePath(path), undefined, path);
  assert.equal(levelSize(70_000, 1), 273);
  const bundle = entryBundle(["a", "", "ä".repeat(300)]);
  assert.deepEqual(parseBundle(bundle)?.map(String), ["a", "", "ä".repeat(300)]);
  assert.equal(parseBundle(bundle.subarray(0, -1)), undefined);
});

suite("signed heads", () => {
  const origin = "example.org/ledger";
  const keys = { current: makeSigningKey(), before: makeSigningKey() };
  const root = naiveRoot(leaves);

  test("the current key and the previous key sign a head, and no other key verifies it", () => {
    const signer = new Signer(origin, keys);
    const [current, before] = signer.verifiers;
    assert.ok(current && before);
    const written = signer.sign({ origin, size: sizeMax, root });
    for (const known of [[current], [before], [current, before]]) {
      const opened = openCheckpoint(written, known);
      assert.ok(opened.ok, opened.ok ? "" : opened.problem);
      assert.deepEqual([opened.value.size, opened.value.signed.length], [sizeMax, known.length]);
    }
    const [stranger] = new Signer(origin, { current: makeSigningKey(), before: undefined }).verifiers;
    assert.ok(stranger);
    assert.ok(!openCheckpoint(written, [stranger]).ok);
    assert.ok(!openCheckpoint(written, [verifierKey("example.org/other", current.publicKey)]).ok);
    const bytes = Buffer.from(written);
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const copy = Buffer.from(bytes);
      copy.writeUInt8(copy.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      const opened = openCheckpoint(copy.toString("utf8"), [current, before]);
      assert.ok(!opened.ok || opened.value.signed.length < 2, `bit ${bit}`);
    }
  });

  test("the parser reads a verifier key from its text and refuses a changed one", () => {
    const [key] = new Signer(origin, keys).verifiers;
    assert.ok(key);
    assert.deepEqual(parseVerifierKey(key.text), { ok: true, value: key });
    assert.ok(!parseVerifierKey(key.text.replace("example", "Example")).ok);
    const known = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    const parsed = parseVerifierKey(known);
    assert.equal(parsed.ok && parsed.value.id, "c74f20a3");
  });

  test("a proof file can be verified offline, and a change of any bit is noticed", async () => {
    const signer = new Signer(origin, keys);
    const { read } = grown(sizeMax);
    const text = proofText({
      leaf: texts[612] ?? "",
      index: 612,
      proof: await inclusionProof(read, 612, sizeMax),
      checkpoint: signer.sign({ origin, size: sizeMax, root }),
    });
    const proven = verifyProof(text, signer.verifiers);
    assert.ok(proven.ok, proven.ok ? "" : proven.problem);
    assert.deepEqual([proven.value.seq, proven.value.hash], [613, leaves[612]?.toString("hex")]);
    const bytes = Buffer.from(text);
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const copy = Buffer.from(bytes);
      copy.writeUInt8(copy.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      const found = verifyProof(copy.toString("utf8"), signer.verifiers);
      assert.ok(!found.ok || found.value.checkpoint.signed.length < 2, `bit ${bit}`);
    }
  });

  test("only its owner can read a key file, and a damaged key file is refused", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "svc-gate-tree-"));
    t.after(() => rm(folder, { recursive: true }));
    const file = join(folder, "signing.key");
    assert.equal(await readSigningKeys(file), undefined);
    const made = await Promise.all(Array.from({ length: 8 }, () => writeFirstKey(join(folder, "first.key"))));
    assert.equal(
      new Set(made.map((each) => new Signer(origin, each).current)).size,
      1,
      "two that make it have the same",
    );
    assert.deepEqual(await readdir(folder), ["first.key"]);
    await writeSigningKeys(file, keys);
    const found = await readSigningKeys(file);
    assert.ok(found && new Signer(origin, found).verifiers.length === 2);
    assert.deepEqual(new Signer(origin, found).verifiers, new Signer(origin, keys).verifiers);
    if (process.platform !== "win32") {
      assert.equal((await stat(file)).mode & 0o777, 0o600);
      for (const mode of [0o640, 0o604]) {
        await chmod(file, mode);
        await assert.rejects(readSigningKeys(file), saying(`readable by others: ${mode.toString(8)}`));
      }
      await chmod(file, 0o600);
    }
    const text = await readFile(file, "utf8");
    for (const contents of [text, `\n  ${text}\n`])
      assert.notEqual((await readSigningKeys(contents))?.before, undefined, "the text itself");
    await assert.rejects(readSigningKeys(`"${text}"`), (error: Error) => {
      says("damaged text", error.message);
      return !error.message.includes(text.slice(30, 60));
    });
    for (const broken of [
      "",
      text.slice(5),
      text + text,
      text.slice(0, text.length / 2).repeat(2),
      `${text}x`,
      text.replace(/[A-Z]{4}/, "AAAA"),
    ]) {
      await writeFile(file, broken);
      await assert.rejects(readSigningKeys(file), saying("damaged file"), JSON.stringify(broken.slice(0, 40)));
    }
  });
});
