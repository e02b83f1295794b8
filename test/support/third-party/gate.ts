/**
 * Goal: other projects' tools can check a running gate as a log, with only an address, a key to read and the log's
 * public key. Method: a gate with rows of every kind of verdict, checked by fsck and by proofs of its rows, under load
 * and at rest. Then the same answers are checked with one byte flipped on their way.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { control } from "../controls/control.ts";
import { fillLedger } from "../../../bench/fill.ts";
import { leafHash, parseLeaf } from "../../../packages/core/src/record/entry/leaf.ts";
import { publicBytes, verifierKey } from "../../../packages/core/src/record/tree/note.ts";
import { makeSigningKey, writeSigningKeys } from "../../../packages/gate/src/ledger/signing/signing-key.ts";
import { command } from "../command.ts";
import { openDatabase } from "../databases.ts";
import { ask, check, desk, key, spawnGate, startGate, temporaryFolder, writeContracts, type Running } from "../gate.ts";
import { askMany } from "./asking.ts";
import { needPrograms, runProgram } from "./programs.ts";
import { fsck } from "./run-fsck.ts";

const vkeyOf = (gate: Running): string => gate.ledger.verifiers[0]?.text ?? "";

suite("a running gate", () => {
  test("fsck accepts the log after each batch, and under load", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined) return;
    const gate = await startGate(t);
    const target = { at: gate.address, vkey: vkeyOf(gate), token: key };
    let rows = 0;
    for (const more of [0, 1, 254, 1, 1, 300]) {
      await askMany(gate, more);
      rows += more;
      const judged = await fsck(t, found.fsck, target);
      assert.deepEqual([judged.whole, judged.size], [true, rows], judged.said);
    }
    const asking = askMany(gate, 1500);
    const during = await fsck(t, found.fsck, target);
    assert.ok(during.whole, during.said);
    await asking;
  });

  control("positive control: fsck fails without the key, or with one flipped byte in any answer", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined) return;
    const gate = await startGate(t);
    await askMany(gate, 300);
    const vkey = vkeyOf(gate);
    const without = await fsck(t, found.fsck, { at: gate.address, vkey });
    assert.match(without.said, /401/);
    assert.ok(!without.whole);
    const paths = ["checkpoint", "tile/0/000", "tile/0/001.p/44", "tile/1/000.p/1", "tile/entries/000"];
    for (const path of ["nothing", ...paths]) {
      const between = await flipping(t, gate, `/${path}`);
      const judged = await fsck(t, found.fsck, { at: between, vkey, token: key });
      assert.equal(judged.whole, path === "nothing", `${path}: ${judged.said}`);
    }
  });

  test("Go's libraries open the gate's head and find its rows in its tree; its leaves are RFC 8785", async (t) => {
    const found = needPrograms(t, "outsider");
    if (found === undefined) return;
    const gate = await startGate(t);
    await askMany(gate, 600);
    const indices = [0, 1, 2, 3, 255, 256, 511, 512, 599];
    const looked = await runProgram(found.outsider, ["log", gate.address, vkeyOf(gate), ...indices.map(String)], {
      env: { OUTSIDER_TOKEN: key },
    });
    assert.equal(looked.code, 0, looked.stderr);
    const { text } = await ask(gate, "/checkpoint");
    const [origin, size, root] = text.split("\n");
    assert.deepEqual(JSON.parse(looked.stdout), {
      origin,
      size: Number(size),
      root,
      included: indices,
      canonical: indices.length,
    });
    assert.equal(origin, gate.ledger.name);
  });

  test("fsck and Go's libraries accept 66,000 rows, with a third level of tiles", async (t) => {
    const found = needPrograms(t, "fsck", "outsider");
    if (found === undefined) return;
    const folder = temporaryFolder(t);
    await fillLedger(join(folder, "data"), 65_990);
    const gate = await startGate(t, { folder });
    await askMany(gate, 10);
    const judged = await fsck(t, found.fsck, { at: gate.address, vkey: vkeyOf(gate), token: key });
    assert.deepEqual([judged.whole, judged.size], [true, 66_000], judged.said);
    const indices = [0, 255, 256, 65_535, 65_536, 65_989, 65_990, 65_999];
    const looked = await runProgram(found.outsider, ["log", gate.address, vkeyOf(gate), ...indices.map(String)], {
      env: { OUTSIDER_TOKEN: key },
    });
    assert.equal(looked.code, 0, looked.stderr);
    assert.deepEqual(JSON.parse(looked.stdout).included, indices);
    for (const path of ["tile/1/000", "tile/1/001.p/1", "tile/2/000.p/1"])
      assert.equal((await ask(gate, `/${path}`)).status, 200, path);
  });

  test("Go's libraries verify the proof files that `svc-gate prove` writes", async (t) => {
    const found = needPrograms(t, "outsider");
    if (found === undefined) return;
    const gate = await startGate(t);
    await askMany(gate, 300);
    const [name, vkey] = [gate.ledger.name, vkeyOf(gate)];
    await gate.stop();
    for (const seq of [1, 256, 257, 300]) {
      const file = join(gate.folder, `${seq}.tlog-proof`);
      const written = await command(["prove", String(seq), join(gate.folder, "data"), "--out", file]);
      assert.equal(written.code, 0, written.stderr);
      const looked = await runProgram(found.outsider, ["proof", file, vkey]);
      assert.equal(looked.code, 0, looked.stderr);
      const { leaf, ...proven } = JSON.parse(looked.stdout);
      assert.deepEqual(proven, { origin: name, size: 300, index: seq - 1, hash: leafHash(leaf) });
      assert.equal(parseLeaf(leaf)?.seq, seq);
      writeFileSync(file, readFileSync(file, "utf8").replace(`index ${seq - 1}\n`, `index ${seq % 300}\n`));
      const moved = await runProgram(found.outsider, ["proof", file, vkey]);
      assert.equal(moved.code, 1, "positive control: the same leaf in another row");
    }
  });
});

suite("a ledger after an erasure and a key rotation", () => {
  test("after an erasure and a rotation, either key opens the whole log, and an earlier proof is valid", async (t) => {
    const found = needPrograms(t, "fsck", "outsider");
    if (found === undefined) return;
    const first = await startGate(t);
    await askMany(first, 20);
    const { folder } = first;
    const data = join(folder, "data");
    await first.stop();
    const proof = join(folder, "2.tlog-proof");
    for (const args of [
      ["prove", "2", data, "--out", proof],
      ["erase", "1-3", "--part", "input", "--reason", "asked for", "--data-dir", data],
      ["keygen", "--rotate", "--data-dir", data],
    ]) {
      const { code, stderr } = await command(args);
      assert.equal(code, 0, `${args[0]}: ${stderr}`);
    }
    const second = await startGate(t, { folder });
    await askMany(second, 5);
    const [newer = "", older = ""] = second.ledger.verifiers.map(({ text }) => text);
    assert.equal(older, vkeyOf(first));
    assert.notEqual(newer, older);
    for (const vkey of [older, newer]) {
      const judged = await fsck(t, found.fsck, { at: second.address, vkey, token: key });
      assert.deepEqual([judged.whole, judged.size], [true, 27], judged.said);
      const looked = await runProgram(found.outsider, ["log", second.address, vkey, "0", "1", "2", "20", "21", "26"], {
        env: { OUTSIDER_TOKEN: key },
      });
      assert.equal(JSON.parse(looked.stdout).canonical, 6, looked.stderr);
    }
    assert.equal((await runProgram(found.outsider, ["proof", proof, older])).code, 0);
    assert.equal((await runProgram(found.outsider, ["proof", proof, newer])).code, 1, "positive control");
  });
});

suite("a tenant's ledger", () => {
  test("a tenant's ledger is a separate log, under its own path and key", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined) return;
    const folder = temporaryFolder(t);
    const tenants = join(folder, "tenants.yaml");
    writeFileSync(tenants, "tenants:\n  acme: { mandate: mandate.yaml, mode: enforce }\n");
    const gate = await startGate(t, { folder, flags: { tenants } });
    const operator = JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")) as {
      readonly key: string;
    };
    const made = await ask(gate, "/t/acme/admin/keys", {
      method: "POST",
      headers: { authorization: `Bearer ${operator.key}`, "content-type": "application/json" },
      body: '{"name":"auditor","scopes":["check","receipts"]}',
    });
    const address = `${gate.address}/t/acme`;
    const authorization = `Bearer ${made.json.key}`;
    for (const tool_name of ["note.add", "safe.open"])
      await check({ address }, { tool_name, tool_input: {} }, { authorization });
    const shown = await command(["keygen", "--data-dir", join(folder, "data", "tenants", "acme")]);
    const vkey = /verifier key {2}(\S+)/.exec(shown.stdout)?.[1] ?? "";
    const judged = await fsck(t, found.fsck, { at: address, vkey, token: made.json.key });
    assert.deepEqual([judged.whole, judged.size], [true, 2], judged.said);
    const another = await fsck(t, found.fsck, { at: gate.address, vkey, token: key });
    assert.ok(!another.whole, "positive control: the root's is another log");
  });
});

const database = await openDatabase({ after });
const noDatabase = typeof database === "string" ? database : undefined;

suite("two gates on PostgreSQL", { skip: noDatabase }, () => {
  test("fsck accepts the one log of both gates, from either gate", async (t) => {
    const found = needPrograms(t, "fsck");
    if (found === undefined || typeof database === "string") return;
    const cwd = temporaryFolder(t);
    writeContracts(cwd, { contracts: { "desk.yaml": desk } });
    const keyFile = join(cwd, "signing.key");
    const current = makeSigningKey();
    await writeSigningKeys(keyFile, { current, before: undefined });
    const name = "svc-gate/third-party";
    const env = { SVC_DATABASE_URL: database.url(), SVC_API_KEY: key, SVC_SIGNING_KEY: keyFile, SVC_LEDGER_NAME: name };
    const gates = [
      await spawnGate(t, ["--data-dir", "one"], { cwd, env }),
      await spawnGate(t, ["--data-dir", "two"], { cwd, env }),
    ];
    await Promise.all(gates.map((gate) => askMany(gate, 300)));
    const vkey = verifierKey(name, publicBytes(current)).text;
    for (const gate of gates) {
      const judged = await fsck(t, found.fsck, { at: gate.address, vkey, token: key });
      assert.deepEqual([judged.whole, judged.size], [true, 600], judged.said);
    }
    await database.run("UPDATE svc_gate.receipts SET leaf = replace(leaf, '\"v\":1', '\"v\":2') WHERE seq = 2");
    const [gate] = gates;
    const changed = await fsck(t, found.fsck, { at: gate?.address ?? "", vkey, token: key });
    assert.ok(!changed.whole, "positive control: a leaf changed in the database");
  });
});

/** Starts a proxy that flips a bit in the middle of one path's answers. @returns its address */
async function flipping(t: TestContext, gate: Running, path: string): Promise<string> {
  const server = createServer((request, response) => {
    const headers = { authorization: request.headers.authorization ?? "" };
    void fetch(gate.address + request.url, { headers }).then(async (answer) => {
      const bytes = Buffer.from(await answer.arrayBuffer());
      const at = Math.floor(bytes.length / 2);
      if (request.url === path) bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      response.writeHead(answer.status).end(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
