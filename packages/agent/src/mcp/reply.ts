/** One answer of the listener: a JSON text, or a stream of events. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { eventText, type SseEvent } from "./sse.ts";

/** Headers of the server's answer that the client needs. */
const passedHeaders = ["mcp-session-id", "retry-after", "allow"];

/** How the proxy itself starts a notification. */
const ownNotification = '{"jsonrpc":"2.0","method":';

export class HttpReply {
  readonly #response: ServerResponse;
  readonly #acceptsEvents: boolean;
  #status = 200;
  #headers: Record<string, string> = {};

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#response = response;
    this.#acceptsEvents = /text\/event-stream/i.test(request.headers.accept ?? "");
  }

  /** Takes status and headers of the server's answer, if nothing has left yet. */
  resemble(answer: IncomingMessage): void {
    this.#status = answer.statusCode ?? 200;
    for (const name of passedHeaders) {
      const value = answer.headers[name];
      if (typeof value === "string") this.#headers[name] = value;
    }
  }

  /** Sends a message of the proxy: a notification starts a stream, anything else is the last message. */
  message(text: string): void {
    if (!text.startsWith(ownNotification)) this.last(text);
    else if (this.#acceptsEvents) this.event({ data: text });
  }

  event(event: Partial<SseEvent>): void {
    if (this.#response.writableEnded || this.#response.destroyed) return;
    this.start();
    this.#response.write(eventText(event));
  }

  /** Starts a stream, so that the client knows that the server has started. */
  start(): void {
    if (this.#response.headersSent) return;
    const headers = { "content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no" };
    this.#response.writeHead(this.#status, { ...this.#headers, ...headers });
    this.#response.flushHeaders();
  }

  /** Sends a JSON-RPC message, and nothing after it. */
  last(text: string, status: number = this.#status): void {
    if (this.#response.headersSent) {
      this.event({ data: text });
      return this.end();
    }
    this.#response.writeHead(status, { ...this.#headers, "content-type": "application/json" });
    this.#response.end(text);
  }

  /** Sends an answer without a message. */
  plain(text = "", status: number = this.#status): void {
    if (this.#response.headersSent) return this.end();
    const authenticate: Record<string, string> = status === 401 ? { "www-authenticate": "Bearer" } : {};
    const type: Record<string, string> = text === "" ? {} : { "content-type": "text/plain; charset=utf-8" };
    this.#response.writeHead(status, { ...this.#headers, ...type, ...authenticate });
    this.#response.end(text);
  }

  end(): void {
    if (!this.#response.headersSent) this.#response.writeHead(this.#status, this.#headers);
    this.#response.end();
  }
}
