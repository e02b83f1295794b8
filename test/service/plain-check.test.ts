/**
 * Goal: a plain check gets the same bytes as through Fastify's lifecycle. Method: two gates get the same requests in
 * the same order, one with the fast path and one without; their answers are compared byte for byte, except for the
 * date, drawn ids and hashes. Positive controls: the fast path handled many of the requests, and fast paths with a
 * defect are noticed.
 */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { Valve } from "../../packages/gate/src/server/admission/valve.ts";
import { PlainChecks } from "../../packages/gate/src/server/http/plain-check.ts";
import { control } from "../support/controls/control.ts";
import { exchange, key, startGate, type Running } from "../support/gate.ts";
import { bodies, call, json, keepAlive, length, oddities, post, types } from "../support/http-requests.ts";
import { Chance } from "../support/model/chance.ts";
import { printSeed, seedOf } from "../support/random-test.ts";

const contentLength = (body: string): string => `Content-Length: ${Buffer.byteLength(body)}`;

/** Pieces of bytes; there is a pause before each further piece. */
type Shape = readonly (string | Uint8Array)[];

const close = "Connection: close";
const whole = post([json, length]);

const shapes: readonly Shape[] = [
  ...oddities.map(({ bytes }) => [bytes]),
  ...types.map(([type]) => [post(type === "" ? [length] : [`Content-Type: ${type}`, length])]),
  ...bodies.map((body) => [post([json, contentLength(body)], body)]),
  [
    Buffer.concat([
      Buffer.from(post([json, "Content-Length: 46"], "")),
      Buffer.from('{"tool_name":"note.add","tool_input":{"a":"'),
      Buffer.from([0xc3, 0x28, 0x22]),
    ]),
  ],
  [keepAlive + keepAlive + whole],
  [keepAlive + whole.replace("/check", "/rules")],
  [whole.replace("/check", "/t/acme/check")],
  [whole.replace(`Bearer ${key}`, `bearer ${key}`)],
  [whole.replace(`Bearer ${key}`, `Bearer  ${key}`)],
  [whole.replace(`Authorization: Bearer ${key}\r\n`, "")],
  [whole.replace(key, `${key}x`)],
  [whole.replace(close, "Connection: keep-alive, close")],
  [whole.replace(close, "Connection: upgrade, close\r\nUpgrade: h2c")],
  [post([json, length, "X-Request-Id: mine"])],
  [post([json, length, "X-Request-Id: not mine"])],
  [post([json, length, "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"])],
  [post([json, "Content-Length: 0"], "")],
  [post([json, `Content-Length: 0${call.length}`])],
  [post([json, "Content-Length: 262144"], `{"tool_name":"note.add","tool_input":{"a":"${"x".repeat(262_144 - 46)}"}}`)],
  [post([json, "Content-Length: 262145"], "x".repeat(262_145))],
  [post([json, "Content-Length: 9999999"], "")],
  [post([json, contentLength('{"tool_name":"支払い","tool_input":{}}')], '{"tool_name":"支払い","tool_input":{}}')],
  // A body in pieces, and a head in pieces.
  ...[1, 20, 60, 110, whole.length - call.length - 1, whole.length - call.length, whole.length - 5].map((at) => [
    whole.slice(0, at),
    whole.slice(at),
  ]),
  whole.split(""),
];

/** Requests with random bytes replaced, removed or added. */
function mutations(seed: number, count: number): readonly Shape[] {
  const chance = new Chance(seed);
  const below = (max: number): number => chance.whole(0, max - 1);
  const inserted = [
    "\r\n",
    " ",
    ":",
    "0",
    "\t",
    "%",
    "?",
    "#",
    '"',
    "}",
    "\0",
    "\u00e9",
    "X: y\r\n",
    "Content-Length: 3\r\n",
    "Expect: x\r\n",
  ];
  return Array.from({ length: count }, () => {
    let text = whole;
    for (let edits = 1 + below(3); edits > 0; edits -= 1) {
      const at = below(text.length);
      const put = below(3) === 0 ? "" : (inserted[below(inserted.length)] ?? "");
      text = text.slice(0, at) + put + text.slice(at + below(3));
    }
    return [Buffer.from(text, "latin1")];
  });
}

/** Sends the pieces, and returns all that the gate answers. A connection that the gate leaves open is closed. */
async function answersOf(gate: Running, shape: Shape): Promise<string> {
  const [first = "", ...rest] = shape;
  if (rest.length === 0) return withoutDrawn(await patiently(gate, first));
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ port: gate.port, host: "127.0.0.1", noDelay: true });
    socket.on("error", () => undefined);
    socket.on("data", (piece) => (text += piece.toString("latin1")));
    socket.on("close", () => resolve(withoutDrawn(text)));
    socket.write(first);
    const next = (at: number): void => {
      const piece = rest[at];
      if (piece === undefined) return;
      setTimeout(() => (socket.write(piece), next(at + 1)), 2);
    };
    next(0);
  });
}

/**
 * A mutation may leave a request incomplete, so that the gate waits for the rest. The connection is closed after some
 * turns without an answer in which the gate decides nothing.
 */
function patiently({ gate, port }: Running, bytes: string | Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    let quiet = 0;
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    const watch = async (): Promise<void> => {
      while (quiet < 10 && !socket.destroyed) {
        await wait(40);
        // A process that the machine delays may take one turn in this time, and an answer takes several.
        for (let turn = 0; turn < 20; turn += 1) await new Promise((next) => setImmediate(next));
        quiet = gate.isIdle && !socket.connecting ? quiet + 1 : 0;
      }
      socket.destroy();
    };
    void watch();
    socket.on("error", () => undefined);
    socket.on("data", (piece) => {
      text += piece.toString("latin1");
      quiet = 0;
    });
    socket.on("close", () => resolve(text));
  });
}

function withoutDrawn(text: string): string {
  return text
    .replace(/^Date: .*$/gim, "Date: -")
    .replace(/^x-request-id: [\w-]{12}-[0-9a-z]+\r$/gim, "x-request-id: -\r")
    .replace(/"hash":"[0-9a-f]{64}"/g, '"hash":"-"')
    .replace(/\{"receipts":[^]*/, "receipts"); // They have hashes and salts in many members.
}

/** Sends the shapes in groups that are in flight together; each group is compared in its own order. */
async function all(gate: Running, sent: readonly Shape[], together: number): Promise<readonly string[]> {
  const answers: string[] = [];
  for (let at = 0; at < sent.length; at += together) {
    const group = sent.slice(at, at + together).map((shape) => answersOf(gate, shape));
    answers.push(...(await Promise.all(group)));
  }
  return together === 1 ? answers : answers.map((text) => text.replace(/"seq":\d+/g, '"seq":-'));
}

type Handle = (this: PlainChecks, ...args: Parameters<PlainChecks["handle"]>) => boolean;

/** Sends all shapes to a new gate whose fast path is this function. */
async function sentTo(
  t: TestContext,
  handle: Handle,
  flags: Flags,
  sent: readonly Shape[],
  together = 1,
): Promise<readonly string[]> {
  const mock = t.mock.method(PlainChecks.prototype, "handle", handle);
  const answers = await all(await startGate(t, { flags }), sent, together);
  mock.mock.restore();
  return answers;
}

type Flags = Readonly<Record<string, string>>;
const fastPath: Handle = Reflect.get(PlainChecks.prototype, "handle");
const noFastPath: Handle = () => false;

interface Both {
  readonly short: readonly string[];
  readonly long: readonly string[];
  /** The number of requests that the fast path handled. */
  readonly plain: number;
}

async function both(t: TestContext, sent: readonly Shape[], flags: Flags = {}, together = 1): Promise<Both> {
  let plain = 0;
  const counting: Handle = function counting(...args) {
    const handled = fastPath.apply(this, args);
    plain += handled ? 1 : 0;
    return handled;
  };
  const short = await sentTo(t, counting, flags, sent, together);
  const long = await sentTo(t, noFastPath, flags, sent, together);
  return { short, long, plain };
}

function differences({ short, long }: Both, sent: readonly Shape[]): readonly object[] {
  return sent.flatMap((shape, at) =>
    short[at] === long[at]
      ? []
      : [
          {
            sent: shape.map((piece) => Buffer.from(piece).toString("latin1").slice(0, 400)),
            short: short[at],
            long: long[at],
          },
        ],
  );
}

test("hostile and odd requests get the same bytes on the fast path and from Fastify", async (t) => {
  const found = await both(t, shapes);
  assert.deepEqual(differences(found, shapes), []);
  assert.ok(found.plain > 60, `positive control: the fast path handled ${found.plain} requests`);
  assert.ok(found.plain < shapes.length / 2, "positive control: most odd requests were left to Fastify");
});

test("random mutations of a check get the same bytes on the fast path and from Fastify", async (t) => {
  const [seed, cases] = [seedOf("PLAIN_CHECK_SEED", 20_261_123), 400];
  printSeed(t, { cases, seed, variable: "PLAIN_CHECK_SEED" });
  // The valve would delay refusals for longer than the test waits for an answer.
  t.mock.method(Valve.prototype, "pass", (action: () => void) => (action(), true));
  const sent = mutations(seed, cases);
  const found = await both(t, sent, {}, 40);
  assert.deepEqual(differences(found, sent), []);
  assert.ok(found.plain > 60, `positive control: the fast path handled ${found.plain} requests`);
});

test("a key's rate is counted and shown alike on the fast path and from Fastify", async (t) => {
  const at = performance.now();
  t.mock.method(performance, "now", () => at); // the bucket never refills, however slow the machine
  const sent = Array.from({ length: 8 }, () => [whole]);
  const found = await both(t, sent, { rate: "1/s burst 5" });
  const known = (texts: readonly string[]): readonly string[] => texts.map((text) => text.replace(/t=\d+/g, "t=-"));
  assert.deepEqual(known(found.short), known(found.long));
  assert.deepEqual(
    found.short.map((text) => text.slice(9, 12)),
    ["200", "200", "200", "200", "200", "429", "429", "429"],
  );
  assert.equal(found.plain, 8);
});

const defects: Readonly<Record<string, (request: IncomingMessage) => void>> = {
  "ignores a content coding": ({ headers }) => delete headers["content-encoding"],
  "takes any media type": ({ headers }) => (headers["content-type"] = "application/json"),
  "ignores a slash at the end": (request) => (request.url = request.url?.replace(/\/$/, "") ?? ""),
  "loses the request's id": ({ headers }) => delete headers["x-request-id"],
  "takes a key from nowhere": ({ headers }) => (headers["authorization"] = `Bearer ${key}`),
};

const tempting: readonly Shape[] = [
  [whole],
  [post([json, length, "Content-Encoding: gzip"])],
  [post(["Content-Type: text/plain", length])],
  [whole.replace("/check", "/check/")],
  [post([json, length, "X-Request-Id: mine"])],
  [whole.replace(key, "wrong")],
];

for (const [title, spoil] of Object.entries(defects))
  control(`positive control: a fast path that ${title} is noticed`, async (t) => {
    const broken: Handle = function broken(request, response) {
      spoil(request);
      return fastPath.call(this, request, response);
    };
    const short = await sentTo(t, broken, {}, tempting);
    assert.notDeepEqual(short, await sentTo(t, noFastPath, {}, tempting));
  });

test("a client that leaves while its body arrives gets nothing, and the gate serves on", async (t) => {
  const gate = await startGate(t);
  const left = connect(gate.port, "127.0.0.1", () => left.write(whole.slice(0, -5), () => left.resetAndDestroy()));
  await new Promise((resolve) => left.once("close", resolve));
  assert.match(await exchange(gate.port, whole), /^HTTP\/1\.1 200 [^]*"seq":1,/);
});
