import type { AddressInfo } from "node:net";
import Fastify, { LogController, type FastifyInstance, type FastifyReply } from "fastify";
import type { Logger } from "pino";
import { limits } from "../../wire/mod.ts";
import { sendJson } from "./body.ts";
import type { Gate } from "../core/gate.ts";
import { isLoopback } from "../start/loopback.ts";
import type { Service } from "../admin/service.ts";

/**
 * The second listener, for those who run the gate: /metrics, /ready and /health without a key, and nothing else. It
 * stays open while the gate stops, so that what asks for its readiness hears of it.
 *
 * On a loopback address it answers only if Host is a loopback name, or `host`, the name that it listens on.
 * A web page whose own name was made to point to 127.0.0.1 sends that name.
 */
export function makeOpsServer(service: Service, host: string, log: Logger): FastifyInstance {
  const server = Fastify({
    loggerInstance: log,
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
  server.get("/metrics", (_request, reply) => sendMetrics(service, reply));
  server.get("/ready", (_request, reply) => sendReadiness(service.root, reply));
  server.get("/health", (_request, reply) => sendHealth(service.root, reply));
  server.setNotFoundHandler((_request, reply) => sendJson(reply.code(404), nothingElse));
  return server;
}

const nothingElse = JSON.stringify({ routes: ["GET /metrics", "GET /ready", "GET /health"] });

const wrongHost = JSON.stringify({
  error: "this listener is on a loopback address and refuses every other Host: use localhost, or set SVC_OPS_HOST",
});

/** The name in a Host header, without its port; undefined without the header, which every browser sends. */
function hostNameOf(header: string | undefined): string | undefined {
  return header
    ?.toLowerCase()
    .replace(/:\d*$/, "")
    .replace(/^\[(.*)\]$/, "$1");
}

/** The Prometheus text format, as its scrapers know it. */
const expositionType = "text/plain; version=0.0.4; charset=utf-8";

export async function sendMetrics(service: Service, reply: FastifyReply): Promise<FastifyReply> {
  const text = await service.metricsText();
  return reply.header("content-type", expositionType).header("cache-control", "no-store").send(text);
}

/** Can a check be answered, and will it be in a moment: what a balancer asks before it sends one. */
export async function sendReadiness(gate: Gate, reply: FastifyReply): Promise<FastifyReply> {
  const because = await gate.unready();
  if (because === undefined) return sendJson(reply, JSON.stringify({ status: "ready" }));
  return sendJson(reply.code(503), JSON.stringify({ status: "not-ready", because }));
}

export async function sendHealth(gate: Gate, reply: FastifyReply): Promise<FastifyReply> {
  const writable = await gate.isServing();
  return sendJson(
    reply.code(writable ? 200 : 503),
    JSON.stringify({ status: writable ? "ok" : "unavailable", mode: gate.policy.mode }),
  );
}
