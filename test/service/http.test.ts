/**
 * Goal: the gate refuses ambiguous HTTP or reads it in one way, and it never loses or doubles an answer. Method: bytes
 * on a socket, one row for each oddity, with the expected statuses and the receipts that remain.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { limits } from "../../packages/core/src/wire/mod.ts";
import { ask, check, exchange, pauseLedger, key, startGate, submit } from "../support/gate.ts";
import { bodies, call, json, keepAlive, length, oddities, open, post, types } from "../support/http-requests.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

test("the gate gives each odd HTTP request its expected answers and receipts", async (t) => {
  const gate = await startGate(t);
  for (const { title, bytes, statuses, rows } of oddities) {
    await t.test(`${title}: the gate answers ${statuses.join(", ") || "nothing"}`, async () => {
      const before = gate.ledger.head.seq;
      const text = await exchange(gate.port, bytes);
      const answers = text.split(/(?=HTTP\/1\.1 )/).filter((part) => part !== "");
      assert.deepEqual(
        answers.map((answer) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1])),
        statuses,
        text,
      );
      for (const head of answers.filter((part) => /^HTTP\/1\.1 [45]/.test(part))) {
        assert.match(head, /^content-type: application\/problem\+json/im, head);
      }
      assert.equal((await check(gate, call)).json.receipt.seq, before + rows + 1);
    });
  }
});

test("malformed bytes behind a pending check close the connection without an answer", async (t) => {
  const gate = await startGate(t);
  for (const malformed of ["NOT HTTP\r\n\r\n", post([json, "Transfer-Encoding: chunked"], "x\r\n{}\r\n")]) {
    const release = pauseLedger(gate, t);
    const first = submit(gate, 0);
    await release.started;
    const text = exchange(gate.port, keepAlive + malformed);
    const late = new Promise((told) => setTimeout(told, 60_000, "still open").unref());
    const cut = await Promise.race([text, late]);
    release.go();
    await first;
    assert.equal(cut, "");
    t.mock.restoreAll();
  }
  const answered = (text: string): boolean => text.includes("receipt");
  assert.match(await exchange(gate.port, keepAlive, answered), /^HTTP\/1\.1 200 /);
});

test("malformed bytes after an answered check get a 400 on the same connection", async (t) => {
  const gate = await startGate(t);
  const socket = connect(gate.port, "127.0.0.1", () => socket.write(keepAlive));
  let text = "";
  socket.on("data", (piece) => {
    if (text === "") setTimeout(() => socket.write("NOT HTTP\r\n\r\n"), 20);
    text += String(piece);
  });
  await once(socket, "close");
  assert.match(text, /^HTTP\/1\.1 200 [^]*HTTP\/1\.1 400 /);
});

test(
  "a check must be application/json in UTF-8 without a content coding",
  { tags: ["check.media-type-and-key", "service.json-bodies"] },
  async (t) => {
    const gate = await startGate(t);
    let rows = 0;
    for (const [type, status] of types) {
      const bytes = post(type === "" ? [length] : [`Content-Type: ${type}`, length]);
      const text = await exchange(gate.port, bytes);
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `), type);
      rows += status === 200 ? 1 : 0;
    }
    for (const encoding of ["gzip", "identity", "br", "deflate, gzip"]) {
      assert.equal((await check(gate, call, { "content-encoding": encoding })).status, 415, encoding);
    }
    assert.equal(gate.ledger.head.seq, rows);
  },
);

test("the gate reads a header that follows 2500 others", async (t) => {
  const gate = await startGate(t);
  const many = Array.from({ length: 2500 }, () => "a:");
  const text = await exchange(
    gate.port,
    `POST /check HTTP/1.1\r\n${[...many, ...open, "Content-Encoding: gzip", "Connection: close"].join("\r\n")}\r\n\r\n${call}`,
  );
  assert.match(text, /^HTTP\/1\.1 415 /);
});

/** Makes heads of this many bytes, not counting the spaces around values. */
const heads: readonly (readonly [string, (bytes: number) => string])[] = [
  ["a long value", (bytes) => padded(bytes, "", (room) => `X-Long:${"x".repeat(room - "X-Long:\r\n".length)}\r\n`)],
  ["a long query", (bytes) => padded(bytes, "?session_id=", () => "")],
  [
    "many short headers",
    (bytes) => padded(bytes, "", (room) => `${"a:\r\n".repeat(Math.floor(room / 4) - 1)}b:${"x".repeat(room % 4)}\r\n`),
  ],
];

function padded(bytes: number, query: string, fill: (room: number) => string): string {
  const headers = `Host:gate\r\nAuthorization:Bearer ${key}\r\nConnection:close\r\n`;
  const line = (room: number): string => `GET /receipts${query}${"x".repeat(room)} HTTP/1.1\r\n`;
  const room = bytes - line(0).length - headers.length - "\r\n".length;
  const head = `${query === "" ? line(0) + headers + fill(room) : line(room) + headers}\r\n`;
  assert.equal(head.length, bytes);
  return head.replace(/^(X-Long|Host):/gm, "$1:  \t ");
}

test("the gate reads a head of headerBytesMax bytes and refuses a longer one", { tags: ["attack-14"] }, async (t) => {
  const gate = await startGate(t);
  for (const [title, headOf] of heads) {
    const at = await exchange(gate.port, headOf(limits.headerBytesMax));
    assert.match(at, /^HTTP\/1\.1 200 /, `${title}, at the limit`);
    const past = await exchange(gate.port, headOf(limits.headerBytesMax + 1));
    assert.match(past, /^HTTP\/1\.1 431 [^]*"code":"headers-too-large"/, `${title}, one past it`);
  }
});

test("the gate refuses a body that is not a check", { tags: ["check.tool-name", "check.tool-input"] }, async (t) => {
  const gate = await startGate(t);
  for (const body of bodies) {
    const { status, json: problem } = await check(gate, body);
    assert.equal(status, 400, body);
    says(`body: ${body}`, problem.detail);
  }
  const bytes = new Uint8Array([
    ...Buffer.from('{"tool_name":"note.add","tool_input":{"a":"'),
    0xc3,
    0x28,
    ...Buffer.from('"}}'),
  ]);
  const broken = await ask(gate, "/check", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: bytes,
  });
  assert.match(broken.json.detail, /line 1, column 44: invalid UTF-8/);
  assert.equal(gate.ledger.head.seq, 0);
});

const queries: readonly string[] = [
  "limit=0",
  "limit=1001",
  "limit=-1",
  "limit=1.5",
  "limit=1e2",
  "limit=",
  "limit=+5",
  "limit=5&limit=6",
  "before=0",
  "before=9007199254740993",
  "verdict=allow",
  "limits=5",
  "sessionid=5",
  "a%E2%80%AEb=1",
  "session_id=%ff",
  "session_id=%",
];

test("the gate refuses a query that it does not understand", async (t) => {
  const gate = await startGate(t);
  for (const query of queries) {
    const { status, json: problem } = await ask(gate, `/receipts?${query}`);
    assert.deepEqual([status, problem.code], [400, "invalid-query"], query);
    says(`query: ${query}`, problem.detail);
  }
  assert.equal((await ask(gate, `/receipts?limit=${limits.receiptsLimitMax}&before=9007199254740991`)).status, 200);
});
