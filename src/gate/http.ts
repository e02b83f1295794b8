import { hash } from "node:crypto";
import { isAscii, isUtf8 } from "node:buffer";
import { Readable } from "node:stream";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import {
  findUtf8Fault,
  limits,
  nearest,
  parseCheckRequest,
  refusals,
  refuse,
  isVerdict,
  type Refusal,
} from "../wire/mod.ts";
import type { Gate } from "./gate.ts";
import type { Keys } from "./keys.ts";

export interface HttpOptions {
  readonly gate: Gate;
  readonly keys: Keys;
  readonly basePath: string;
  readonly log: Logger;
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
}

type Handler = (gate: Gate, request: FastifyRequest, reply: FastifyReply, keyName: string) => unknown;

/** One row per route. Every row but /health refuses without a key; a test holds that against this table. */
export interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly scope: "check" | "rules" | "receipts" | undefined;
  readonly handle: Handler;
}

export const routes: readonly Route[] = [
  { method: "POST", path: "/check", scope: "check", handle: check },
  { method: "GET", path: "/health", scope: undefined, handle: health },
  { method: "GET", path: "/rules", scope: "rules", handle: rules },
  { method: "GET", path: "/receipts", scope: "receipts", handle: receipts },
  { method: "GET", path: "/receipts/:seq", scope: "receipts", handle: receipt },
  { method: "GET", path: "/ledger/verify", scope: "receipts", handle: verify },
];

/**
 * The routes over HTTP: key before body, body within limits, strict reading, refusals as problem details (RFC 9457).
 * It holds no state but connections.
 */
export function makeServer({ gate, keys, basePath, log, tls }: HttpOptions): FastifyInstance {
  const server = Fastify({
    loggerInstance: log,
    disableRequestLogging: true,
    bodyLimit: limits.bodyBytesMax,
    requestTimeout: limits.bodyTimeoutMs,
    keepAliveTimeout: 72_000,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 32 },
    clientErrorHandler: refuseConnection,
    ...(tls === undefined
      ? {}
      : { https: { ...tls, maxHeaderSize: limits.headerBytesMax, connectionsCheckingInterval: 1000 } }),
    ...(tls === undefined ? { http: { maxHeaderSize: limits.headerBytesMax, connectionsCheckingInterval: 1000 } } : {}),
  } as Parameters<typeof Fastify>[0]) as unknown as FastifyInstance;
  const open = routes.filter(({ scope }) => scope === undefined).map(({ path }) => basePath + path);
  server.addHook("onRequest", (request, reply, done) => {
    const name = keys.nameOf(request.headers.authorization);
    if (name !== undefined) keyNames.set(request, name);
    else if (!open.includes(request.url.split("?")[0] ?? "")) {
      refuseWith(reply, refuse("unauthorized", "send the key as `Authorization: Bearer <key>`"));
      return;
    }
    done();
  });
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(
    /^application\/json *(?:; *charset="?utf-8"? *)?$/i,
    { parseAs: "buffer" },
    (request, body, done) => {
      if (request.headers["content-encoding"] !== undefined)
        done(
          new Refused(
            refuse("unsupported-media-type", "the body is encoded; send it as it is, without Content-Encoding"),
          ),
        );
      else done(null, body);
    },
  );
  server.setErrorHandler((error, _request, reply) => refuseWith(reply, toRefusal(error, log)));
  server.setNotFoundHandler((request, reply) => refuseWith(reply, notFound(request, basePath)));
  for (const { method, path, handle } of routes) {
    server.route({
      method,
      url: basePath + path,
      handler: (request, reply) => handle(gate, request, reply, keyNames.get(request) ?? ""),
    });
  }
  return server;
}

const keyNames = new WeakMap<FastifyRequest, string>();

class Refused extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.detail);
    this.refusal = refusal;
  }
}

async function check(gate: Gate, request: FastifyRequest, reply: FastifyReply, keyName: string): Promise<FastifyReply> {
  const body = request.body;
  if (!Buffer.isBuffer(body))
    return refuseWith(
      reply,
      refuse("unsupported-media-type", "send a JSON object with Content-Type: application/json"),
    );
  const text = decode(body);
  if (typeof text !== "string") return refuseWith(reply, text);
  const parsed = parseCheckRequest(text);
  if (!parsed.ok) return refuseWith(reply, parsed.problem);
  const answer = await gate.check(parsed.value, { keyName, bytes: body.length, digest: hash("sha256", body, "hex") });
  if (!answer.ok) return refuseWith(reply, answer.problem);
  return reply.header("content-type", "application/json; charset=utf-8").send(answer.value);
}

/** A body as text; what is not UTF-8 is refused at its first wrong byte. */
function decode(body: Buffer): string | Refusal {
  if (isAscii(body)) return body.toString("latin1");
  if (isUtf8(body)) return body.toString("utf8");
  const fault = findUtf8Fault(body);
  return refuse(
    "invalid-json",
    `line ${fault?.line ?? 1}, column ${fault?.column ?? 1}: ${fault?.sentence ?? "invalid UTF-8"}`,
  );
}

async function health(gate: Gate, _request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const writable = await gate.isServing();
  return sendJson(
    reply.code(writable ? 200 : 503),
    JSON.stringify({ status: writable ? "ok" : "unavailable", mode: gate.mode }),
  );
}

function rules(gate: Gate, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const etag = `"${gate.contractDigest}"`;
  reply.header("etag", etag).header("cache-control", "no-cache");
  if (request.headers["if-none-match"]?.split(/, */).includes(etag) === true) return reply.code(304).send();
  return reply.header("content-type", "text/plain; charset=utf-8").send(gate.contractText);
}

const queryNames = ["limit", "before", "session_id", "tool_name", "verdict"];

function receipts(gate: Gate, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const query = new URLSearchParams(request.url.split("?")[1] ?? "");
  const problem =
    unknownParameter(query) ??
    badNumber(query, "limit", limits.receiptsLimitMax) ??
    badNumber(query, "before", Number.MAX_SAFE_INTEGER) ??
    badVerdict(query);
  if (problem !== undefined) return refuseWith(reply, refuse("invalid-query", problem));
  const limit = Number(query.get("limit") ?? limits.receiptsLimitDefault);
  const rows = gate.receipts({
    before: Number(query.get("before") ?? Number.MAX_SAFE_INTEGER),
    limit,
    session: query.get("session_id") ?? undefined,
    tool: query.get("tool_name") ?? undefined,
    verdict: query.get("verdict") ?? undefined,
  });
  return sendJson(reply, Readable.from(pageText(rows, limit)));
}

/** The page as it is read, so that a thousand large rows never stand in memory together. */
async function* pageText(
  slices: AsyncIterable<readonly { readonly seq: number; readonly json: string }[]>,
  limit: number,
): AsyncGenerator<string> {
  yield '{"receipts":[';
  let count = 0;
  let last = 0;
  for await (const slice of slices) {
    yield (count > 0 ? "," : "") + slice.map(({ json }) => json).join(",");
    count += slice.length;
    last = slice.at(-1)?.seq ?? last;
  }
  yield `],"next":${count === limit && last > 1 ? last : "null"}}`;
}

function unknownParameter(query: URLSearchParams): string | undefined {
  for (const name of query.keys()) {
    if (!queryNames.includes(name)) {
      const near = nearest(name, queryNames);
      return `unknown parameter "${name.slice(0, 64)}"${near === undefined ? "" : `; did you mean "${near}"?`}`;
    }
    if (query.getAll(name).length > 1) return `the parameter "${name}" stands twice`;
  }
  return undefined;
}

function badNumber(query: URLSearchParams, name: string, max: number): string | undefined {
  const value = query.get(name);
  if (value === null || (/^[1-9][0-9]{0,15}$/.test(value) && Number(value) <= max)) return undefined;
  return `"${name}" must be a whole number from 1 to ${max}`;
}

function badVerdict(query: URLSearchParams): string | undefined {
  const value = query.get("verdict");
  return value === null || isVerdict(value) ? undefined : '"verdict" must be ALLOW, BLOCK or ESCALATE';
}

async function receipt(gate: Gate, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { seq } = request.params as { readonly seq: string };
  if (!/^[1-9][0-9]{0,15}$/.test(seq))
    return refuseWith(reply, refuse("not-found", "a receipt's number is a whole number from 1"));
  for await (const [row] of gate.receipts({ before: Number(seq) + 1, limit: 1 })) {
    if (row?.seq === Number(seq)) return sendJson(reply, row.json);
  }
  return refuseWith(reply, refuse("not-found", `there is no receipt ${seq}`));
}

async function verify(gate: Gate, _request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { rows, head, broken, anchored } = await gate.verify();
  const anchor =
    anchored ?? "nothing outside the data folder anchors this ledger: set SVC_PIN to a file on another volume";
  if (broken === undefined) return sendJson(reply, JSON.stringify({ ok: true, rows, head, anchored: anchor }));
  return sendJson(reply, JSON.stringify({ ok: false, rows, first_broken: broken, anchored: anchor }));
}

function sendJson(reply: FastifyReply, body: string | Readable): FastifyReply {
  return reply.header("content-type", "application/json; charset=utf-8").header("cache-control", "no-store").send(body);
}

/** Sends a refusal and logs it. `Connection: close` where the rest of a body may still be on its way. */
function refuseWith(reply: FastifyReply, refusal: Refusal): FastifyReply {
  const { status } = refusals[refusal.code];
  if (status === 401) reply.header("www-authenticate", "Bearer");
  if (status === 503) reply.header("retry-after", "1");
  if (refusal.allow !== undefined) reply.header("allow", refusal.allow);
  if (status === 413 || status === 408 || refusal.code === "stopping") reply.header("connection", "close");
  reply.log.info({ code: refusal.code, status, detail: refusal.detail }, "refused");
  return reply
    .code(status)
    .header("content-type", "application/problem+json; charset=utf-8")
    .header("cache-control", "no-store")
    .send(problemText(refusal));
}

function problemText({ code, detail }: Refusal): string {
  const { status, title } = refusals[code];
  return JSON.stringify({ type: `urn:svc-gate:refusal:${code}`, title, status, code, detail });
}

function notFound(request: FastifyRequest, basePath: string): Refusal {
  const path = request.url.split("?")[0] ?? "";
  const methods = routes
    .filter((route) => new RegExp(`^${basePath}${route.path.replace(":seq", "[^/]+")}$`).test(path))
    .map(({ method }) => method);
  if (methods.length === 0)
    return refuse(
      "not-found",
      `the gate has ${routes.map((route) => basePath + route.path.replace(":seq", "{seq}")).join(", ")}`,
    );
  return { ...refuse("method-not-allowed", `this path takes ${methods.join(", ")}`), allow: methods.join(", ") };
}

/** What Fastify refuses by itself, in the gate's words; anything unforeseen is a fault and must not be answered. */
function toRefusal(error: unknown, log: Logger): Refusal {
  if (error instanceof Refused) return error.refusal;
  const { code, statusCode } = error as { readonly code?: string; readonly statusCode?: number };
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE")
    return refuse("body-too-large", `a body is at most ${limits.bodyBytesMax} bytes`);
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE" || code === "FST_ERR_CTP_INVALID_CONTENT_TYPE")
    return refuse("unsupported-media-type", "send a JSON object with Content-Type: application/json");
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return refuse("bad-http", "the request is not HTTP that the gate reads");
  log.error({ err: error }, "a request failed");
  return refuse("ledger-unavailable", "the gate could not answer; see its log");
}

/** Answers on the bare socket what never became a request. */
function refuseConnection(
  error: Error & { code?: string },
  socket: { writable: boolean; destroyed: boolean; end: (text: string) => unknown; destroy: () => unknown },
): void {
  if (error.code === "ECONNRESET" || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const refusal =
    error.code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? refuse("body-timeout", `the whole request must arrive within ${limits.bodyTimeoutMs / 1000} s`)
      : error.code === "HPE_HEADER_OVERFLOW"
        ? refuse("headers-too-large", `headers are at most ${limits.headerBytesMax} bytes`)
        : refuse("bad-http", "the request is not HTTP that the gate reads");
  const { status, title } = refusals[refusal.code];
  const body = problemText(refusal);
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/problem+json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
