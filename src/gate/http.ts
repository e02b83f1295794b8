import { hash } from "node:crypto";
import { isAscii, isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import Fastify, { LogController, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import {
  findUtf8Fault,
  limits,
  nearest,
  parseCheckRequest,
  quote,
  refuse,
  isVerdict,
  type Refusal,
} from "../wire/mod.ts";
import type { Gate } from "./gate.ts";
import type { Keys } from "./keys.ts";
import { noteOwed, refuseConnection, refuseWith, toRefusal, type BareSocket } from "./refusing.ts";

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
  const connections = {
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.bodyTimeoutMs,
    requestTimeout: limits.bodyTimeoutMs,
    connectionsCheckingInterval: 1000,
    requireHostHeader: false, // refused below, in the gate's words
  };
  const server = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: limits.bodyBytesMax,
    requestTimeout: limits.bodyTimeoutMs,
    keepAliveTimeout: 72_000,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    exposeHeadRoutes: false,
    frameworkErrors: (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
      refuseWith(reply, keys.nameOf(request.headers.authorization) === undefined ? noKey : toRefusal(error, log)),
    clientErrorHandler: (error: Error, socket: BareSocket) => refuseConnection(error, socket, log),
    ...(tls === undefined ? { http: connections } : { https: { ...tls, ...connections } }),
  } as Parameters<typeof Fastify>[0]) as unknown as FastifyInstance;
  server.addHook("onRequest", (request, reply, done) => {
    const name = keys.nameOf(request.headers.authorization);
    const refusal = name === undefined && !isOpen(request) ? noKey : refusalBeforeBody(request, basePath);
    if (refusal !== undefined) return refuseWith(reply, refusal);
    if (name !== undefined) keyNames.set(request, name);
    return done();
  });
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  server.setErrorHandler((error, _request, reply) => refuseWith(reply, toRefusal(error, log)));
  server.setNotFoundHandler((request, reply) => refuseWith(reply, notFound(request, basePath)));
  for (const { method, path, scope, handle } of routes) {
    server.route({
      method,
      url: basePath + path,
      config: { open: scope === undefined },
      handler: (request, reply) => handle(gate, request, reply, keyNames.get(request) ?? ""),
    });
  }
  server.server.maxHeadersCount = 0; // their bytes are bounded; dropping the last of them in silence would hide one
  server.server.prependListener("request", noteOwed);
  server.server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    noteOwed(request, response);
    if (keys.nameOf(request.headers.authorization) !== undefined) response.writeContinue();
    server.routing(request, response);
  });
  server.server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    noteOwed(request, response);
    server.routing(request, response);
  });
  return server;
}

const keyNames = new WeakMap<FastifyRequest, string>();

const noKey = refuse("unauthorized", "no key came, or it is not this gate's: send it as `Authorization: Bearer <key>`");

function isOpen(request: FastifyRequest): boolean {
  return (request.routeOptions.config as { readonly open?: boolean } | undefined)?.open === true;
}

/** What headers alone say against a request, before any of its body is read. */
function refusalBeforeBody(request: FastifyRequest, basePath: string): Refusal | undefined {
  const { headers, raw } = request;
  const oddity = httpOddity(raw);
  if (oddity !== undefined) return refuse("bad-http", oddity);
  if (request.is404) return notFound(request, basePath);
  if (raw.method !== "POST") return undefined;
  if (!isJson(headers["content-type"])) {
    return refuse("unsupported-media-type", "send a JSON object with Content-Type: application/json");
  }
  const coding = headers["transfer-encoding"];
  if (headers["content-encoding"] === undefined && (coding === undefined || coding === "chunked")) return undefined;
  return refuse("unsupported-media-type", "the body is encoded; send it as it is, without Content-Encoding");
}

/** What the server's parser lets pass and two readers could take differently. */
function httpOddity({ headers, httpVersion, rawHeaders, url }: IncomingMessage): string | undefined {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "the gate speaks HTTP/1.1";
  if (headers.host === undefined && httpVersion === "1.1") return "the request names no host";
  if (url?.includes("#") === true) return "a request's target has no fragment";
  const twice = repeatedHeader(rawHeaders);
  return twice === undefined ? undefined : `the header ${twice} stands twice`;
}

/** Headers of which the first and the last could be taken, by their length: no two are of one. */
const singleHeaders: ReadonlyMap<number, string> = new Map(
  ["host", "content-type", "authorization", "content-encoding"].map((name) => [name.length, name]),
);

function repeatedHeader(rawHeaders: readonly string[]): string | undefined {
  let seen = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    const single = singleHeaders.get(name.length);
    if (single === undefined || name.toLowerCase() !== single) continue;
    const bit = 1 << name.length;
    if ((seen & bit) !== 0) return single;
    seen |= bit;
  }
  return undefined;
}

function isJson(type: string | undefined): boolean {
  if (type === undefined) return false;
  return type === "application/json" || /^application\/json *(?:; *charset=(?:utf-8|"utf-8") *)?$/i.test(type);
}

function notFound(request: FastifyRequest, basePath: string): Refusal {
  const [path = ""] = request.url.split("?");
  const methods = routes
    .filter((route) => path === basePath + route.path || isReceiptPath(route, path, basePath))
    .map(({ method }) => method);
  if (methods.length === 0) {
    return refuse("not-found", `the gate has ${routes.map((route) => basePath + shown(route)).join(", ")}`);
  }
  return { ...refuse("method-not-allowed", `this path takes ${methods.join(", ")}`), allow: methods.join(", ") };
}

function isReceiptPath(route: Route, path: string, basePath: string): boolean {
  const folder = `${basePath}/receipts/`;
  return route.path.endsWith(":seq") && path.startsWith(folder) && /^[^/]+$/.test(path.slice(folder.length));
}

function shown({ path }: Route): string {
  return path.replace(":seq", "{seq}");
}

async function check(gate: Gate, request: FastifyRequest, reply: FastifyReply, keyName: string): Promise<FastifyReply> {
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
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

/** What is in force, or with `contract` what some receipt was decided under. */
async function rules(gate: Gate, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const query = queryOf(request);
  const named = query.parameters.get("contract");
  const problem =
    badEscape(query.written) ??
    unknownParameter(query.parameters, ["contract"]) ??
    (named === null || /^sha256:[0-9a-f]{64}$/.test(named)
      ? undefined
      : '"contract" must be what a receipt says, `sha256:` and 64 hex digits');
  if (problem !== undefined) return refuseWith(reply, refuse("invalid-query", problem));
  const digest = named?.slice("sha256:".length) ?? gate.contractDigest;
  const text = await gate.rules(digest);
  if (text === undefined) return refuseWith(reply, refuse("not-found", "no receipt was decided under this contract"));
  const etag = `"${digest}"`;
  reply.header("etag", etag).header("cache-control", "no-cache");
  const known = request.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  if (known.includes(etag) || known.includes("*")) return reply.code(304).send();
  return reply.header("content-type", "text/plain; charset=utf-8").send(text);
}

interface Query {
  readonly written: string;
  readonly parameters: URLSearchParams;
}

function queryOf({ url }: FastifyRequest): Query {
  const written = url.includes("?") ? url.slice(url.indexOf("?") + 1) : "";
  return { written, parameters: new URLSearchParams(written) };
}

const queryNames = ["limit", "before", "session_id", "tool_name", "verdict"];

function receipts(gate: Gate, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { written, parameters: query } = queryOf(request);
  const problem =
    badEscape(written) ??
    unknownParameter(query, queryNames) ??
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

/** What would be read as another text than was meant. */
function badEscape(written: string): string | undefined {
  try {
    decodeURIComponent(written);
    return undefined;
  } catch {
    return "the query has a percent sign that does not stand for UTF-8";
  }
}

function unknownParameter(query: URLSearchParams, names: readonly string[]): string | undefined {
  for (const name of query.keys()) {
    if (!names.includes(name)) {
      const near = nearest(name, names);
      return `unknown parameter ${quote(name)}${near === undefined ? "" : `; did you mean "${near}"?`}`;
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
  const { rows, head, broken, anchored = null } = await gate.verify();
  const note = anchored === null ? { note: "nothing outside the data folder anchors this ledger: set SVC_PIN" } : {};
  const { seq, hash: headHash } = head;
  const found =
    broken === undefined
      ? { ok: true, rows, head: { seq, hash: headHash } }
      : { ok: false, rows, first_broken: broken };
  return sendJson(reply, JSON.stringify({ ...found, anchored, ...note }));
}

function sendJson(reply: FastifyReply, body: string | Readable): FastifyReply {
  return reply.header("content-type", "application/json; charset=utf-8").header("cache-control", "no-store").send(body);
}
