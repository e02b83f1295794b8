/** Listens on this machine and stands before a server with the Streamable HTTP transport. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally } from "../listening.ts";
import { Catalogue } from "./catalogue.ts";
import { HttpRefusal, readPost, refuseStrangers } from "./front.ts";
import * as messages from "./message.ts";
import { UsageError } from "./pins.ts";
import type { Ports, RelayContext } from "./context.ts";
import { Relay } from "./relay.ts";
import { RecentMap } from "./recent.ts";
import { HttpReply } from "./reply.ts";
import { secretOf } from "./settings.ts";
import {
  answerMs,
  eventsOf,
  readAnswerText,
  typeOf,
  Upstream,
  UpstreamError,
  type UpstreamAnswer,
} from "./upstream.ts";

/** Sessions of the older protocol: if there are more, the proxy forgets the oldest. */
const openSessionsMax = 1000;
const reportMs = 2000;

/** Headers of a request that the server needs. The client's key is not among them. */
const passedHeaders =
  /^(?:mcp-(?:session-id|protocol-version|method|name|param-.+)|last-event-id|traceparent|tracestate|baggage)$/;

type Headers = Readonly<Record<string, string>>;

/** @returns the exit code, after a signal has ended the listener */
export async function proxyHttp(
  contextOf: (sessionId?: string) => RelayContext,
  address: URL,
  port: number,
): Promise<number> {
  const key = secretOf(process.env, "SVC_MCP_KEY");
  if (key === null || !/^[\x21-\x7e]{16,}$/.test(key))
    throw new UsageError("svc-gate mcp: set SVC_MCP_KEY or SVC_MCP_KEY_FILE to a key of 16 characters or more");
  const upstream = new Upstream(address, secretOf(process.env, "SVC_MCP_UPSTREAM_KEY"));
  const proxy = new HttpProxy(contextOf, upstream);
  let own = port;
  const server = createServer((request, response) => {
    const reply = new HttpReply(request, response);
    Promise.resolve()
      .then(() => refuseStrangers(request, own, key))
      .then(() => proxy.answer(request, response, reply))
      .catch((error: unknown) => refuse(reply, error));
  });
  const { url, stop, ...bound } = await listenLocally(server, port).catch((error: Error) => {
    throw new UsageError(`svc-gate mcp: cannot listen: ${error.message}`);
  });
  own = bound.port;
  process.stdout.write(`svc-gate mcp listens on ${url}/mcp\n`);
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => resolve());
  });
  void stop();
  upstream.close();
  await Promise.race([proxy.waitForReports(), new Promise((resolve) => setTimeout(resolve, reportMs).unref())]);
  return 0;
}

function refuse(reply: HttpReply, error: unknown): void {
  if (error instanceof HttpRefusal) return reply.plain(`Svc: ${error.message}.\n`, error.status);
  if (error instanceof messages.MessageError)
    return reply.last(messages.errorText(error.id, error.code, error.message), 400);
  return reply.plain("Svc: the proxy failed.\n", 500);
}

/** One request of a client, and what belongs to it. */
interface ClientExchange {
  readonly relay: Relay;
  readonly reply: HttpReply;
  readonly headers: Headers;
  readonly isInSession: boolean;
  readonly signal: AbortSignal;
  readonly isReplay: boolean;
}

interface McpSession {
  readonly relay: Relay;
  readonly context: RelayContext;
}

class HttpProxy {
  readonly #contextOf: (sessionId?: string) => RelayContext;
  readonly #upstream: Upstream;
  readonly #shared: RelayContext;
  readonly #catalogue: Catalogue;
  readonly #sessions = new RecentMap<string, McpSession>(openSessionsMax);

  constructor(contextOf: (sessionId?: string) => RelayContext, upstream: Upstream) {
    this.#contextOf = contextOf;
    this.#upstream = upstream;
    this.#shared = contextOf();
    this.#catalogue = new Catalogue(this.#shared.pins, this.#shared.say);
  }

  async waitForReports(): Promise<void> {
    const contexts = [this.#shared, ...[...this.#sessions.values()].map(({ context }) => context)];
    await Promise.all(contexts.map(({ judge }) => judge.waitForReports()));
  }

  async answer(request: IncomingMessage, response: ServerResponse, reply: HttpReply): Promise<void> {
    const { method, headers } = request;
    if (method !== "POST" && method !== "GET" && method !== "DELETE")
      throw new HttpRefusal(405, "the methods are POST, GET and DELETE");
    const stop = new AbortController();
    response.on("close", () => stop.abort());
    const message = method === "POST" ? await readPost(request) : undefined;
    const id = headers["mcp-session-id"];
    const isInitialize = message?.kind === "request" && message.method === "initialize";
    const session = typeof id === "string" ? this.#session(id) : isInitialize ? this.#newSession() : undefined;
    const exchange: ClientExchange = {
      relay: session?.relay ?? new Relay({ ...this.#shared, keepsAnswered: false }, this.#catalogue),
      reply,
      headers: selectHeaders(headers),
      isInSession: session !== undefined,
      signal: stop.signal,
      isReplay: headers["last-event-id"] !== undefined,
    };
    if (message !== undefined) return this.#post(exchange, message, session);
    const answer = await this.#send(exchange, method === "GET" ? "GET" : "DELETE");
    if (method === "DELETE" && typeof id === "string") this.#sessions.delete(id);
    if (answer !== undefined) await this.#pass(exchange, answer, this.#ports(exchange));
  }

  #newSession(): McpSession {
    const context = this.#contextOf(randomUUID());
    return { relay: new Relay(context, new Catalogue(context.pins, context.say)), context };
  }

  #session(id: string): McpSession {
    const session = this.#sessions.get(id) ?? this.#newSession();
    this.#sessions.set(id, session);
    return session;
  }

  async #post(exchange: ClientExchange, message: messages.RpcMessage, session: McpSession | undefined): Promise<void> {
    const { relay, reply, signal } = exchange;
    const id = message.kind === "request" ? message.id : undefined;
    let isSent = false;
    signal.addEventListener("abort", () => {
      // A client of the older protocol can take up the stream of a call that has started.
      if (id !== undefined && !(isSent && exchange.isInSession)) relay.abandon(id);
    });
    let body: string | undefined;
    const ports = this.#ports(exchange, (text) => {
      if (body !== undefined) return false;
      body = text;
      return true;
    });
    await relay.fromClient(message, ports);
    if (signal.aborted) return;
    if (body === undefined) {
      if (id === undefined) reply.plain("", 202);
      return;
    }
    isSent = true;
    const answer = await this.#send(exchange, "POST", body);
    if (answer === undefined) return;
    const newId = answer.headers["mcp-session-id"];
    if (session !== undefined && typeof newId === "string") this.#sessions.set(newId, session);
    await this.#pass(exchange, answer, ports, id);
    if (id !== undefined && !exchange.isInSession) relay.abandon(id);
  }

  /** @param takeFirst takes the text that the request itself becomes */
  #ports(exchange: ClientExchange, takeFirst: (text: string) => boolean = () => false): Ports {
    const ports: Ports = {
      toClient: (text) => exchange.reply.message(text),
      toServer: (text, isOwn) => {
        if (isOwn) void this.#ask(exchange, ports, text);
        else if (!takeFirst(text)) void this.#tell(exchange, text);
      },
    };
    return ports;
  }

  /** Sends a request, and answers for a server that does not. */
  async #send(
    { headers, signal, reply, relay }: ClientExchange,
    method: "POST" | "GET" | "DELETE",
    body?: string,
  ): Promise<UpstreamAnswer | undefined> {
    try {
      const all = { ...headers, ...acceptOf(method) };
      const answer = await this.#upstream.send({
        method,
        headers: all,
        signal,
        ...(body === undefined ? {} : { body }),
      });
      const problem = problemOf(answer.statusCode);
      if (problem === undefined) return answer;
      answer.destroy();
      throw new UpstreamError(problem);
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      if (signal.aborted) return undefined;
      this.#fail({ reply, relay }, error, body);
      return undefined;
    }
  }

  #fail(
    { reply, relay }: Pick<ClientExchange, "reply" | "relay">,
    error: UpstreamError,
    body: string | undefined,
  ): void {
    const message = body === undefined ? undefined : messages.readMessage(body);
    const id = message?.kind === "request" ? message.id : null;
    if (id !== null) relay.abandon(id);
    reply.last(messages.errorText(id, messages.errors.internal, `Svc: ${error.message}.`), 502);
  }

  /** Passes the server's answer on, message by message. */
  async #pass(exchange: ClientExchange, answer: UpstreamAnswer, ports: Ports, id?: messages.MessageId): Promise<void> {
    const { relay, reply, signal } = exchange;
    const type = typeOf(answer);
    reply.resemble(answer);
    try {
      if (type === "events") await this.#passEvents(exchange, answer, ports);
      else if (type === "json") await passJson(relay, await readAnswerText(answer), ports);
      else reply.plain(await readAnswerText(answer));
      // The rest of a stream of a session can still come on another stream.
      const isOver = !(type === "events" && exchange.isInSession) && answer.statusCode < 400;
      if (id !== undefined && isOver && relay.abandon(id)) throw new UpstreamError("the MCP server did not answer");
      reply.end();
    } catch (error) {
      if (signal.aborted) return;
      const why = error instanceof Error ? error.message : "the server's answer cannot be read";
      if (id !== undefined) relay.abandon(id);
      reply.last(messages.errorText(id ?? null, messages.errors.internal, `Svc: ${why}.`), 502);
    }
  }

  /** A request of the server may wait for the gate; later messages pass it. */
  async #passEvents(exchange: ClientExchange, answer: UpstreamAnswer, ports: Ports): Promise<void> {
    const { relay, reply, isReplay } = exchange;
    const waiting: Promise<void>[] = [];
    reply.start();
    for await (const event of eventsOf(answer)) {
      if (event.data === "") {
        reply.event(event);
        continue;
      }
      const message = messages.readMessage(event.data);
      const passing = relay.fromServer(message, {
        toServer: ports.toServer,
        toClient: (text) => reply.event({ ...event, data: text }),
        isReplay,
      });
      if (message.kind === "request") waiting.push(passing);
      else await passing;
    }
    await Promise.all(waiting);
  }

  /** The proxy's own question: its answer goes to the relay. */
  async #ask({ relay, headers }: ClientExchange, ports: Ports, text: string): Promise<void> {
    const message = messages.readMessage(text);
    if (message.kind !== "request") return;
    try {
      const all = { ...ownHeaders(headers, message.method), ...acceptOf("POST") };
      // Other callers may wait for the same answer, so it does not end when this caller leaves.
      const signal = AbortSignal.timeout(answerMs);
      const answer = await this.#upstream.send({ method: "POST", headers: all, body: text, signal });
      const isStream = typeOf(answer) === "events";
      const texts = isStream ? eventsOf(answer) : [{ data: await readAnswerText(answer) }];
      for await (const { data } of texts) {
        const each = data === "" ? undefined : messages.readMessage(data);
        if (each?.kind === "response") await relay.fromServer(each, ports);
      }
    } catch {
      // The relay is told below.
    }
    const failed = messages.errorText(message.id, messages.errors.internal, "no answer");
    await relay.fromServer(messages.readMessage(failed), ports);
  }

  /** An answer of the proxy to a request of the server. */
  async #tell({ headers }: ClientExchange, text: string): Promise<void> {
    const all = { ...ownHeaders(headers), ...acceptOf("POST") };
    const signal = AbortSignal.timeout(answerMs);
    const options = { method: "POST", headers: all, body: text, signal } as const;
    const answer = await this.#upstream.send(options).catch(() => undefined);
    answer?.on("error", () => undefined).resume();
  }
}

async function passJson(relay: Relay, text: string, ports: Ports): Promise<void> {
  if (text.trim() !== "") await relay.fromServer(messages.readMessage(text), ports);
}

function selectHeaders(headers: IncomingMessage["headers"]): Headers {
  const kept = Object.entries(headers).filter(([name, value]) => passedHeaders.test(name) && typeof value === "string");
  return Object.fromEntries(kept.map(([name, value]) => [name, String(value)]));
}

/** The session and the protocol's version of the client's request, with the method of another message. */
function ownHeaders(headers: Headers, method?: string): Headers {
  const kept = Object.entries(headers).filter(([name]) => /^mcp-(?:session-id|protocol-version)$/.test(name));
  const stated = headers["mcp-method"] !== undefined && method !== undefined ? { "mcp-method": method } : {};
  return { ...Object.fromEntries(kept), ...stated };
}

function acceptOf(method: "POST" | "GET" | "DELETE"): Headers {
  if (method === "POST") return { accept: "application/json, text/event-stream", "content-type": "application/json" };
  return { accept: method === "GET" ? "text/event-stream" : "*/*" };
}

/** Answers that say something about the proxy's own key or address, which is not the client's affair. */
function problemOf(status: number): string | undefined {
  if (status >= 300 && status < 400)
    return `the MCP server answered with a redirect (${status}), which is never followed`;
  return status === 401 || status === 403 ? `the MCP server refused the proxy (${status})` : undefined;
}
