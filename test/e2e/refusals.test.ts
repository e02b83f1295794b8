/**
 * Goal: each refusal of the table can be raised, has its status and the shape of problem details, writes no receipt and
 * shows no key; every limit of the wire holds at the limit and one past it. Method: tables keyed by the entries of
 * `refusals` and `limits`, so that an entry without a case does not compile and is reported.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test, type TestContext } from "node:test";
import { limits, quote, refusals, type RefusalCode } from "../../src/wire/mod.ts";
import { NotKept } from "../../src/ledger/mod.ts";
import { ask, check, exchange, key, requestText, startGate, type Running } from "./gate.ts";

const json = "Content-Type: application/json";
const call = '{"tool_name":"note.add","tool_input":{}}';

interface Refused {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** The last answer of an exchange; what went before it is of no interest here. */
async function send(gate: Running, bytes: string): Promise<Refused> {
  const text = await exchange(gate.port, bytes, isWhole);
  const [head = "", body = ""] = text.split(/\r\n\r\n(?=[^\r]*$)/);
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), head, body };
}

function isWhole(text: string): boolean {
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? Number.NaN);
  return rest.join("\r\n\r\n").length >= length;
}

function post(body: string, ...headers: string[]): string {
  return requestText("POST /check HTTP/1.1", [json, `Content-Length: ${Buffer.byteLength(body)}`, ...headers], body);
}

type Raise = (gate: Running, t: TestContext) => Promise<Refused>;

const raise: Readonly<Record<RefusalCode, Raise>> = {
  "invalid-json": (gate) => send(gate, post("{")),
  "invalid-request": (gate) => send(gate, post('{"tool_name":"note.add"}')),
  "invalid-query": (gate) => send(gate, requestText("GET /receipts?limit=0 HTTP/1.1")),
  "bad-http": (gate) => send(gate, "NONSENSE\r\n\r\n"),
  unauthorized: (gate) => send(gate, "GET /rules HTTP/1.1\r\nHost: gate\r\n\r\n"),
  "not-found": (gate) => send(gate, requestText("GET /rule HTTP/1.1")),
  "method-not-allowed": (gate) => send(gate, requestText("PUT /check HTTP/1.1")),
  "body-timeout": (gate) => send(gate, requestText("POST /check HTTP/1.1", [json, "Content-Length: 99"], "{")),
  "body-too-large": (gate) => send(gate, post(" ".repeat(limits.bodyBytesMax + 1))),
  "unsupported-media-type": (gate) => send(gate, post(call).replace(json, "Content-Type: text/plain")),
  "headers-too-large": (gate) => send(gate, post(call, `X-Long: ${"x".repeat(limits.headerBytesMax)}`)),
  "queue-full": async (gate, t) => {
    const release = hold(gate, t);
    const waiting = [submit(gate, 0)];
    await release.begun;
    waiting.push(submit(gate, limits.queueBytesMax));
    const refused = await send(gate, post(call));
    release.go();
    await Promise.all(waiting);
    return refused;
  },
  stopping: async (gate) => {
    await gate.gate.drain();
    return send(gate, post(call));
  },
  "ledger-unavailable": (gate, t) => {
    const commit = (): Promise<never> => Promise.reject(new NotKept("disk-full", "full"));
    t.mock.method(gate.ledger, "begin", async () => ({ append: () => undefined, value: () => "0", commit }));
    return send(gate, post(call));
  },
  "clock-unreliable": (gate, t) => {
    const now = Date.now;
    t.mock.method(Date, "now", () => now() + 61_000);
    return send(gate, post(call));
  },
};

/** Keeps the sequencer's first batch waiting for the ledger until it is let go. */
function hold(gate: Running, t: TestContext): { readonly begun: Promise<void>; readonly go: () => void } {
  const begun = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const begin = gate.ledger.begin.bind(gate.ledger);
  t.mock.method(gate.ledger, "begin", async (lookups: Parameters<typeof begin>[0]) => {
    begun.resolve();
    await held.promise;
    return begin(lookups);
  });
  return { begun: begun.promise, go: held.resolve };
}

const kept: ReadonlyMap<string, number> = new Map([["queue-full", 2]]);

test("[error.refusals] every refusal is raised, with its status and problem details, and writes no receipt", async (t) => {
  const codes = Object.keys(refusals) as RefusalCode[];
  assert.deepEqual(Object.keys(raise).toSorted(), codes.toSorted(), "a refusal without a case");
  await Promise.all(codes.map((code) => t.test(code, (inner) => raised(code, inner))));
});

async function raised(code: RefusalCode, t: TestContext): Promise<void> {
  const gate = await startGate(t);
  const { status, head, body } = await raise[code](gate, t);
  assert.equal(status, refusals[code].status, body);
  assert.match(head, /^content-type: application\/problem\+json/im);
  assert.match(head, /^cache-control: no-store/im);
  const problem = JSON.parse(body);
  assert.deepEqual(Object.keys(problem), ["type", "title", "status", "code", "detail"]);
  assert.deepEqual([problem.type, problem.code], [`urn:svc-gate:refusal:${code}`, code]);
  assert.deepEqual([problem.title, problem.status], [refusals[code].title, status]);
  assert.match(problem.detail, /^[^\n]{10,}$/);
  assert.ok(!`${head}${body}`.includes(key));
  assert.equal(/^www-authenticate: Bearer\r?$/im.test(head), status === 401);
  assert.equal(/^retry-after: \d+\r?$/im.test(head), status === 503);
  assert.equal(/^allow: POST\r?$/im.test(head), status === 405);
  t.mock.restoreAll();
  const { json: walk } = await ask(gate, "/ledger/verify");
  assert.deepEqual([walk.ok, walk.rows], [true, kept.get(code) ?? 0]);
}

const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
const inputOf = (value: string): string => `{"tool_name":"note.add","tool_input":{"a":${value}}}`;
const named = (member: string, bytes: number): string =>
  JSON.stringify({ tool_name: "note.add", tool_input: {}, [member]: "é".repeat(bytes / 2) + "x".repeat(bytes % 2) });
const padded = (bytes: number): string => call + " ".repeat(bytes - call.length);

/** What is sent at the limit and one past it; each answers with what was refused, or undefined. */
const atLimit: Readonly<Record<keyof typeof limits, (gate: Running, over: 0 | 1, t: TestContext) => Promise<unknown>>> =
  {
    bodyBytesMax: (gate, over) => code(check(gate, padded(limits.bodyBytesMax + over))),
    // Two levels are the body's own object and `tool_input`.
    jsonDepthMax: (gate, over) => code(check(gate, inputOf(deep(limits.jsonDepthMax - 2 + over)))),
    numberDigitsMax: (gate, over) => code(check(gate, inputOf("1".repeat(limits.numberDigitsMax + over)))),
    numberExponentMax: (gate, over) => code(check(gate, inputOf(`1e-${limits.numberExponentMax + over}`))),
    toolNameBytesMax: (gate, over) => code(check(gate, named("tool_name", limits.toolNameBytesMax + over))),
    sessionIdBytesMax: (gate, over) => code(check(gate, named("session_id", limits.sessionIdBytesMax + over))),
    quotedCharactersMax: async (_gate, over) =>
      quote("x".repeat(limits.quotedCharactersMax + over)).includes("…") || undefined,
    receiptsLimitDefault: async (gate, over) => {
      for (let n = 0; n < limits.receiptsLimitDefault + over; n += 1) await check(gate, call);
      const { json: page } = await ask(gate, "/receipts");
      assert.equal(page.receipts.length, limits.receiptsLimitDefault);
      return page.next ?? undefined;
    },
    receiptsLimitMax: (gate, over) => code(ask(gate, `/receipts?limit=${limits.receiptsLimitMax + over}`)),
    bodyTimeoutMs: async (gate, over) => {
      // A sender that is late by nothing is served; one that never ends is cut off by the gate's own clock.
      if (over === 0) return code(check(gate, call));
      return (await send(gate, requestText("POST /check HTTP/1.1", [json, "Transfer-Encoding: chunked"], "1\r\n{\r\n")))
        .status;
    },
    headerBytesMax: async (gate, over) => {
      // Within an octet or two the parser's own count decides; a header that is all of it is past the limit.
      const size = over === 0 ? limits.headerBytesMax - 400 : limits.headerBytesMax;
      const { status } = await send(gate, post(call, `X-Long: ${"x".repeat(size)}`));
      return status === 200 ? undefined : status;
    },
    queueCallsMax: (gate, over, t) => queued(gate, t, { calls: limits.queueCallsMax + over, bytes: 0 }),
    queueBytesMax: (gate, over, t) => queued(gate, t, { calls: 1, bytes: limits.queueBytesMax + over }),
    batchCallsMax: async (gate, over, t) => {
      const begin = t.mock.method(gate.ledger, "begin");
      await Promise.all(Array.from({ length: limits.batchCallsMax + over }, () => submit(gate, 0)));
      return begin.mock.callCount() === 1 ? undefined : begin.mock.callCount();
    },
  };

async function code(
  answer: Promise<{ readonly status: number; readonly json: { code?: string } }>,
): Promise<string | undefined> {
  const { status, json: body } = await answer;
  return status === 200 ? undefined : body.code;
}

function submit(gate: Running, bytes: number): Promise<{ readonly ok: boolean }> {
  const request = {
    toolName: "note.add",
    toolInput: new Map(),
    sessionId: null,
    platformState: null,
    inputText: "{}",
    platformText: null,
  };
  return gate.gate.check(request, { keyName: "default", digest: "0".repeat(64), bytes });
}

/** Fills the queue behind a batch that is held; undefined when all were taken. */
async function queued(
  gate: Running,
  t: TestContext,
  { calls, bytes }: { readonly calls: number; readonly bytes: number },
): Promise<number | undefined> {
  const release = hold(gate, t);
  const first = submit(gate, 0);
  await release.begun;
  const results = Array.from({ length: calls }, () => submit(gate, bytes));
  release.go();
  await first;
  const refused = (await Promise.all(results)).filter(({ ok }) => !ok).length;
  return refused === 0 ? undefined : refused;
}

test("[limit.receipts-max, limit.request-size] every limit of the wire is served at the limit and refused one past it", async (t) => {
  assert.deepEqual(Object.keys(atLimit).toSorted(), Object.keys(limits).toSorted(), "a limit without a case");
  const slow = ["bodyTimeoutMs"];
  const waiting: Promise<void>[] = [];
  const names = Object.keys(limits) as (keyof typeof limits)[];
  for (const name of names.toSorted((a) => (slow.includes(a) ? -1 : 0))) {
    for (const over of [0, 1] as const) {
      const run = t.test(`${name}, ${over === 0 ? "at it" : "one past it"}`, async (inner) => {
        const gate = await startGate(inner);
        const refused = await atLimit[name](gate, over, inner);
        if (over === 0) assert.equal(refused, undefined);
        else assert.notEqual(refused, undefined);
      });
      if (slow.includes(name)) waiting.push(run);
      else await run;
    }
  }
  await Promise.all(waiting);
});

const wrongKeys: readonly (readonly [string, string | undefined])[] = [
  ["no key", undefined],
  ["an empty one", "Bearer "],
  ["a wrong one", "Bearer wrong"],
  ["the key and more", `Bearer ${key}x`],
  ["half the key", `Bearer ${key.slice(0, -1)}`],
  ["another scheme", `Basic ${Buffer.from(`:${key}`).toString("base64")}`],
  ["no scheme", key],
  ["two keys", `Bearer ${key} ${key}`],
  ["the digest of the key", `Bearer ${createHash("sha256").update(key).digest("hex")}`],
];

test("[auth.bearer, auth.required-routes, health.only-open-route, auth.key-is-boundary] without the key every path but /health is a 401, and always the same", async (t) => {
  const gate = await startGate(t);
  const paths = [
    "/check",
    "/rules",
    "/receipts",
    "/receipts/1",
    "/ledger/verify",
    "/",
    "/unknown",
    "/health/",
    "/healthz",
    "/%zz",
    "//health",
    "/HEALTH",
  ];
  const texts = new Set<string>();
  for (const [, authorization = ""] of wrongKeys) {
    for (const path of paths) {
      for (const method of ["GET", "POST", "DELETE"]) {
        const answer = await ask(gate, path, { method, headers: { authorization } });
        assert.equal(answer.status, 401, `${method} ${path} with ${authorization}`);
        assert.equal(answer.headers.get("www-authenticate"), "Bearer");
        texts.add(answer.text);
      }
    }
    assert.equal((await ask(gate, "/health", { headers: { authorization } })).status, 200);
    assert.equal((await ask(gate, "/health?x=1", { headers: { authorization } })).status, 200);
    assert.equal((await ask(gate, "/health", { method: "POST", headers: { authorization } })).status, 401);
  }
  assert.equal(texts.size, 1);
  for (const authorization of [`bearer ${key}`, `BEARER  ${key}`]) {
    assert.equal((await ask(gate, "/rules", { headers: { authorization } })).status, 200, authorization);
  }
  assert.equal(gate.ledger.head.seq, 0);
});

test("a wrong key is refused before the body is read: a huge one, one that never ends, one that waits to be asked for", async (t) => {
  const gate = await startGate(t);
  const head = ["POST /check HTTP/1.1", "Host: gate", "Authorization: Bearer wrong", json];
  const never = await send(gate, `${head.join("\r\n")}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`);
  assert.equal(never.status, 401);
  const huge = await send(gate, `${head.join("\r\n")}\r\nContent-Length: 9999999999\r\n\r\n{`);
  assert.equal(huge.status, 401);
  const patient = await send(gate, `${head.join("\r\n")}\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n`);
  assert.equal(patient.status, 401);
  assert.ok(!patient.head.includes("100 Continue"));
});
