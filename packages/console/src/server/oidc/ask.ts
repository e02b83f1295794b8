import { Agent as HttpAgent, request as requestHttp, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import type { CustomFetchOptions } from "openid-client";
import { isPrivateUrl } from "../../../../core/src/wire/mod.ts";

const answerBytesMax = 1_000_000;

/** The time for each request to the provider and its whole answer. */
export const askSeconds = 5;

/**
 * Sends a request to the provider instead of `fetch`: through no proxy of the environment, over plain HTTP only to this
 * machine, with a bounded answer and without redirects.
 *
 * @throws the signal's reason at the end of its time
 */
export async function askProvider(url: string, options: CustomFetchOptions): Promise<Response> {
  const target = new URL(url);
  if (!isPrivateUrl(target)) throw new Error("the provider named an address without TLS");
  const { signal, body } = options;
  try {
    const bytes = Buffer.from(await new Response(body).arrayBuffer());
    const answer = await requestTo(target, options, bytes);
    return await readAll(answer);
  } catch (error) {
    throw signal?.aborted === true ? signal.reason : error;
  }
}

function requestTo(
  target: URL,
  { method, headers, signal }: CustomFetchOptions,
  body: Buffer,
): Promise<IncomingMessage> {
  const isSecure = target.protocol === "https:";
  return new Promise((done, fail) => {
    const sent = (isSecure ? requestHttps : requestHttp)(
      target,
      {
        method,
        headers: { ...headers, connection: "close", ...(body.length > 0 && { "content-length": body.length }) },
        // An agent of its own: the shared one may take a proxy from the environment.
        agent: isSecure ? new HttpsAgent() : new HttpAgent(),
        ...(signal !== undefined && { signal }),
      },
      done,
    );
    sent.on("error", fail);
    sent.end(body);
  });
}

async function readAll(answer: IncomingMessage): Promise<Response> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer) {
    bytes += (piece as Buffer).length;
    if (bytes > answerBytesMax) throw new Error("the provider's answer is too large");
    pieces.push(piece as Buffer);
  }
  const headers = Object.entries(answer.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return new Response(bytes === 0 ? null : Buffer.concat(pieces), { status: answer.statusCode ?? 0, headers });
}
