/**
 * Goal: a signed head covers every answered check, and others can verify it tile by tile. The gate notices a wrong,
 * lost or rotated key before it decides anything. Method: a gate in this process whose log is read over HTTP as a
 * stranger would; each proof is recomputed from the tiles. Keys are replaced and removed between two starts.
 */
import assert from "node:assert/strict";
import { chmodSync, copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { leafHash } from "../../packages/core/src/record/entry/mod.ts";
import { openSigner } from "../../packages/gate/src/ledger/signing/signer.ts";
import type { LedgerStore } from "../../packages/gate/src/ledger/store/store.ts";
import { openCheckpoint } from "../../packages/core/src/record/tree/checkpoint.ts";
import { isIncluded } from "../../packages/core/src/record/tree/merkle.ts";
import { parseVerifierKey, type VerifierKey } from "../../packages/core/src/record/tree/note.ts";
import {
  makeSigningKey,
  readSigningKeys,
  writeSigningKeys,
} from "../../packages/gate/src/ledger/signing/signing-key.ts";
import { consistencyProof, inclusionProof, parseBundle, tilePath } from "../../packages/core/src/record/tree/tiles.ts";
import { isConsistent, readerOfTiles } from "../support/tree-proofs.ts";
import { sentencesOf } from "../support/sentences.ts";
import { command } from "../support/command.ts";
import { ask, key, startGate, temporaryFolder, type Running } from "../support/gate.ts";

const says = sentencesOf(import.meta.filename);

const firstLine = (text: string): string => text.split("\n")[0] ?? "";

async function refusal(refused: Promise<unknown>): Promise<string> {
  const error = await refused.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof Error, "it was not refused");
  return error.message;
}

async function check(gate: Running): Promise<{ readonly seq: number; readonly hash: string }> {
  const body = JSON.stringify({ tool_name: "note.add", tool_input: {} });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const { json } = await ask(gate, "/check", { method: "POST", headers, body });
  return json.receipt;
}

async function bytesOf(gate: Running, path: string): Promise<Buffer> {
  const answer = await fetch(`${gate.address}/${path}`, { headers: { authorization: `Bearer ${key}` } });
  assert.equal(answer.status, 200, path);
  assert.equal(answer.headers.get("content-type"), "application/octet-stream");
  return Buffer.from(await answer.arrayBuffer());
}

async function verifierOf(folder: string): Promise<readonly VerifierKey[]> {
  const { stdout } = await command(["keygen", "--data-dir", join(folder, "data")]);
  return [...stdout.matchAll(/svc-gate\/\S+\+\S+\+\S+/g)].map(([text]) => {
    const parsed = parseVerifierKey(text);
    assert.ok(parsed.ok);
    return parsed.value;
  });
}

async function headOf(gate: Running): ReturnType<typeof opened> {
  return opened(gate, await verifierOf(gate.folder));
}

async function opened(
  gate: Running,
  keys: readonly VerifierKey[],
): Promise<{ readonly size: number; readonly root: Buffer; readonly signed: number; readonly text: string }> {
  const { text, status } = await ask(gate, "/checkpoint");
  assert.equal(status, 200);
  const head = openCheckpoint(text, keys);
  assert.ok(head.ok, head.ok ? "" : head.problem);
  const { size, root, signed } = head.value;
  return { size, root, signed: signed.length, text };
}

suite("signed heads of a gate", () => {
  test(
    "a signed head covers every answer, and tiles alone prove each row",
    { tags: ["receipt.chain-hashes"] },
    async (t) => {
      const gate = await startGate(t);
      assert.equal((await headOf(gate)).size, 0);
      const receipts = [];
      for (let at = 0; at < 260; at += 20)
        receipts.push(...(await Promise.all(Array.from({ length: 20 }, () => check(gate)))));
      const { size, root } = await headOf(gate);
      assert.equal(size, receipts.length);
      const read = readerOfTiles(size, (tile) => bytesOf(gate, tilePath(tile)));
      for (const { seq, hash: of } of receipts) {
        const leaf = Buffer.from(of, "hex");
        assert.ok(isIncluded({ index: seq - 1, size, leaf, root, proof: await inclusionProof(read, seq - 1, size) }));
      }
      const bundle = parseBundle(await bytesOf(gate, "tile/entries/000"));
      const hashes = bundle?.map((leaf) => leafHash(String(leaf)));
      assert.deepEqual(
        hashes,
        receipts
          .toSorted((a, b) => a.seq - b.seq)
          .slice(0, 256)
          .map(({ hash: of }) => of),
      );
      const before = { size, root };
      await check(gate);
      const later = await headOf(gate);
      const tiles = readerOfTiles(later.size, (tile) => bytesOf(gate, tilePath(tile)));
      const proof = await consistencyProof(tiles, before.size, later.size);
      const grown = { from: before.size, fromRoot: before.root, size: later.size, root: later.root, proof };
      assert.ok(isConsistent(grown));
      assert.ok(!isConsistent({ ...grown, fromRoot: Buffer.alloc(32) }), "positive control: another history is none");
    },
  );

  test("the gate answers 404 for tiles that no signed head covers", async (t) => {
    const gate = await startGate(t);
    for (let at = 0; at < 3; at += 1) await check(gate);
    for (const path of [
      "0/000",
      "0/000.p/4",
      "1/000.p/1",
      "entries/000.p/4",
      "0/001.p/1",
      "0/0",
      "x",
      "63/000.p/1",
      "64/000",
    ])
      assert.equal((await ask(gate, `/tile/${path}`)).status, 404, path);
    assert.equal((await bytesOf(gate, "tile/0/000.p/2")).length, 64);
    for (const path of ["/checkpoint", "/tile/0/000.p/2"])
      assert.equal((await ask(gate, path, { headers: { authorization: "" } })).status, 401, path);
  });

  test("verify checks a proof file offline, and refuses a changed file or a missing key", async (t) => {
    const gate = await startGate(t);
    for (let at = 0; at < 9; at += 1) await check(gate);
    const receipt = await check(gate);
    await gate.stop();
    const [verifier] = await verifierOf(gate.folder);
    const file = join(gate.folder, "row.tlog-proof");
    const made = await command(["prove", String(receipt.seq), join(gate.folder, "data"), "--out", file]);
    assert.deepEqual([made.code, made.stderr], [0, ""]);
    const verified = await command(["verify", file, "--json", "--key", verifier?.text ?? ""]);
    assert.deepEqual([verified.code, JSON.parse(verified.stdout).hash], [0, receipt.hash]);
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace(/index 9/, "index 8"));
    const wrong = await command(["verify", file, "--key", verifier?.text ?? ""]);
    assert.equal(wrong.code, 1);
    says("the proof is of another row", firstLine(wrong.stderr));
    const other = join(gate.folder, "other.tlog-proof");
    writeFileSync(other, text.replace(/extra .*/, `extra ${Buffer.from("{}").toString("base64")}`));
    assert.match((await command(["verify", other, "--key", verifier?.text ?? ""])).stderr, /^NOT PROVEN/);
    writeFileSync(file, text);
    const unnamed = await command(["verify", file]);
    assert.equal(unnamed.code, 2);
    says("verify without a key", firstLine(unnamed.stderr));
    const missing = await command(["prove", "11", join(gate.folder, "data")]);
    assert.equal(missing.code, 2);
    says("prove a row after the last", missing.stderr.trimEnd());
  });
});

test("prove refuses rows and heads that differ from what was signed", async (t) => {
  const gate = await startGate(t);
  for (let at = 0; at < 5; at += 1) await check(gate);
  await gate.stop();
  const data = join(gate.folder, "data");
  const prove = async (seq: number) => {
    const file = join(gate.folder, `${seq}.tlog-proof`);
    const { code, stdout, stderr } = await command(["prove", String(seq), data, "--out", file]);
    return { code, said: code === 0 ? stdout : stderr, isWritten: existsSync(file) };
  };
  const whole = { code: 0, isWritten: true };
  assert.partialDeepStrictEqual(await prove(1), whole, "positive control");
  const database = new DatabaseSync(join(data, "ledger.db"));
  database.exec("UPDATE receipts SET leaf = replace(leaf, 'note.add', 'note.adx') WHERE seq = 2");
  for (const seq of [2, 3]) {
    const { said, ...refused } = await prove(seq);
    assert.deepEqual(refused, { code: 2, isWritten: false });
    says(`row ${seq} cannot be proven`, said.trimEnd());
  }
  database.exec("UPDATE receipts SET leaf = replace(leaf, 'note.adx', 'note.add') WHERE seq = 2");
  assert.partialDeepStrictEqual(await prove(3), whole, "it was that byte");
  database.close();
  const checkpoint = join(data, "checkpoint");
  const signed = readFileSync(checkpoint, "utf8");
  writeFileSync(checkpoint, signed.replace(/.{8}\n$/, "AAAAAAA=\n"));
  const unsigned = await prove(4);
  assert.partialDeepStrictEqual(unsigned, { code: 2, isWritten: false });
  writeFileSync(checkpoint, signed);
  assert.partialDeepStrictEqual(await prove(4), whole, "it was the signature");
});

/** Starts a gate, lets it answer once and stops it; returns its folder. */
async function used(t: TestContext): Promise<string> {
  const gate = await startGate(t, { folder: temporaryFolder(t) });
  await check(gate);
  await gate.stop();
  return gate.folder;
}

suite("the signing key", () => {
  test(
    "a gate removes its new signing key if another gate started the ledger",
    { tags: ["first-use-16"] },
    async (t) => {
      const opening = async (file: string, isFirst: boolean): Promise<unknown> => {
        const ends = { commit: () => Promise.resolve(), abort: () => Promise.resolve() };
        const begin = (): Promise<object> => Promise.resolve({ signer: isFirst ? undefined : "theirs", ...ends });
        const store = { opened: { log: "example/ledger", signer: undefined }, begin } as unknown as LedgerStore;
        return openSigner(store, { file, acceptNew: false });
      };
      const folder = temporaryFolder(t);
      const [first, late] = [join(folder, "first.key"), join(folder, "late.key")];
      says("another gate started the ledger", await refusal(opening(late, false)));
      await opening(first, true);
      assert.deepEqual([existsSync(late), existsSync(first)], [false, true]);
    },
  );

  test("a rotation is a row under two signatures, and an operator retires the old key", async (t) => {
    const folder = await used(t);
    const before = await verifierOf(folder);
    const keyFile = join(folder, "data", "signing.key");
    assert.match((await command(["keygen", "--data-dir", join(folder, "data"), "--rotate"])).stdout, /has a new key/);
    const again = await command(["keygen", "--data-dir", join(folder, "data"), "--rotate"]);
    says("rotate twice", again.stderr.trimEnd());
    const early = await command(["keygen", "--data-dir", join(folder, "data"), "--retire"]);
    says("retire before a start", early.stderr.trimEnd());
    const gate = await startGate(t, { folder });
    const now = await verifierOf(folder);
    assert.deepEqual(now[1], before[0]);
    const head = await opened(gate, now);
    assert.deepEqual([head.size, head.signed], [2, 2]);
    assert.equal((await opened(gate, before)).signed, 1, "who knows the key before goes on");
    const { json: row } = await ask(gate, "/receipts/2");
    assert.deepEqual([row.act, row.tool_input], ["signer.rotate", { from: before[0]?.text, to: now[0]?.text }]);
    await gate.stop();
    assert.match(
      (await command(["keygen", "--data-dir", join(folder, "data"), "--retire"])).stdout,
      /has one key again/,
    );
    const later = await startGate(t, { folder });
    assert.equal((await opened(later, [now[0] as VerifierKey])).size, 2, "the rotation is recorded once");
    assert.ok(!openCheckpoint((await ask(later, "/checkpoint")).text, before).ok);
    assert.equal((await readSigningKeys(keyFile))?.before, undefined);
  });

  test("keygen --rotate refuses a key that is not the ledger's own key", async (t) => {
    const folder = await used(t);
    const data = join(folder, "data");
    const file = join(data, "signing.key");
    const own = readFileSync(file);
    await writeSigningKeys(file, { current: makeSigningKey(), before: undefined });
    const other = readFileSync(file);
    const refused = await command(["keygen", "--data-dir", data, "--rotate"]);
    assert.equal(refused.code, 2);
    says("rotate another key", refused.stderr.trimEnd());
    assert.deepEqual(readFileSync(file), other, "the file is as it was");
    writeFileSync(file, own);
    const rotated = await command(["keygen", "--data-dir", data, "--rotate"]);
    assert.match(rotated.stdout, /has a new key/, "positive control");
  });

  test("a gate does not start if its signing key is exposed, missing, wrong or damaged", async (t) => {
    const folder = await used(t);
    const file = join(folder, "data", "signing.key");
    const kept = join(folder, "kept.key");
    copyFileSync(file, kept);
    const cases: readonly (readonly [string, () => void | Promise<void>])[] = [
      ["readable by the group", () => chmodSync(file, 0o640)],
      ["gone", () => rmSync(file)],
      ["damaged", () => writeFileSync(file, "no key", { mode: 0o600 })],
      ["another", () => writeSigningKeys(file, { current: makeSigningKey(), before: undefined })],
    ];
    for (const [name, spoil] of cases) {
      await spoil();
      says(`a signing key that is ${name}`, await refusal(startGate(t, { folder })));
      rmSync(file, { force: true });
      copyFileSync(kept, file);
      chmodSync(file, 0o600);
    }
    const gate = await startGate(t, { folder });
    assert.equal((await headOf(gate)).size, 1, "and put back, it goes on");
  });

  test("--accept signing-key replaces a lost signing key and records the change in a row", async (t) => {
    const folder = await used(t);
    rmSync(join(folder, "data", "signing.key"));
    const gate = await startGate(t, { folder, flags: { accept: "signing-key" } });
    assert.equal((await ask(gate, "/receipts/2")).json.act, "signer.replace");
    assert.equal((await headOf(gate)).size, 2);
    await gate.stop();
    const later = await startGate(t, { folder });
    assert.equal((await headOf(later)).size, 2);
  });
});

test(
  "a signed head reveals a ledger and a pin that were both put back",
  { tags: ["verify.walks-chain"] },
  async (t) => {
    const folder = await used(t);
    const data = join(folder, "data");
    const kept = ["ledger.db", "head.pin"];
    for (const name of kept) copyFileSync(join(data, name), join(folder, name));
    const gate = await startGate(t, { folder });
    for (let at = 0; at < 3; at += 1) await check(gate);
    await gate.stop();
    for (const name of kept) copyFileSync(join(folder, name), join(data, name));
    says("the ledger ends before its checkpoint", await refusal(startGate(t, { folder })));
    assert.match(readFileSync(join(data, "checkpoint"), "utf8"), /\n4\n/, "what tells is kept");
    renameSync(join(data, "checkpoint"), join(folder, "checkpoint"));
    const again = await startGate(t, { folder });
    assert.equal((await headOf(again)).size, 1, "positive control: nothing else in the folder tells");
    for (let at = 0; at < 3; at += 1) await check(again);
    await again.stop();
    copyFileSync(join(folder, "checkpoint"), join(data, "checkpoint"));
    says("as many rows and another history", await refusal(startGate(t, { folder })));
    const walked = await command(["verify", data]);
    assert.equal(walked.code, 1);
    says("verify finds another history", firstLine(walked.stderr));
  },
);
