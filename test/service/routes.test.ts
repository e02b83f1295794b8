/**
 * Goal: every route answers over HTTP as the API promises. Method: a gate in this process, one table row or one test
 * for each sentence of the routes table; receipts are compared with the requests.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { test } from "node:test";
import { ask, check, desk, keepsNothing, startGate } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

const verdicts = [
  { tool_name: "note.add", verdict: "ALLOW", rule: "desk.$otherwise" },
  { tool_name: "door.open", verdict: "BLOCK", rule: "desk.shut" },
  { tool_name: "mail.send", verdict: "ESCALATE", rule: "desk.$otherwise" },
  { tool_name: "nobody.knows", verdict: "BLOCK", rule: "$route" },
] as const;

test(
  "POST /check answers 200 with verdict, reason, mode and receipt, also for a BLOCK",
  {
    tags: [
      "verdict.unreached-client-only",
      "check.plain-http",
      "check.route",
      "service.one-question",
      "verdict.values",
      "verdict.reason",
      "verdict.mode",
    ],
  },
  async (t) => {
    const gate = await startGate(t);
    for (const { tool_name, verdict, rule } of verdicts) {
      const body = JSON.stringify({ tool_name, tool_input: { a: 1 }, session_id: "s" });
      const { status, json, headers } = await check(gate, body);
      assert.equal(status, 200);
      assert.match(headers.get("content-type") ?? "", /^application\/json/);
      const parked = verdict === "ESCALATE" ? ["approval"] : [];
      assert.deepEqual(Object.keys(json), ["verdict", "reason", "mode", "receipt", ...parked]);
      assert.equal(json.verdict, verdict);
      assert.match(json.reason, /^Svc: \S/);
      assert.doesNotMatch(json.reason, /\n/);
      assert.equal(json.mode, "enforce");
      assert.equal(json.receipt.request, sha256(body));
      const row = (await ask(gate, `/receipts/${json.receipt.seq}`)).json;
      assert.equal(row.hash, json.receipt.hash);
      assert.deepEqual([row.verdict, row.answered, row.rule, row.tool_name], [verdict, verdict, rule, tool_name]);
    }
  },
);

test(
  "a call of an unknown tool is blocked, and the reason shows its name with escapes",
  { tags: ["check.unrouted-tool", "service.silence-refuses", "error.gate-blocks"] },
  async (t) => {
    const gate = await startGate(t);
    const named = await check(gate, { tool_name: "note.ad", tool_input: {} });
    says("unknown-tool", named.json.reason);
    const alike = [
      "Note.Add",
      "note.add\u200b",
      "n\u043ete.add",
      "note.add ",
      "note\u2024add",
      "NOTE.ADD",
      "note.add\u202e",
    ];
    for (const tool_name of alike) {
      const { status, json } = await check(gate, { tool_name, tool_input: {} });
      assert.deepEqual([status, json.verdict], [200, "BLOCK"], JSON.stringify(tool_name));
      assert.match(json.reason, /^Svc: [\x20-\x7e]+$/);
      says(`unknown-tool ${encodeURIComponent(tool_name)}`, json.reason);
    }
    assert.equal((await ask(gate, "/receipts?limit=1")).json.receipts[0].leaf.includes('"tool":null'), true);
  },
);

test(
  "platform_state carries the snapshot, null means no snapshot, and session_id is optional",
  { tags: ["check.snapshot-member", "check.snapshot-optional", "platform.present-false", "check.session-id"] },
  async (t) => {
    const gate = await startGate(t);
    const rows = [
      { body: { platform_state: { a: 1 } }, verdict: "ALLOW" },
      { body: { platform_state: {} }, verdict: "ALLOW" },
      { body: { platform_state: null }, verdict: "BLOCK" },
      { body: {}, verdict: "BLOCK" },
      { body: { session_id: "run-1", platform_state: { a: 1 } }, verdict: "ALLOW" },
    ];
    for (const { body, verdict } of rows) {
      const { status, json } = await check(gate, { tool_name: "stated", tool_input: {}, ...body });
      assert.deepEqual([status, json.verdict], [200, verdict]);
      const row = (await ask(gate, `/receipts/${json.receipt.seq}`)).json;
      assert.deepEqual(row.platform_state, body.platform_state ?? null);
      assert.equal(row.session_id, body.session_id ?? null);
    }
  },
);

test(
  "GET /health needs no key and answers 200, or 503 while the ledger cannot be written",
  { tags: ["health.route", "health.open"] },
  async (t) => {
    const gate = await startGate(t, { flags: { mode: "observe" } });
    const open = await ask(gate, "/health", { headers: { authorization: "" } });
    assert.equal(open.status, 200);
    assert.equal(open.text, '{"status":"ok","mode":"observe"}');
    t.mock.method(gate.ledger, "hasRoom", async () => false);
    const full = await ask(gate, "/health", { headers: { authorization: "" } });
    assert.equal(full.status, 503);
    assert.equal(full.text, '{"status":"unavailable","mode":"observe"}');
    keepsNothing(gate, t);
    const refused = await check(gate, { tool_name: "note.add", tool_input: {} });
    assert.deepEqual([refused.status, refused.json.code], [503, "ledger-unavailable"]);
    t.mock.restoreAll();
    assert.equal((await ask(gate, "/health")).status, 200);
    assert.equal((await check(gate, { tool_name: "note.add", tool_input: {} })).json.receipt.seq, 1);
  },
);

test(
  "GET /rules returns the mandate and each contract byte for byte, under the digest on receipts",
  { tags: ["rules.route", "rules.content-type", "rules.compiled-text", "contract.verbatim"] },
  async (t) => {
    const gate = await startGate(t);
    const files = ["mandate.yaml", "contracts/payments.yaml", "contracts/desk.yaml"];
    const expected = files.map((file) => `--- # ${file}\n${readFileSync(join(gate.folder, file), "utf8")}`).join("");
    const { status, text, headers } = await ask(gate, "/rules");
    assert.equal(status, 200);
    assert.equal(text, expected);
    assert.equal(headers.get("content-type"), "text/plain; charset=utf-8");
    const etag = `"${sha256(expected)}"`;
    assert.equal(headers.get("etag"), etag);
    const { json } = await check(gate, { tool_name: "note.add", tool_input: {} });
    const row = (await ask(gate, `/receipts/${json.receipt.seq}`)).json;
    assert.equal(row.contract, `sha256:${sha256(expected)}`);
    for (const known of [etag, `"other", ${etag}`, `W/${etag}`, "*"]) {
      const same = await ask(gate, "/rules", { headers: { "if-none-match": known } });
      assert.deepEqual([same.status, same.text], [304, ""], known);
    }
    assert.equal((await ask(gate, "/rules", { headers: { "if-none-match": '"other"' } })).status, 200);
  },
);

test("nothing that is sent to /rules changes the gate", { tags: ["rules.takes-no-instruction"] }, async (t) => {
  const gate = await startGate(t);
  const before = (await ask(gate, "/rules")).text;
  for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
    const { status, headers } = await ask(gate, "/rules", {
      method,
      body: desk,
      headers: { "content-type": "text/plain" },
    });
    assert.deepEqual([status, headers.get("allow")], [405, "GET"], method);
  }
  await ask(gate, "/rules?contract=none");
  assert.equal((await ask(gate, "/rules")).text, before);
});

test(
  "GET /receipts returns pages from the newest receipt to the oldest",
  { tags: ["receipts.route", "receipts.limit", "limit.receipts-default", "service.every-check-receipt"] },
  async (t) => {
    const gate = await startGate(t);
    const bodies = Array.from({ length: 123 }, (_, n) => ({
      tool_name: "note.add",
      tool_input: { n },
      session_id: `s${n % 2}`,
    }));
    for (const body of bodies) await check(gate, body);
    const page = (await ask(gate, "/receipts")).json;
    assert.equal(page.receipts.length, 50);
    assert.deepEqual([page.receipts[0].seq, page.receipts.at(-1).seq, page.next], [123, 74, 74]);
    for (const limit of [1, 7, 50, 123, 1000]) {
      const seen: number[] = [];
      let query = `?limit=${limit}`;
      for (;;) {
        const { receipts, next } = (await ask(gate, `/receipts${query}`)).json;
        seen.push(...receipts.map((row: { seq: number }) => row.seq));
        if (next === null) break;
        query = `?limit=${limit}&before=${next}`;
      }
      assert.deepEqual(
        seen,
        Array.from({ length: 123 }, (_, n) => 123 - n),
        `limit ${limit}`,
      );
    }
    const odd = (await ask(gate, "/receipts?session_id=s1&limit=1000")).json;
    assert.equal(odd.receipts.length, 61);
    assert.ok(odd.receipts.every((row: { session_id: string }) => row.session_id === "s1"));
  },
);

test("GET /receipts filters by session, tool and verdict together, with any characters", async (t) => {
  const gate = await startGate(t);
  const session = "a?b&c=d+e \u00e9%41";
  await check(gate, { tool_name: "note.add", tool_input: {}, session_id: session });
  await check(gate, { tool_name: "door.open", tool_input: {}, session_id: session });
  await check(gate, { tool_name: "door.open", tool_input: {} });
  const seqs = async (query: Record<string, string>): Promise<number[]> => {
    const { json } = await ask(gate, `/receipts?${new URLSearchParams(query).toString()}`);
    return json.receipts.map((row: { seq: number }) => row.seq);
  };
  assert.deepEqual(await seqs({ session_id: session }), [2, 1]);
  assert.deepEqual(await seqs({ tool_name: "door.open" }), [3, 2]);
  assert.deepEqual(await seqs({ verdict: "BLOCK", session_id: session }), [2]);
  assert.deepEqual(await seqs({ verdict: "ESCALATE" }), []);
  const raw = (await ask(gate, "/receipts?session_id=a?b")).json;
  assert.deepEqual(raw, { receipts: [], next: null });
});

const strange = [
  '{"n":9007199254740993,"d":0.10,"e":1E+2,"z":-0.0}',
  '{"a":"\\u0041\\/","b":"\\ud83d\\ude00"}',
  '{"__proto__":{"x":1},"constructor":[]}',
];

test(
  `a receipt contains input and snapshot as they were sent, and its hashes can be recomputed`,
  {
    tags: [
      "receipt.fields",
      "receipts.row-shape",
      "platform.recorded",
      "receipt.holds-snapshot",
      "receipt.chain-hashes",
    ],
  },
  async (t) => {
    const gate = await startGate(t);
    for (const input of strange)
      await check(gate, `{"tool_name":"note.add","tool_input": ${input} ,"platform_state":${input}}`);
    const { text, json } = await ask(gate, "/receipts");
    for (const input of strange) {
      assert.ok(text.includes(`"tool_input":${input},"platform_state":${input}`), `${input} is not on its receipt`);
    }
    let prev = "0".repeat(64);
    for (const row of json.receipts.toReversed()) {
      assert.equal(row.hash, createHash("sha256").update("\0").update(row.leaf, "utf8").digest("hex"));
      assert.equal(row.prev_hash, prev);
      prev = row.hash;
      const leaf = JSON.parse(row.leaf);
      assert.deepEqual([leaf.seq, leaf.prev, leaf.at, leaf.verdict], [row.seq, row.prev_hash, row.at, row.verdict]);
      const digests = row.evidence.map((part: string) =>
        createHash("sha256").update(part, "ascii").digest("base64url"),
      );
      assert.equal(leaf.evidence, sha256(digests.toSorted().join("")));
      const names = row.evidence.map((part: string) => JSON.parse(Buffer.from(part, "base64url").toString("utf8"))[1]);
      assert.deepEqual(names, ["call", "input", "platform", "reason", "outcome", "effects"]);
    }
    const members =
      "seq hash prev_hash at session_id tool_name tool_input platform_state verdict answered mode reason rule";
    assert.equal(Object.keys(json.receipts[0]).join(" "), `${members} contract key leaf evidence`);
  },
);

test("GET /receipts/{seq} returns one row, and 404 for every other number", async (t) => {
  const gate = await startGate(t);
  await check(gate, { tool_name: "note.add", tool_input: {} });
  const one = await ask(gate, "/receipts/1");
  assert.equal(one.status, 200);
  assert.deepEqual(one.json, (await ask(gate, "/receipts")).json.receipts[0]);
  for (const seq of ["0", "2", "01", "-1", "1.0", "1e0", "x", "9007199254740991", "9999999999999999", "1".repeat(99)]) {
    const { status, json } = await ask(gate, `/receipts/${seq}`);
    assert.deepEqual([status, json.code], [404, "not-found"], seq);
  }
});

test(
  "GET /ledger/verify walks the chain and answers all requests that arrive together",
  { tags: ["verify.route", "verify.walks-chain", "receipt.one-row"] },
  async (t) => {
    const gate = await startGate(t);
    const empty = (await ask(gate, "/ledger/verify")).json;
    assert.deepEqual([empty.ok, empty.rows, empty.head.seq], [true, 0, 0]);
    for (let n = 0; n < 5; n += 1) await check(gate, { tool_name: "note.add", tool_input: {} });
    const last = (await check(gate, { tool_name: "note.add", tool_input: {} })).json.receipt;
    const walks = await Promise.all(Array.from({ length: 8 }, () => ask(gate, "/ledger/verify")));
    for (const { status, json } of walks) {
      assert.equal(status, 200);
      assert.deepEqual([json.ok, json.rows, json.head], [true, 6, { seq: 6, hash: last.hash }]);
    }
  },
);

test(
  "a ledger that is changed while the gate runs is reported at its first broken row",
  { tags: ["verify.broken-shape"] },
  async (t) => {
    const gate = await startGate(t);
    for (let n = 0; n < 5; n += 1) await check(gate, { tool_name: "door.open", tool_input: { n } });
    const database = new DatabaseSync(join(gate.folder, "data", "ledger.db"));
    database.exec(
      `UPDATE receipts SET leaf = replace(leaf, '"verdict":"BLOCK"', '"verdict":"ALLOW"') WHERE seq IN (3, 4)`,
    );
    database.close();
    const { status, json } = await ask(gate, "/ledger/verify");
    assert.equal(status, 200);
    assert.deepEqual([json.ok, json.rows, json.first_broken.seq], [false, 5, 3]);
    assert.deepEqual(Object.keys(json.first_broken), ["seq", "problem", "expected", "found"]);
    for (const value of Object.values(json.first_broken)) assert.ok(String(value).length > 0);
  },
);

test("every route is served under the base path and nowhere else", { tags: ["service.base-url"] }, async (t) => {
  const gate = await startGate(t, { flags: { "base-path": "/t/acme.eu/" } });
  const origin = new URL(gate.address).origin;
  assert.equal(gate.address, `${origin}/t/acme.eu`);
  assert.equal((await check(gate, { tool_name: "note.add", tool_input: {} })).status, 200);
  for (const path of ["/health", "/rules", "/receipts", "/receipts/1", "/ledger/verify"]) {
    assert.equal((await ask(gate, path)).status, 200, path);
    assert.equal((await ask({ address: origin }, path)).status, 404, path);
    assert.equal((await ask({ address: `${origin}/t/acmeXeu` }, path)).status, 404, path);
  }
  assert.equal((await ask({ address: origin }, "/health", { headers: { authorization: "" } })).status, 401);
  const wrong = await ask(gate, "/check");
  assert.deepEqual([wrong.status, wrong.headers.get("allow")], [405, "POST"]);
});

test(
  "a contract that the mandate does not name is not in force",
  { tags: ["contract.mandate-loads", "contract.examples-are-files"] },
  async (t) => {
    const gate = await startGate(t, { contracts: { "desk.yaml": desk } });
    writeFileSync(join(gate.folder, "contracts", "other.yaml"), desk.replace("contract: desk", "contract: other"));
    assert.deepEqual(gate.contracts, ["desk"]);
    assert.match(
      (await check(gate, { tool_name: "payment.send", tool_input: {} })).json.reason,
      /unknown tool "payment.send"/,
    );
  },
);
