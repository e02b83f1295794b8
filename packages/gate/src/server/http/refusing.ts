import type { FastifyReply } from "fastify";
import type { Logger } from "pino";
import {
  limits,
  refusals,
  refuse,
  type Refusal,
  type RefusalCode,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { awaitsAnswer, connectionOf, destroySoon, letGo, type Stream } from "./connection.ts";
import { isFramingLost, headTooLarge } from "./head.ts";
import type { RefusalLog } from "./refusal-log.ts";
import type { GateObserver } from "../telemetry/observer.ts";
import type { Valve } from "../admission/valve.ts";
import { RefusalError, sendJson } from "../request/body.ts";
import { exchangeOf, identityOf, type Exchange } from "./exchange.ts";
import type { HttpRoute } from "./route.ts";

/** What a server needs to refuse a request. */
export interface RefusalOutlet {
  /** Counts each refusal. */
  readonly observer: GateObserver;
  readonly log: RefusalLog;
  /** Limits the rate of refusals. */
  readonly valve: Valve;
}

declare module "fastify" {
  interface FastifyInstance {
    readonly refusalOutlet: RefusalOutlet;
  }
}

/** Sends a refusal for a request that Fastify handles, which then does nothing more with it. */
export function refuseWith(reply: FastifyReply, refusal: Refusal): FastifyReply {
  const { request, server } = reply;
  const exchange = exchangeOf(request, reply);
  const { dialect } = (request.routeOptions.config ?? {}) as Pick<HttpRoute, "dialect">;
  reply.hijack();
  const isSent = sendRefusal(exchange, inDialect(refusal, dialect), server.refusalOutlet);
  if (!isSent) request.body = undefined; // It waits without its body.
  return reply;
}

/** Sends a value as JSON, or the refusal. */
export function sendResult<Value>(
  reply: FastifyReply,
  result: Result<Value, Refusal>,
  toJson: (value: Value) => unknown = (value) => value,
): FastifyReply {
  return result.ok ? sendJson(reply, JSON.stringify(toJson(result.value))) : refuseWith(reply, result.problem);
}

/** Returns a refusal with the code, and so the status, that the route's dialect has for it. */
export function inDialect(refusal: Refusal, dialect: HttpRoute["dialect"]): Refusal {
  const code = dialect === "authzen" ? authzenCodes[refusal.code] : undefined;
  return code === undefined ? refusal : { ...refusal, code };
}

/** AuthZEN has 400 for a body that is not JSON by its type, and 403 for a key that may not ask. */
const authzenCodes: Partial<Record<RefusalCode, RefusalCode>> = {
  "unsupported-media-type": "invalid-request",
  "wrong-tool": "forbidden",
};

/**
 * Sends a refusal as problem details (RFC 9457) and logs it. The rest of the body is read and dropped for a short time. So
 * the sender sees the refusal and not a connection reset.
 *
 * @returns false if the refusal waits until the rate of refusals allows it
 */
export function sendRefusal(exchange: Exchange, refusal: Refusal, outlet: RefusalOutlet): boolean {
  const { request, headers } = exchange;
  const { status } = refusals[refusal.code];
  if (status === 401) headers["www-authenticate"] = "Bearer";
  if (status === 503 || status === 429) headers["retry-after"] = String(refusal.retrySeconds ?? 1);
  if (refusal.allow !== undefined) headers["allow"] = refusal.allow;
  if (refusal.code === "stopping" || isFramingLost(request)) headers["connection"] = "close";
  if (!request.complete) connectionOf(request.socket).refusedEarly = true;
  letGo(exchange);
  noteRefusal(exchange, refusal, outlet);
  const send = (): boolean =>
    sendText(exchange, { status, text: problemText(refusal), type: problemType, isFresh: true });
  if (refusal.code === "stopping") return send();
  const isSent = outlet.valve.pass(send);
  if (!isSent) request.resume();
  return isSent;
}

/** Counts and logs a refusal. */
export function noteRefusal(exchange: Exchange, refusal: Refusal, { observer, log }: RefusalOutlet): void {
  const { status } = refusals[refusal.code];
  observer.countRefusal(refusal.code);
  exchange.trace?.endWithRefusal(refusal);
  log.note(refusal.code, () => ({ ...identityOf(exchange), status, detail: refusal.detail }));
}

const problemType = "application/problem+json; charset=utf-8";

interface SentText {
  readonly status: number;
  readonly text: string;
  readonly type: string;
  /** True if nobody may keep a copy. */
  readonly isFresh?: boolean;
}

/**
 * Sends an answer.
 *
 * @returns false if the connection was closed meanwhile
 */
export function sendText({ response, headers }: Exchange, { status, text, type, isFresh }: SentText): boolean {
  if (response.destroyed) return false;
  headers["content-type"] = type;
  if (isFresh === true) headers["cache-control"] = "no-store";
  headers["content-length"] = String(Buffer.byteLength(text));
  response.writeHead(status, headers);
  response.end(text);
  return true;
}

function problemText({ code, detail }: Refusal): string {
  const { status, title } = refusals[code];
  return JSON.stringify({ type: `urn:svc-gate:refusal:${code}`, title, status, code, detail });
}

/** Turns an error of a handler or of the HTTP server into a refusal. */
export function toRefusal(
  error: unknown,
  exchange: Exchange,
  logger: Logger,
  bodyBytesMax: number = limits.bodyBytesMax,
): Refusal {
  if (error instanceof RefusalError) return error.refusal;
  const { code, statusCode } = error as { readonly code?: string; readonly statusCode?: number };
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    return refuse("body-too-large", `the body must not exceed ${bodyBytesMax} bytes`);
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return refuse("bad-http", "the request is not HTTP that the gate reads");
  }
  logger.error({ ...identityOf(exchange), err: error }, "a request failed");
  return refuse("ledger-unavailable", "the gate could not answer; see its log");
}

/**
 * Answers data that is not a request, on the socket itself, which then ends. If an earlier request waits, closes the socket
 * without an answer.
 */
export function refuseConnection(
  error: Error & { code?: string },
  socket: Stream,
  { log, observer }: RefusalOutlet,
): void {
  const isDeaf = error.code === "ECONNRESET" || socket.destroyed || !socket.writable;
  if (isDeaf || !awaitsAnswer(connectionOf(socket))) {
    socket.destroy();
    return;
  }
  const refusal = connectionRefusal(error.code);
  const { status, title } = refusals[refusal.code];
  const body = problemText(refusal);
  observer.countRefusal(refusal.code);
  log.note(refusal.code, () => ({ status, detail: refusal.detail }));
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    "Content-Type: application/problem+json; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    "Connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
  destroySoon(socket);
}

function connectionRefusal(code: string | undefined): Refusal {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return refuse("body-timeout", `the whole request must arrive within ${limits.bodyTimeoutMs / 1000} s`);
  }
  if (code === "HPE_HEADER_OVERFLOW") {
    return headTooLarge();
  }
  return refuse("bad-http", "the request is not HTTP that the gate reads");
}
