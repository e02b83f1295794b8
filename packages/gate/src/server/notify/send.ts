import { Agent as HttpAgent, request as requestHttp, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { isIP } from "node:net";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";
import { resolveHost, type Resolve } from "./address.ts";
import type { Endpoint } from "./endpoints.ts";

export interface WebhookRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Ends the request earlier. */
  readonly signal: AbortSignal;
  /** The time for the whole request, in milliseconds. */
  readonly timeoutMs?: number;
  readonly resolve?: Resolve;
}

const timeoutMsMax = 15_000;
const answerBytesMax = 64 * 1024;

/**
 * Posts a body to an endpoint. It connects to an address that was checked, takes a bounded time, reads a bounded part of
 * the answer, and follows no redirect.
 *
 * @returns nothing if the endpoint took it; otherwise the reason, which never has an address or a secret
 */
export async function post(endpoint: Endpoint, posting: WebhookRequest): Promise<Result<void, string>> {
  const late = AbortSignal.timeout(posting.timeoutMs ?? timeoutMsMax);
  const signal = AbortSignal.any([late, posting.signal]);
  try {
    const status = await statusOf(endpoint, posting, signal);
    if (!status.ok) return status;
    if (status.value >= 200 && status.value < 300) return good(undefined);
    return bad(`it answers ${status.value}${status.value >= 300 && status.value < 400 ? ", a redirect" : ""}`);
  } catch (error) {
    if (late.aborted) return bad("it does not answer in time");
    const { code } = error as NodeJS.ErrnoException;
    return bad(`it cannot be reached (${typeof code === "string" && /^[A-Z0-9_]+$/.test(code) ? code : "no code"})`);
  }
}

async function statusOf(
  { url, allowPrivate }: Endpoint,
  { body, headers, resolve }: WebhookRequest,
  signal: AbortSignal,
): Promise<Result<number, string>> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error));
  });
  aborted.catch(() => undefined);
  const server = await Promise.race([resolveHost(url, allowPrivate, resolve), aborted]);
  if (!server.ok) return server;
  const { address, family } = server.value;
  const isSecure = url.protocol === "https:";
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  const response = await new Promise<IncomingMessage>((done, fail) => {
    const sent = (isSecure ? requestHttps : requestHttp)(
      {
        host: address,
        family,
        port: url.port === "" ? (isSecure ? 443 : 80) : Number(url.port),
        path: url.pathname + url.search,
        method: "POST",
        headers: { ...headers, host: url.host, "content-length": String(Buffer.byteLength(body)), connection: "close" },
        // An agent of its own: the shared one may take a proxy from the environment.
        agent: isSecure ? new HttpsAgent() : new HttpAgent(),
        ...(isSecure && isIP(hostname) === 0 && { servername: hostname }),
        signal,
      },
      done,
    );
    sent.on("error", fail);
    sent.end(body);
  });
  await readSome(response);
  return good(response.statusCode ?? 0);
}

/** Reads an answer to its end, but at most so many bytes. */
async function readSome(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  for await (const piece of response) {
    bytes += (piece as Buffer).length;
    if (bytes > answerBytesMax) return; // Leaving the loop ends the connection.
  }
}
