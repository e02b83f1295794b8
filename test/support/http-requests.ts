import { key, requestText } from "./gate.ts";

export const call = '{"tool_name":"note.add","tool_input":{}}';
export const json = "Content-Type: application/json";
export const length = `Content-Length: ${call.length}`;
export const chunked = `${call.length.toString(16)}\r\n${call}\r\n0\r\n\r\n`;
export const open = ["Host: gate", `Authorization: Bearer ${key}`, json, length];
export const keepAlive = `POST /check HTTP/1.1\r\n${open.join("\r\n")}\r\n\r\n${call}`;

export interface Oddity {
  readonly title: string;
  readonly bytes: string;
  /** The statuses received on the connection, in order. */
  readonly statuses: readonly number[];
  readonly rows: number;
}

export const post = (headers: readonly string[], body = call): string =>
  requestText("POST /check HTTP/1.1", headers, body);

export const oddities: readonly Oddity[] = [
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

/** Media types, and the statuses of checks with them. */
export const types: readonly (readonly [string, number])[] = [
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

/** Bodies that are not checks. */
export const bodies: readonly string[] = [
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
