import type { AddressInfo } from "node:net";
import Fastify, { LogController, type FastifyInstance, type FastifyReply } from "fastify";
import type { Logger } from "pino";
import { isLoopback, limits } from "../../../../core/src/wire/mod.ts";
import { sendJson } from "../request/body.ts";
import type { RouteCall } from "./route.ts";
import type { Service } from "../service/service.ts";

/** The framework's own log, without its line about listening: the gate prints its addresses itself. */
export function ofFramework(log: Logger): Logger {
  return log.isLevelEnabled("warn") ? log.child({}, { level: "warn" }) : log;
}

/**
 * Makes the second listener, for operators: /metrics, /ready and /health without a key, and nothing else. It stays open
 * while the gate stops, so that a balancer sees that the gate is not ready.
 *
 * On a loopback address it answers only if Host is a loopback name, or `host`, the name that it listens on. A web page
 * whose own name points to 127.0.0.1 sends that name.
 */
export function makeOpsServer(service: Service, host: string, log: Logger): FastifyInstance {
  const server = Fastify({
    loggerInstance: ofFramework(log),
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: limits.bodyTimeoutMs,
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    http: { maxHeaderSize: limits.headerBytesMax },
  } as Parameters<typeof Fastify>[0]) as unknown as FastifyInstance;
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("*", (_request, _body, done) => done(null));
  server.addHook("onRequest", (request, reply, done) => {
    const { address } = server.server.address() as AddressInfo;
    const named = hostNameOf(request.headers.host);
    if (named === undefined || !isLoopback(address) || isLoopback(named) || named === host.toLowerCase()) return done();
    return sendJson(reply.code(421), wrongHost);
  });
  server.get("/metrics", (_request, reply) => sendMetrics({ service, reply }));
  server.get("/ready", (_request, reply) => sendReadiness({ service, reply }));
  server.get("/health", (_request, reply) => sendHealth({ gate: service.root, reply }));
  server.setNotFoundHandler((_request, reply) => sendJson(reply.code(404), nothingElse));
  return server;
}

const nothingElse = JSON.stringify({ routes: ["GET /metrics", "GET /ready", "GET /health"] });

const wrongHost = JSON.stringify({
  error:
    "the Host header is not a loopback name, and this listener is on a loopback address: use localhost, or set SVC_OPS_HOST",
});

/**
 * Returns the name in a Host header, without its port; undefined if the header is missing, which every browser sends.
 */
function hostNameOf(header: string | undefined): string | undefined {
  return header
    ?.toLowerCase()
    .replace(/:\d*$/, "")
    .replace(/^\[(.*)\]$/, "$1");
}

/** The media type of the Prometheus text format. */
const expositionType = "text/plain; version=0.0.4; charset=utf-8";

export async function sendMetrics({ service, reply }: Pick<RouteCall, "reply" | "service">): Promise<FastifyReply> {
  const text = await service.metricsText();
  return reply.header("content-type", expositionType).header("cache-control", "no-store").send(text);
}

/** Answers GET /ready, with which a balancer asks if the gate can answer checks. */
export async function sendReadiness({ service, reply }: Pick<RouteCall, "reply" | "service">): Promise<FastifyReply> {
  const reason = await service.root.unready();
  if (reason === undefined) return sendJson(reply, JSON.stringify({ status: "ready" }));
  return sendJson(reply.code(503), JSON.stringify({ status: "not-ready", reason }));
}

export async function sendHealth({ gate, reply }: Pick<RouteCall, "gate" | "reply">): Promise<FastifyReply> {
  const writable = await gate.isServing();
  return sendJson(
    reply.code(writable ? 200 : 503),
    JSON.stringify({
      status: writable ? "ok" : "unavailable",
      mode: gate.policy.mode,
      ...(gate.ledger.standing.stops.active.length > 0 && { stopped: true }),
    }),
  );
}
