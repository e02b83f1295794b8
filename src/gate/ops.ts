import Fastify, { LogController, type FastifyInstance, type FastifyReply } from "fastify";
import type { Logger } from "pino";
import { limits } from "../wire/mod.ts";

/** What may be seen of a gate without a key, by whoever can reach the listener. */
export interface Watched {
  /** The metrics in the Prometheus text format. */
  metrics(): Promise<string>;
  /** Why no check can be answered now, in a few words; undefined when one can. */
  unready(): Promise<string | undefined>;
  /** The body of GET /health, and whether it says that all is well. */
  health(): Promise<{ readonly ok: boolean; readonly body: string }>;
}

/**
 * The second listener, for those who run the gate: /metrics, /ready and /health without a key, and nothing else. It
 * stays open while the gate stops, so that what asks for its readiness hears of it.
 */
export function makeOpsServer(watched: Watched, log: Logger): FastifyInstance {
  const server = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: limits.bodyTimeoutMs,
    bodyLimit: 1,
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    http: { maxHeaderSize: limits.headerBytesMax },
  } as Parameters<typeof Fastify>[0]) as unknown as FastifyInstance;
  server.get("/metrics", async (_request, reply) => sendMetrics(watched, reply));
  server.get("/ready", async (_request, reply) => sendReadiness(watched, reply));
  server.get("/health", async (_request, reply) => {
    const { ok, body } = await watched.health();
    return sendJson(reply.code(ok ? 200 : 503), body);
  });
  server.setNotFoundHandler((_request, reply) => sendJson(reply.code(404), nothingHere));
  return server;
}

/** The Prometheus text format, as its scrapers know it. */
const expositionType = "text/plain; version=0.0.4; charset=utf-8";

const nothingHere = JSON.stringify({ routes: ["/metrics", "/ready", "/health"] });

export async function sendMetrics(watched: Pick<Watched, "metrics">, reply: FastifyReply): Promise<FastifyReply> {
  const text = await watched.metrics();
  return reply.header("content-type", expositionType).header("cache-control", "no-store").send(text);
}

export async function sendReadiness(watched: Pick<Watched, "unready">, reply: FastifyReply): Promise<FastifyReply> {
  const because = await watched.unready();
  if (because === undefined) return sendJson(reply, JSON.stringify({ status: "ready" }));
  return sendJson(reply.code(503), JSON.stringify({ status: "not-ready", because }));
}

function sendJson(reply: FastifyReply, body: string): FastifyReply {
  return reply.header("content-type", "application/json; charset=utf-8").header("cache-control", "no-store").send(body);
}
