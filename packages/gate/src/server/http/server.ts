import type { IncomingMessage, ServerResponse } from "node:http";
import Fastify, { LogController, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { limits, quote, refuse, type Refusal } from "../../../../core/src/wire/mod.ts";
import { keep, type Stream } from "./connection.ts";
import { Connections } from "./connections.ts";
import { hasEscapedPath, refusalForBody, refusalForHead } from "./head.ts";
import type { ValidKey } from "../keys/keys.ts";
import { exchangeOf, keyOf, type Exchange } from "./exchange.ts";
import { addConsole, admitSession, isVisit, type ConsoleAccess } from "./console.ts";
import type { ConsoleDoor } from "./door.ts";
import { noKey, refusalForKind, refusalForLoad, refusalForRate } from "./key-refusals.ts";
import { PlainChecks } from "./plain-check.ts";
import { RefusalLog } from "./refusal-log.ts";
import { refuseConnection, refuseWith, toRefusal, type RefusalOutlet } from "./refusing.ts";
import { answer, endRead } from "./reading.ts";
import type { HttpRoute } from "./route.ts";
import { ofFramework } from "./ops.ts";
import { routes } from "./routes.ts";
import type { Service } from "../service/service.ts";
import { Valve } from "../admission/valve.ts";
import { requestId } from "../telemetry/requests.ts";

export interface HttpOptions {
  readonly service: Service;
  readonly basePath: string;
  readonly log: Logger;
  /** Undefined if the gate serves no console. */
  readonly console?: ConsoleDoor | undefined;
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
}

/**
 * Makes the HTTP server. It checks the key before the body, limits and strictly reads the body, and sends refusals as
 * problem details (RFC 9457). Connections are its only state.
 */
export function makeServer({ service, basePath, log, tls, console: door }: HttpOptions): FastifyInstance {
  const outlet: RefusalOutlet = {
    observer: service.metrics,
    log: new RefusalLog(log),
    valve: new Valve({
      perSecond: limits.refusalsPerSecond,
      waitMs: limits.refusalWaitMs,
      waitingMax: limits.refusalsWaitingMax,
    }),
  };
  const server = Fastify(serverOptions({ service, log, tls }, outlet)) as unknown as FastifyInstance;
  const connections = new Connections(
    server.server,
    service.connections,
    log,
    ({ tenant, name }, resume) => service.openGate(tenant)?.admission.pause(name, resume) ?? false,
  );
  addKeyHooks(server, { service, basePath, connections, door });
  server.decorateRequest("exchange", undefined);
  server.decorate("refusalOutlet", outlet);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  server.setErrorHandler((error, request, reply) =>
    refuseWith(reply, toRefusal(error, exchangeOf(request, reply), log, request.routeOptions.bodyLimit)),
  );
  server.setNotFoundHandler((request, reply) => refuseWith(reply, notFound(request, basePath)));
  addRoutes(server, service, basePath, "");
  if (door !== undefined) {
    addConsole(server, { door, service, basePath });
    addRoutes(server, service, basePath, "/console/api");
  }
  server.server.maxHeadersCount = 0; // their bytes are limited; the default would silently drop the last headers
  takeRequests(server, service, connections, new PlainChecks({ service, basePath, outlet, connections }));
  return server;
}

function serverOptions(
  { service, log, tls }: Pick<HttpOptions, "log" | "service" | "tls">,
  outlet: RefusalOutlet,
): Parameters<typeof Fastify>[0] {
  const { keys } = service;
  const http = {
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.bodyTimeoutMs,
    requestTimeout: limits.bodyTimeoutMs,
    connectionsCheckingInterval: 1000,
    requireHostHeader: false, // the gate refuses it with its own message
  };
  return {
    loggerInstance: ofFramework(log),
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: limits.bodyBytesMax,
    requestTimeout: limits.bodyTimeoutMs,
    keepAliveTimeout: 72_000,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    exposeHeadRoutes: false,
    genReqId: ({ headers }: IncomingMessage) => requestId(headers["x-request-id"]),
    childLoggerFactory: (logger: Logger) => logger, // each line has its own identity; most requests have no line
    frameworkErrors: (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
      refuseWith(
        reply,
        keys.known.find(request.headers.authorization) === undefined
          ? noKey
          : toRouterRefusal(error, exchangeOf(request, reply), log),
      ),
    clientErrorHandler: (error: Error, socket: Stream) => refuseConnection(error, socket, outlet),
    ...(tls === undefined ? { http } : { https: { ...tls, ...http, handshakeTimeout: limits.bodyTimeoutMs } }),
  } as Parameters<typeof Fastify>[0];
}

interface KeyHooks {
  readonly service: Service;
  readonly basePath: string;
  readonly connections: Connections;
  readonly door: ConsoleDoor | undefined;
}

/** Looks up the key before the body is read, and once more before the handler if the key has changed. */
function addKeyHooks(server: FastifyInstance, { service, basePath, connections, door }: KeyHooks): void {
  const { keys } = service;
  const start = (
    request: FastifyRequest,
    reply: FastifyReply,
    refused: Refusal | undefined,
  ): FastifyReply | undefined => {
    const exchange = exchangeOf(request, reply);
    const { key } = exchange;
    const { scope, forEmergencies = false } = request.routeOptions.config as RouteConfig;
    const refusal =
      refused ??
      refusalForKey(request, key) ??
      (forEmergencies ? undefined : refusalForRate(exchange, service)) ??
      refusalBeforeBody(request, basePath) ??
      (scope === "check" ? refusalForLoad(exchange, service) : undefined);
    connections.shows(request.raw.socket, key);
    if (refusal !== undefined) return refuseWith(reply, refusal);
    reply.headers(exchange.headers);
    return undefined;
  };
  server.addHook("onRequest", (request, reply, done) => {
    const exchange = exchangeOf(request, reply);
    exchange.tenant = (request.params as { readonly tenant?: string } | undefined)?.tenant;
    const { console: access, dialect } = request.routeOptions.config as RouteConfig;
    if (dialect !== undefined) echoId(exchange);
    const end = (refused?: Refusal): void => {
      if (start(request, reply, refused) === undefined) done();
    };
    if (access !== undefined) Object.assign(exchange.headers, consoleHeaders);
    if (access === "session" && door !== undefined) {
      admitSession(door, request, reply).then(end, done);
      return;
    }
    if (access === undefined) {
      exchange.credential = () => keys.known.find(request.headers.authorization);
      exchange.key = exchange.credential();
      const opens = door !== undefined && isVisit(request, basePath);
      if (opens && door.refusalForHost(request.raw) === undefined) {
        reply.redirect(`${basePath}/console`);
        return;
      }
    }
    end(refusalOfConsole(request.raw, access, door));
  });
  // A body may take seconds to arrive. A key that was revoked or expired meanwhile is refused, and so is a session that
  // has ended.
  server.addHook("preHandler", (request, reply, done) => {
    const { exchange } = request;
    if (request.method !== "POST" || exchange?.key === undefined) return done();
    if (!keep(exchange)) return void reply.hijack();
    if (exchange.session === undefined && keys.known.isUnchanged(exchange.key)) return done();
    exchange.key = exchange.credential();
    return exchange.key === undefined ? refuseWith(reply, noKey) : done();
  });
}

/** AuthZEN wants back each id of a request. The log still has an id that is safe in a line, and a header is ASCII. */
function echoId({ request, headers }: Exchange): void {
  const sent = request.headers["x-request-id"];
  if (typeof sent === "string" && /^[\t\x20-\x7e]+$/.test(sent)) headers["x-request-id"] = sent;
}

/** Returns why a browser may not even sign in; undefined for the routes of the API. */
function refusalOfConsole(
  request: IncomingMessage,
  access: ConsoleAccess | undefined,
  door: ConsoleDoor | undefined,
): Refusal | undefined {
  if (access === undefined) return undefined;
  return access === "page" ? door?.refusalForHost(request) : door?.refusalFor(request);
}

/** The header fields of every answer of the console. */
const consoleHeaders = { "cross-origin-resource-policy": "same-origin", "x-content-type-options": "nosniff" };

/**
 * Adds the routes of the API.
 *
 * @param below empty for callers with a key; for browsers with a session, the path before each route
 */
function addRoutes(server: FastifyInstance, service: Service, basePath: string, below: "" | "/console/api"): void {
  const { tenants } = service;
  const access: RouteConfig = below === "" ? {} : { console: "session" };
  for (const route of routes) {
    const { method, path, scope, dialect, ofRoot = false } = route;
    if (dialect !== undefined && below !== "") continue; // No page of the console speaks it.
    const isRead = (route.reads ?? route.readsItself) !== undefined;
    const onSend = [...(below === "" ? [] : [keepNothing]), ...(isRead ? [endRead] : [])];
    const config: RouteConfig = { ...route, ...access };
    const handleAtRoot = (request: FastifyRequest, reply: FastifyReply): unknown =>
      answer(route, { service, gate: service.root, tenant: null, key: keyOf(request), request, reply });
    server.route({ method, url: basePath + below + path, config, onSend, handler: handleAtRoot });
    if (tenants === undefined || ofRoot) continue;
    server.route({
      method,
      url: `${basePath}/t/:tenant${below}${path}`,
      config,
      onSend,
      handler: async (request, reply) => {
        const { tenant } = request.params as { readonly tenant: string };
        const key = keyOf(request);
        // /health: anyone else gets the same answer as for a tenant that does not exist.
        if (key === undefined || (scope === undefined && key.tenant !== tenant)) return handleAtRoot(request, reply);
        const call = { service, tenant, key, request, reply };
        if (route.withoutGate === true && tenants.has(tenant)) return answer(route, call);
        const gate = await tenants.gateFor(tenant, reply.raw);
        if (!gate.ok) return refuseWith(reply, gate.problem);
        return answer(route, { ...call, gate: gate.value });
      },
    });
  }
}

/** A browser stores no answer of the console. */
function keepNothing(
  _request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
  done: (error: null, payload: unknown) => void,
): void {
  reply.header("cache-control", "no-store");
  done(null, payload);
}

/** Counts each request as pending, also if it never reaches a route, and gives it to the fast path or to Fastify. */
function takeRequests(server: FastifyInstance, { keys }: Service, connections: Connections, plain: PlainChecks): void {
  let isClosing = false; // Fastify then closes each connection after its answer.
  server.addHook("preClose", (done) => {
    isClosing = true;
    done();
  });
  server.server.removeAllListeners("request"); // Fastify's own listener is `routing`.
  server.server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (!connections.noteStart(request, response)) return;
    if (isClosing || !plain.handle(request, response)) server.routing(request, response);
  });
  server.server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    if (!connections.noteStart(request, response)) return;
    if (keys.known.find(request.headers.authorization) !== undefined) response.writeContinue();
    server.routing(request, response);
  });
  server.server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    if (connections.noteStart(request, response)) server.routing(request, response);
  });
}

const notEscaped = refuse("not-found", "the path has a percent sign: write it without escapes");

/**
 * Returns why a key does not open the route. A key opens the root or one tenant. Everyone else gets the same 401,
 * whether or not the tenant exists. The root's administrators may use the admin routes of all tenants.
 */
function refusalForKey(request: FastifyRequest, key: ValidKey | undefined): Refusal | undefined {
  const { scope, orScopes = [], forHosts = false } = request.routeOptions.config as RouteConfig;
  if (isUnknown(request)) return key === undefined ? noKey : undefined;
  if (scope === undefined) return undefined;
  if (key === undefined) return noKey;
  const { tenant = null } = request.params as { readonly tenant?: string };
  const looksAfter = key.tenant === null && scope === "admin" && key.scopes.has("admin");
  if (tenant !== key.tenant && !looksAfter) return noKey;
  if (!forHosts && key.kind !== undefined) return refusalForKind(key);
  if ([scope, ...orScopes].some((each) => key.scopes.has(each))) return undefined;
  const wanted = [scope, ...orScopes].map(quote).join(" or ");
  return refuse("forbidden", `the key ${quote(key.name)} lacks the scope ${wanted}`);
}

interface RouteConfig extends Partial<
  Pick<HttpRoute, "dialect" | "forEmergencies" | "forHosts" | "orScopes" | "scope">
> {
  /** Undefined for the API: its routes never read a cookie, and the console's never read Authorization. */
  readonly console?: ConsoleAccess;
}

/** Returns why a request is refused for its headers, before its body is read. */
function refusalBeforeBody(request: FastifyRequest, basePath: string): Refusal | undefined {
  const { raw } = request;
  const refusal = refusalForHead(raw);
  if (refusal !== undefined) return refusal;
  if (isUnknown(request)) return notFound(request, basePath);
  return raw.method === "POST" ? refusalForBody(raw) : undefined;
}

/** Paths are exact, but the router decodes escapes. So a path with an escape is refused. */
function isUnknown(request: FastifyRequest): boolean {
  return request.is404 || hasEscapedPath(request.url);
}

function notFound(request: FastifyRequest, basePath: string): Refusal {
  if (hasEscapedPath(request.url)) return notEscaped;
  const [path = ""] = request.url.split("?");
  const below = path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : "";
  const local = below.replace(/^\/t\/[^/]+(?=\/)/, "");
  const methods = routes.filter((route) => patternOf(route).test(local)).map(({ method }) => method);
  if (methods.some((method) => method === request.method))
    return refuse("not-found", "this path needs tenants (set SVC_TENANTS), or does not exist below a tenant");
  if (methods.length === 0) {
    const paths = new Set(routes.map((route) => basePath + pathText(route)));
    return refuse("not-found", `this path does not exist; the gate has ${[...paths].join(", ")}`);
  }
  return { ...refuse("method-not-allowed", `this path only takes ${methods.join(", ")}`), allow: methods.join(", ") };
}

/** Handles paths that the router refuses, such as an escape that is not UTF-8. */
function toRouterRefusal(error: unknown, exchange: Exchange, log: Logger): Refusal {
  return hasEscapedPath(exchange.request.url ?? "") ? notEscaped : toRefusal(error, exchange, log);
}

function patternOf({ path }: HttpRoute): RegExp {
  return new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}$`);
}

function pathText({ path }: HttpRoute): string {
  return path.replace(/:(\w+)/g, "{$1}");
}
