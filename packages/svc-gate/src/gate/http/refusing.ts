import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { limits, refusals, refuse, type Refusal } from "../../wire/mod.ts";
import { isFramingLost, headTooLarge } from "./head.ts";
import type { RefusalLog } from "./refusal-log.ts";
import type { GateObserver } from "../telemetry/observer.ts";
import type { Valve } from "../admission/valve.ts";
import { traceOf, requestIdentity } from "./request-identity.ts";

declare module "fastify" {
  interface FastifyInstance {
    /** Counts each refusal. */
    readonly observer: GateObserver;
    /** Logs refusals. */
    readonly refusalLog: RefusalLog;
    /** Limits the rate of refusals. */
    readonly refusalValve: Valve;
  }
}

/**
 * Sends a refusal as problem details (RFC 9457) and logs it. The rest of the body is read and dropped, within the time
 * limit of a request. So the sender sees the refusal and not a connection reset.
 */
export function refuseWith(reply: FastifyReply, refusal: Refusal): FastifyReply {
  const { status } = refusals[refusal.code];
  if (status === 401) reply.header("www-authenticate", "Bearer");
  if (status === 503 || status === 429) reply.header("retry-after", String(refusal.retrySeconds ?? 1));
  if (refusal.allow !== undefined) reply.header("allow", refusal.allow);
  if (refusal.code === "stopping" || isFramingLost(reply.request.raw)) reply.header("connection", "close");
  else if (reply.hasHeader("connection")) reply.removeHeader("connection");
  if (!reply.request.raw.complete) answeredEarly.add(reply.request.raw.socket);
  reply.server.observer.refused(refusal.code);
  traceOf(reply.request)?.refused(refusal);
  const { request, server } = reply;
  server.refusalLog.note(refusal.code, () => ({ ...requestIdentity(request), status, detail: refusal.detail }));
  reply
    .code(status)
    .header("content-type", "application/problem+json; charset=utf-8")
    .header("cache-control", "no-store");
  const send = (): boolean => {
    const isThere = !reply.raw.destroyed;
    if (isThere) reply.send(problemText(refusal));
    return isThere;
  };
  if (refusal.code === "stopping") send();
  else if (!server.refusalValve.pass(send)) dropBody(request);
  return reply;
}

/** Frees the body of a request whose refusal waits. */
function dropBody(request: FastifyRequest): void {
  request.body = undefined;
  request.raw.resume();
}

/** Connections that got an answer before their request was complete. They get no second answer. */
const answeredEarly = new WeakSet<object>();

/** The number of pending answers of each connection, and its last request. */
const owing = new WeakMap<object, { answers: number; last: IncomingMessage }>();

/** Counts a request as pending until its answer is sent. */
export function trackPendingResponse(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request;
  const owed = owing.get(socket) ?? { answers: 0, last: request };
  owing.set(socket, owed);
  owed.answers += 1;
  owed.last = request;
  response.once("close", () => (owed.answers -= 1));
}

/**
 * Returns true if a client would take an answer that is written now for the answer to an earlier request. An incomplete
 * last request does not count, because the refusal is its answer.
 */
function hasPendingResponse(socket: object): boolean {
  const owed = owing.get(socket);
  return owed !== undefined && owed.answers > (owed.last.complete ? 0 : 1);
}

function problemText({ code, detail }: Refusal): string {
  const { status, title } = refusals[code];
  return JSON.stringify({ type: `urn:svc-gate:refusal:${code}`, title, status, code, detail });
}

/** Turns an error of the HTTP server into a refusal. */
export function toRefusal(error: unknown, request: FastifyRequest): Refusal {
  const { code, statusCode } = error as { readonly code?: string; readonly statusCode?: number };
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    return refuse("body-too-large", `the body must not exceed ${limits.bodyBytesMax} bytes`);
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return refuse("bad-http", "the request is not HTTP that the gate reads");
  }
  request.log.error({ ...requestIdentity(request), err: error }, "a request failed");
  return refuse("ledger-unavailable", "the gate could not answer; see its log");
}

/** A connection whose data is not a request. */
export interface BareSocket {
  readonly writable: boolean;
  readonly destroyed: boolean;
  end(text: string): unknown;
  destroy(): unknown;
}

/**
 * Answers data that is not a request, on the socket itself. If an earlier request waits, closes the socket without an
 * answer.
 */
export function refuseConnection(
  error: Error & { code?: string },
  socket: BareSocket,
  { refusalLog, observer }: { readonly refusalLog: RefusalLog; readonly observer: GateObserver },
): void {
  const mute = answeredEarly.has(socket) || hasPendingResponse(socket);
  if (error.code === "ECONNRESET" || socket.destroyed || !socket.writable || mute) {
    socket.destroy();
    return;
  }
  const refusal = connectionRefusal(error.code);
  const { status, title } = refusals[refusal.code];
  const body = problemText(refusal);
  observer.refused(refusal.code);
  refusalLog.note(refusal.code, () => ({ status, detail: refusal.detail }));
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    "Content-Type: application/problem+json; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    "Connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
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
