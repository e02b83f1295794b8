/** Requests to a server with the Streamable HTTP transport. Redirects are never followed: they could take the key away. */
import { Agent, request as requestHttp, type IncomingMessage } from "node:http";
import { Agent as TlsAgent, request as requestHttps } from "node:https";
import { SseReader, type SseEvent } from "./sse.ts";

/** Bytes of an answer that is one JSON text. */
const answerBytesMax = 16_777_216;
/** Bytes of an answer that is neither JSON nor a stream. */
const otherBytesMax = 65_536;
/**
 * How long a connection may be idle before it is closed. Servers close idle connections too, some after 5 s, and a call
 * that is sent at that moment is lost: nobody knows if it ran, so it cannot be sent again.
 */
const idleMs = 1000;
/** How long a server may take until it starts to answer a question of the proxy. */
export const answerMs = 30_000;

export class UpstreamError extends Error {}

export interface UpstreamRequest {
  readonly method: "POST" | "GET" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

export type UpstreamAnswer = IncomingMessage & { readonly statusCode: number };

export class Upstream {
  readonly #address: URL;
  readonly #key: string | null;
  readonly #agent: Agent;

  constructor(address: URL, key: string | null) {
    this.#address = address;
    this.#key = key;
    const options = { keepAlive: true, timeout: idleMs }; // The timeout ends only idle connections.
    this.#agent = address.protocol === "https:" ? new TlsAgent(options) : new Agent(options);
  }

  /** @throws UpstreamError if no answer starts */
  send({ method, headers, body, signal }: UpstreamRequest): Promise<UpstreamAnswer> {
    return new Promise((resolve, reject) => {
      const all: Record<string, string | number> = { ...headers, "accept-encoding": "identity" };
      if (this.#key !== null) all["authorization"] = `Bearer ${this.#key}`;
      if (body !== undefined) all["content-length"] = Buffer.byteLength(body);
      const send = this.#address.protocol === "https:" ? requestHttps : requestHttp;
      const options = { method, headers: all, agent: this.#agent, ...(signal === undefined ? {} : { signal }) };
      const sending = send(this.#address, options);
      sending.on("response", (answer) => resolve(Object.assign(answer, { statusCode: answer.statusCode ?? 0 })));
      sending.on("error", () => reject(new UpstreamError("the MCP server could not be reached")));
      sending.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

export function typeOf(answer: IncomingMessage): "json" | "events" | "other" {
  const type = (answer.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase();
  return type === "application/json" ? "json" : type === "text/event-stream" ? "events" : "other";
}

/** @throws UpstreamError for a text that is too long, broken or not UTF-8 */
export async function readAnswerText(answer: IncomingMessage): Promise<string> {
  const max = typeOf(answer) === "json" ? answerBytesMax : otherBytesMax;
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of answer) {
      length += piece.length;
      if (length > max) throw new RangeError("too long");
      pieces.push(piece);
    }
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(pieces));
  } catch {
    answer.destroy();
    throw new UpstreamError("the MCP server's answer is broken or too long");
  }
}

/** @throws UpstreamError if the stream breaks, an event is too long, or it is not UTF-8 */
export async function* eventsOf(answer: IncomingMessage): AsyncGenerator<SseEvent> {
  const reader = new SseReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    for await (const piece of answer) yield* reader.read(decoder.decode(piece, { stream: true }));
  } catch {
    throw new UpstreamError("the MCP server's stream broke");
  } finally {
    answer.destroy();
  }
}
