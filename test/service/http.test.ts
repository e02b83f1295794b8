/**
 * Goal: the gate refuses ambiguous HTTP or reads it in one way, and it never loses or doubles an answer. Method: bytes
 * on a socket, one row for each oddity, with the expected statuses and the receipts that remain.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { limits } from "../../packages/svc-gate/src/wire/mod.ts";
import { ask, check, exchange, hold, key, requestText, startGate, submit } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const call = '{"tool_name":"note.add","tool_input":{}}';
const json = "Content-Type: application/json";
const length = `Content-Length: ${call.length}`;
const chunked = `${call.length.toString(16)}\r\n${call}\r\n0\r\n\r\n`;
const open = ["Host: gate", `Authorization: Bearer ${key}`, json, length];
const keepAlive = `POST /check HTTP/1.1\r\n${open.join("\r\n")}\r\n\r\n${call}`;

interface Oddity {
  readonly title: string;
  readonly bytes: string;
  /** The statuses received on the connection, in order. */
  readonly statuses: readonly number[];
  readonly rows: number;
}

const post = (headers: readonly string[], body = call): string => requestText("POST /check HTTP/1.1", headers, body);

const oddities: readonly Oddity[] = [
  { title: "a plain check", bytes: post([json, length]), statuses: [200], rows: 1 },
  { title: "two unequal lengths", bytes: post([json, length, "Content-Length: 4"]), statuses: [400], rows: 0 },
  { title: "two equal lengths", bytes: post([json, length, length]), statuses: [400], rows: 0 },
  { title: "a signed length", bytes: post([json, `Content-Length: +${call.length}`]), statuses: [400], rows: 0 },
  {
    title: "a length and chunks at once",
    bytes: post([json, length, "Transfer-Encoding: chunked"], chunked),
    statuses: [400],
    rows: 0,
  },
  { title: "chunks", bytes: post([json, "Transfer-Encoding: chunked"], chunked), statuses: [200], rows: 1 },
  {
    title: "[attack 14] chunks in upper case",
    bytes: post([json, "Transfer-Encoding: CHUNKED"], chunked),
    statuses: [200],
    rows: 1,
  },
  {
    title: "[attack 14] chunks in HTTP/1.0, and a check behind them",
    bytes: keepAlive
      .replace("HTTP/1.1", "HTTP/1.0")
      .replace(length, "Transfer-Encoding: chunked\r\nConnection: keep-alive")
      .replace(call, chunked + keepAlive),
    statuses: [400],
    rows: 0,
  },
  {
    title: "[attack 14] chunks in HTTP/1.0 without a key, and a check behind them",
    bytes: keepAlive
      .replace("HTTP/1.1", "HTTP/1.0")
      .replace(key, "wrong")
      .replace(length, "Transfer-Encoding: Chunked\r\nConnection: keep-alive")
      .replace(call, chunked + keepAlive),
    statuses: [401],
    rows: 0,
  },
  {
    title: "[attack 14] positive control: a Content-Length in HTTP/1.0, and a check behind it",
    bytes:
      keepAlive.replace("HTTP/1.1", "HTTP/1.0").replace(length, `${length}\r\nConnection: keep-alive`) +
      post([json, length]),
    statuses: [200, 200],
    rows: 2,
  },
  {
    title: "chunks with another coding",
    bytes: post([json, "Transfer-Encoding: gzip, chunked"], chunked),
    statuses: [415],
    rows: 0,
  },
  {
    title: "a coding that is not chunked",
    bytes: post([json, "Transfer-Encoding: identity"], call),
    statuses: [415],
    rows: 0,
  },
  {
    title: "a chunk without its size",
    bytes: post([json, "Transfer-Encoding: chunked"], "x\r\n{}\r\n"),
    statuses: [400],
    rows: 0,
  },
  { title: "a header without a name", bytes: post([json, length, ": x"]), statuses: [400], rows: 0 },
  { title: "a space before the colon", bytes: post([json, "Content-Length : 3"]), statuses: [400], rows: 0 },
  { title: "a folded header", bytes: post([json, length, "X-A: b\r\n c"]), statuses: [400], rows: 0 },
  { title: "line feeds alone", bytes: post([json, length]).replaceAll("\r\n", "\n"), statuses: [400], rows: 0 },
  { title: "a bare carriage return in a header", bytes: post([json, length, "X-A: b\rc"]), statuses: [400], rows: 0 },
  { title: "HTTP/1.0", bytes: post([json, length]).replace("HTTP/1.1", "HTTP/1.0"), statuses: [200], rows: 1 },
  { title: "an HTTP/2.0 line", bytes: post([json, length]).replace("HTTP/1.1", "HTTP/2.0"), statuses: [400], rows: 0 },
  { title: "two Host headers", bytes: post([json, length, "host: other"]), statuses: [400], rows: 0 },
  { title: "two bearer keys", bytes: post([json, length, "AUTHORIZATION: Bearer other"]), statuses: [400], rows: 0 },
  { title: "two media types", bytes: post([json, length, "content-Type: text/plain"]), statuses: [400], rows: 0 },
  {
    title: "two Content-Encoding headers",
    bytes: post([json, length, "Content-Encoding: gzip", "Content-Encoding: identity"]),
    statuses: [400],
    rows: 0,
  },
  { title: "two headers that may repeat", bytes: post([json, length, "X-A: b", "X-A: b"]), statuses: [200], rows: 1 },
  {
    title: "two Host headers on the open route",
    bytes: "GET /health HTTP/1.1\r\nHost: gate\r\nHost: other\r\nConnection: close\r\n\r\n",
    statuses: [400],
    rows: 0,
  },
  { title: "no Host header", bytes: post([json, length]).replace("Host: gate\r\n", ""), statuses: [400], rows: 0 },
  { title: "a preface of HTTP/2", bytes: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", statuses: [400], rows: 0 },
  { title: "a TLS greeting", bytes: "\u0016\u0003\u0001\u0002\u0000\u0001\r\n\r\n", statuses: [400], rows: 0 },
  {
    title: "an absolute target",
    bytes: requestText("POST http://gate/check HTTP/1.1", [json, length], call),
    statuses: [200],
    rows: 1,
  },
  {
    title: "an absolute target of the open route",
    bytes: "GET http://gate/health HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n",
    statuses: [200],
    rows: 0,
  },
  {
    title: "a target with a fragment",
    bytes: requestText("POST /check#x HTTP/1.1", [json, length], call),
    statuses: [400],
    rows: 0,
  },
  {
    title: "[attack 14] a percent-encoded path",
    bytes: requestText("POST /%63heck HTTP/1.1", [json, length], call),
    statuses: [404],
    rows: 0,
  },
  {
    title: "[attack 14] a percent-encoded path of the administration",
    bytes: requestText("GET /%61dmin/keys HTTP/1.1"),
    statuses: [404],
    rows: 0,
  },
  {
    title: "[attack 14] an escape in an absolute target",
    bytes: requestText("POST http://gate/%63heck HTTP/1.1", [json, length], call),
    statuses: [404],
    rows: 0,
  },
  {
    title: "[attack 14] an encoded number",
    bytes: requestText("GET /receipts/%31 HTTP/1.1"),
    statuses: [404],
    rows: 0,
  },
  {
    title: "[attack 14] an encoded question mark",
    bytes: requestText("POST /check%3f HTTP/1.1", [json, length], call),
    statuses: [404],
    rows: 0,
  },
  {
    title: "[attack 14] an encoded open path without a key",
    bytes: "GET /%68ealth HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n",
    statuses: [401],
    rows: 0,
  },
  {
    title: "[attack 14] positive control: escapes in a query",
    bytes: requestText("GET /receipts?session_id=%61%2F%3F HTTP/1.1"),
    statuses: [200],
    rows: 0,
  },
  { title: "a percent-encoded slash", bytes: requestText("GET /ledger%2fverify HTTP/1.1"), statuses: [404], rows: 0 },
  { title: "a path that is not UTF-8", bytes: requestText("GET /receipts/%ff HTTP/1.1"), statuses: [404], rows: 0 },
  {
    title: "a trailing slash",
    bytes: requestText("POST /check/ HTTP/1.1", [json, length], call),
    statuses: [404],
    rows: 0,
  },
  { title: "two slashes", bytes: requestText("POST //check HTTP/1.1", [json, length], call), statuses: [404], rows: 0 },
  {
    title: "a dot segment",
    bytes: requestText("POST /x/../check HTTP/1.1", [json, length], call),
    statuses: [404],
    rows: 0,
  },
  { title: "a wrong case", bytes: requestText("POST /Check HTTP/1.1", [json, length], call), statuses: [404], rows: 0 },
  {
    title: "a query on a check",
    bytes: requestText("POST /check?mode=observe HTTP/1.1", [json, length], call),
    statuses: [200],
    rows: 1,
  },
  { title: "HEAD", bytes: requestText("HEAD /rules HTTP/1.1"), statuses: [405], rows: 0 },
  { title: "OPTIONS", bytes: requestText("OPTIONS /check HTTP/1.1"), statuses: [405], rows: 0 },
  { title: "OPTIONS *", bytes: requestText("OPTIONS * HTTP/1.1"), statuses: [404], rows: 0 },
  { title: "TRACE", bytes: requestText("TRACE /check HTTP/1.1"), statuses: [405], rows: 0 },
  { title: "QUERY", bytes: requestText("QUERY /check HTTP/1.1", [json, length], call), statuses: [405], rows: 0 },
  {
    title: "a method that does not exist",
    bytes: requestText("CHECK /check HTTP/1.1", [json, length], call),
    statuses: [400],
    rows: 0,
  },
  {
    title: "a method in lower case",
    bytes: requestText("post /check HTTP/1.1", [json, length], call),
    statuses: [400],
    rows: 0,
  },
  { title: "CONNECT", bytes: requestText("CONNECT gate:443 HTTP/1.1"), statuses: [], rows: 0 },
  {
    title: "an upgrade that is not offered",
    bytes: post([json, length, "Upgrade: websocket"]),
    statuses: [200],
    rows: 1,
  },
  { title: "an Expect header", bytes: post([json, length, "Expect: 100-continue"]), statuses: [100, 200], rows: 1 },
  {
    title: "an Expect header with an unknown value",
    bytes: post([json, length, "Expect: a-miracle"]),
    statuses: [200],
    rows: 1,
  },
  { title: "no body", bytes: post([json], ""), statuses: [400], rows: 0 },
  {
    title: "a body cut short",
    bytes: post([json, "Content-Length: 20"], '{"tool_name":"x",   '),
    statuses: [400],
    rows: 0,
  },
  {
    title: "a body of another type on another route",
    bytes: requestText("POST /rules HTTP/1.1", ["Content-Length: 2"], "{}"),
    statuses: [405],
    rows: 0,
  },
  {
    title: "a body on a GET",
    bytes: requestText("GET /receipts HTTP/1.1", ["Content-Length: 2"], "{}"),
    statuses: [200],
    rows: 0,
  },
  {
    title: "two checks, one after the other without waiting",
    bytes: keepAlive + post([json, length]),
    statuses: [200, 200],
    rows: 2,
  },
  {
    title: "a refusal, then a check",
    bytes: keepAlive.replace("note", 'no"e') + post([json, length]),
    statuses: [400, 200],
    rows: 1,
  },
  {
    title: "a check, then a wrong key",
    bytes: keepAlive + post([json, length]).replace(key, "wrong"),
    statuses: [200, 401],
    rows: 1,
  },
];

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
    const release = hold(gate, t);
    const first = submit(gate, 0);
    await release.begun;
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

const types: readonly (readonly [string, number])[] = [
  ["application/json", 200],
  ["Application/JSON", 200],
  ["application/json; charset=utf-8", 200],
  ['application/json;charset="UTF-8"', 200],
  ["application/json; charset=utf-16", 415],
  ["application/json; charset=iso-8859-1", 415],
  ["application/json; charset", 415],
  ["application/json; charset=utf-8; charset=utf-7", 415],
  ["application/json; boundary=x", 415],
  ["application/json;", 415],
  ["application/json, text/plain", 415],
  ["application/json\t", 200],
  ["application/json\ttext/plain", 415],
  ["application/jsonp", 415],
  ["application/problem+json", 415],
  ["application/x-www-form-urlencoded", 415],
  ["multipart/form-data; boundary=x", 415],
  ["text/json", 415],
  ["text/plain", 415],
  ["json", 415],
  ["", 415],
];

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

const bodies: readonly string[] = [
  '{"tool_name":"note.add","tool_input":{},"platformState":{}}',
  '{"tool_name":"note.add","tool_input":{},"Tool_Input":{}}',
  '{"tool_name":"note.add","tool_input":{},"sessionid":"a"}',
  '{"tool_name":"note.add","tool_input":{},"qqqq":1}',
  '{"tool_name":"note.add","tool_input":{},"a\\u202eb":1}',
  '{"tool_name":"note.add","tool_input":{},"tool_input":{}}',
  '{"tool_name":"note.add","tool_input":{"a":{"b":1,\n"b":2}}}',
  '{"tool_input":{}}',
  '{"tool_name":null,"tool_input":{}}',
  '{"tool_name":"","tool_input":{}}',
  '{"tool_name":"a\\u0000","tool_input":{}}',
  '{"tool_name":"note.add"}',
  '{"tool_name":"note.add","tool_input":[]}',
  '{"tool_name":"note.add","tool_input":"{}"}',
  '{"tool_name":"note.add","tool_input":{},"session_id":7}',
  '{"tool_name":"note.add","tool_input":{},"session_id":null}',
  '{"tool_name":"note.add","tool_input":{},"session_id":""}',
  '{"tool_name":"note.add","tool_input":{},"platform_state":[]}',
  '{"tool_name":"note.add","tool_input":{},"platform_state":false}',
  "\ufeff" + call,
  call + call,
  "[]",
  "",
  '{"tool_name":"note.add","tool_input":{"a":"\\ud800"}}',
  '{"tool_name":"note.add","tool_input":{"a":NaN}}',
  '{"tool_name":"note.add","tool_input":{"a":01}}',
  '{"tool_name":"note.add","tool_input":{},}',
];

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
