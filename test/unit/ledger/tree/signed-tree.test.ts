/**
 * Goal: the gate judges proofs, notes and signatures as other implementations do. Method: the cases of
 * transparency-dev/merkle, of a real Certificate Transparency log, of Go's signed notes and of Wycheproof, each with
 * its own project's result.
 */
import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey, hash, sign, verify } from "node:crypto";
import { suite, test } from "node:test";
import { emptyRoot, Frontier, isIncluded } from "../../../../packages/core/src/record/tree/merkle.ts";
import {
  openNote,
  parseVerifierKey,
  signatureLine,
  verifierKey,
  verifySignature,
} from "../../../../packages/core/src/record/tree/note.ts";
import { isConsistent } from "../../../support/tree-proofs.ts";
import { control } from "../../../support/controls/control.ts";
import { readVector } from "../../../support/third-party/vectors.ts";

interface InclusionCase {
  readonly name: string;
  readonly index: string;
  readonly size: string;
  readonly leaf: string;
  readonly proof: readonly string[];
  readonly root: string;
  readonly valid: boolean;
}

interface ConsistencyCase {
  readonly name: string;
  readonly from: string;
  readonly size: string;
  readonly fromRoot: string;
  readonly root: string;
  readonly proof: readonly string[];
  readonly valid: boolean;
}

interface Proofs {
  readonly leaves: readonly string[];
  readonly roots: readonly string[];
  readonly inclusion: readonly InclusionCase[];
  readonly consistency: readonly ConsistencyCase[];
}

const bytes = (hex: string): Buffer => Buffer.from(hex, "hex");

function judgeInclusion({ index, size, leaf, proof, root }: InclusionCase): boolean {
  return isIncluded({
    index: Number(index),
    size: Number(size),
    leaf: bytes(leaf),
    proof: proof.map(bytes),
    root: bytes(root),
  });
}

function judgeConsistency({ from, size, fromRoot, root, proof }: ConsistencyCase): boolean {
  return isConsistent({
    from: Number(from),
    size: Number(size),
    fromRoot: bytes(fromRoot),
    root: bytes(root),
    proof: proof.map(bytes),
  });
}

function namesOfDifferences<Case extends { readonly name: string; readonly valid: boolean }>(
  cases: readonly Case[],
  judge: (each: Case) => boolean,
): readonly string[] {
  return cases.filter((each) => judge(each) !== each.valid).map(({ name }) => name);
}

suite("proofs of RFC 6962 and RFC 9162", () => {
  const { leaves, roots, inclusion, consistency } = JSON.parse(readVector("merkle/proofs.json")) as Proofs;

  test("the first eight trees have the expected roots", () => {
    const frontier = new Frontier();
    const grown = leaves.map((leaf) => {
      frontier.append(hash("sha256", Buffer.concat([Buffer.of(0), bytes(leaf)]), "hex"));
      return frontier.root().toString("hex");
    });
    assert.deepEqual(grown, roots);
    assert.equal(emptyRoot.toString("hex"), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  });

  test("inclusion proofs are judged as transparency-dev/merkle judges them", () => {
    assert.equal(inclusion.length, 98);
    assert.deepEqual(namesOfDifferences(inclusion, judgeInclusion), []);
  });

  test("consistency proofs are judged as transparency-dev/merkle judges them, but roots must be 32 bytes", () => {
    assert.equal(consistency.length, 97);
    assert.deepEqual(namesOfDifferences(consistency, judgeConsistency), [
      "edge 2: 0 to 0",
      "edge 3: 0 to 1",
      "edge 4: 1 to 1",
    ]);
    const stricter = consistency.filter(({ name }) => /^edge [234]:/.test(name));
    assert.ok(stricter.every(({ valid, fromRoot }) => valid && fromRoot.length !== 64));
  });

  control("positive control: a verifier that accepts all, refuses all or checks only the root is noticed", () => {
    const liars = [() => true, () => false, ({ root }: { readonly root: string }) => roots.includes(root)];
    for (const liar of liars) {
      assert.ok(namesOfDifferences(inclusion, liar).length >= 5);
      assert.ok(namesOfDifferences(consistency, liar).length >= 5);
    }
  });

  test("the inclusion and consistency proofs of a real log with 961,984,013 leaves are valid", () => {
    const { entries } = JSON.parse(readVector("merkle/argon2020/entries.json"));
    const { tree_size: size, sha256_root_hash: signed } = JSON.parse(readVector("merkle/argon2020/sth.json"));
    const { leaf_index: index, audit_path: path } = JSON.parse(readVector("merkle/argon2020/proof.json"));
    const { consistency: between } = JSON.parse(readVector("merkle/argon2020/consistency.json"));
    const decode = (text: string): Buffer => Buffer.from(text, "base64");
    const leaf = hash("sha256", Buffer.concat([Buffer.of(0), decode(entries[0].leaf_input)]), "buffer");
    const included = { index, size, leaf, proof: path.map(decode), root: decode(signed) };
    assert.ok(isIncluded(included));
    assert.ok(!isIncluded({ ...included, index: index + 1 }), "positive control: the leaf beside it");
    const consistent = { from: 3654490, size, fromRoot: decode("AuIZ5V6sDUj1vn3Y1K85oOaQ7y+FJJKtyRTl1edIKBQ=") };
    assert.ok(isConsistent({ ...consistent, root: decode(signed), proof: between.map(decode) }));
    const shorter = between.slice(1).map(decode);
    assert.ok(!isConsistent({ ...consistent, root: decode(signed), proof: shorter }), "positive control: a hash less");
  });
});

interface NoteCase {
  readonly name: string;
  readonly note: string;
  readonly keys: readonly string[];
  /** Null if Go refuses the note or no known key has signed it. */
  readonly signedBy: readonly string[] | null;
}

interface Notes {
  readonly verifierKeys: { readonly good: readonly string[]; readonly bad: readonly string[] };
  readonly signerKey: string;
  readonly text: string;
  readonly signed: string;
  readonly notes: readonly NoteCase[];
}

suite("signed notes of golang.org/x/mod", () => {
  const { verifierKeys, signerKey, text, signed, notes } = JSON.parse(readVector("note/notes.json")) as Notes;

  test("the parser reads good verifier keys and refuses bad, shortened and changed ones", () => {
    for (const key of verifierKeys.good) {
      const read = parseVerifierKey(key);
      assert.ok(read.ok && read.value.text === key, key);
    }
    const [key = ""] = verifierKeys.good;
    const positions = Array.from({ length: key.length + 1 }, (_, at) => at);
    const pieces = positions.flatMap((from) => positions.slice(from + 1).map((to) => key.slice(from, to)));
    const changed = positions
      .slice(0, -1)
      .map((at) => key.slice(0, at) + String.fromCharCode(key.charCodeAt(at) + 1) + key.slice(at + 1));
    const bad = [...verifierKeys.bad, ...pieces.filter((piece) => piece !== key), ...changed];
    assert.ok(bad.length > 2000);
    assert.deepEqual(
      bad.filter((each) => parseVerifierKey(each).ok),
      [],
    );
  });

  test("the same key makes the same signature line as in Go", () => {
    const [, name = "", id, material = ""] = /^PRIVATE\+KEY\+([^+]+)\+([0-9a-f]{8})\+(.*)$/.exec(signerKey) ?? [];
    const seed = Buffer.from(material, "base64").subarray(1);
    const pkcs8 = Buffer.concat([bytes("302e020100300506032b657004220420"), seed]);
    const key = createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
    const publicKey = createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32);
    const verifier = verifierKey(name, publicKey);
    assert.deepEqual([verifier.id, verifier.text], [id, verifierKeys.good[0]]);
    assert.equal(`${text}\n${signatureLine(verifier, sign(null, Buffer.from(text), key))}`, signed);
  });

  for (const { name, note, keys, signedBy } of notes)
    test(`the note "${name}" is ${signedBy === null ? "refused" : `signed by ${signedBy.join(" and ")}`}`, () =>
      assert.deepEqual(signers(note, keys), signedBy));

  control("positive control: a note with one changed character is noticed", () => {
    const kept = Array.from(signed, (character, at) => {
      const other = String.fromCodePoint((character.codePointAt(0) ?? 0) ^ 1);
      return signers(signed.slice(0, at) + other + signed.slice(at + 1), verifierKeys.good);
    });
    assert.deepEqual(
      kept.filter((found) => found !== null),
      [],
    );
    assert.deepEqual(new Set(notes.map(({ signedBy }) => signedBy === null)), new Set([true, false]));
  });
});

/**
 * Returns the known keys that signed a note; null if the text is not a note, a signature is wrong, or no known key
 * signed.
 */
function signers(written: string, keys: readonly string[]): readonly string[] | null {
  const known = keys.map(parseVerifierKey).flatMap((key) => (key.ok ? [key.value] : []));
  const opened = openNote(written, known);
  return opened.ok ? opened.value.signed.map(({ key }) => key.name) : null;
}

interface SignatureCase {
  readonly tcId: number;
  readonly msg: string;
  readonly sig: string;
  readonly result: "valid" | "invalid";
}

interface SignatureGroup {
  readonly publicKey: { readonly pk: string };
  readonly publicKeyDer: string;
  readonly tests: readonly SignatureCase[];
}

suite("Ed25519 cases of Wycheproof", () => {
  const { testGroups } = JSON.parse(readVector("wycheproof/ed25519_test.json")) as {
    readonly testGroups: readonly SignatureGroup[];
  };
  const cases = testGroups.flatMap(({ publicKey, tests, publicKeyDer }) =>
    tests.map((each) => ({ ...each, publicKey: bytes(publicKey.pk), publicKeyDer, message: bytes(each.msg) })),
  );
  type Case = (typeof cases)[number];

  /**
   * Returns a note's signature under that key; undefined if the message is not text, because a note contains only text.
   */
  function judgeNote({ publicKey, message, sig }: Case): boolean | undefined {
    const text = message.toString("utf8");
    if (!Buffer.from(text, "utf8").equals(message)) return undefined;
    const key = verifierKey("wycheproof", publicKey);
    const verified = verifySignature(text, { name: key.name, id: key.id, bytes: bytes(sig) }, [key]);
    return verified.ok && verified.value !== undefined;
  }

  function judgeBytes({ publicKey, message, sig }: Case): boolean {
    const key = Buffer.concat([bytes("302a300506032b6570032100"), publicKey]);
    return verify(null, message, createPublicKey({ key, format: "der", type: "spki" }), bytes(sig));
  }

  test("Node judges 151 signatures by 78 keys as Wycheproof does", () => {
    assert.deepEqual([cases.length, testGroups.length], [151, 78]);
    const wrong = cases.filter((each) => judgeBytes(each) !== (each.result === "valid"));
    assert.deepEqual(
      wrong.map(({ tcId }) => tcId),
      [],
    );
    for (const { publicKey, publicKeyDer } of cases)
      assert.equal(`302a300506032b6570032100${publicKey.toString("hex")}`, publicKeyDer);
  });

  test("the 84 cases whose message is a text are judged correctly as signatures of notes", () => {
    const judged = cases.map((each) => ({ ...each, judged: judgeNote(each) }));
    const texts = judged.filter((each) => each.judged !== undefined);
    assert.equal(texts.length, 84);
    assert.deepEqual(
      texts.filter((each) => each.judged !== (each.result === "valid")).map(({ tcId }) => tcId),
      [],
    );
    assert.ok(texts.filter(({ result }) => result === "invalid").length > 30);
  });

  control("positive control: a changed bit in any good signature is noticed", () => {
    const good = cases.filter(({ result }) => result === "valid");
    for (const each of good) {
      const changed = bytes(each.sig);
      changed.writeUInt8(changed.readUInt8(each.tcId % 64) ^ 1, each.tcId % 64);
      assert.ok(!judgeBytes({ ...each, sig: changed.toString("hex") }), `case ${each.tcId}`);
    }
    assert.equal(good.length, 88);
  });
});
