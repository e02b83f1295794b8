import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";

/** A whole answer. */
export interface ServerReply {
  readonly status: number;
  /** The media type, without parameters. */
  readonly type: string;
  readonly text: string;
}

export interface SendOptions {
  /** Sent by POST; undefined means GET. */
  readonly body?: string | undefined;
  readonly timeoutMs: number;
  /** Ends the request earlier. */
  readonly signal: AbortSignal;
}

/** More than 16 cosignatures, each of the longest kind. */
const replyBytesMax = 128 * 1024;

/**
 * Sends one request to a server that may be slow, broken or hostile. It takes a bounded time, reads a bounded answer,
 * and follows no redirect.
 *
 * @returns the reply, whatever its status, or why there is none
 */
export async function send(
  url: string,
  { body, timeoutMs, signal }: SendOptions,
): Promise<Result<ServerReply, string>> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method: body === undefined ? "GET" : "POST",
      ...(body === undefined ? {} : { body, headers: { "content-type": "text/plain; charset=utf-8" } }),
      redirect: "manual",
      signal: AbortSignal.any([late, signal]),
    });
    const { status, headers } = response;
    if (status >= 300 && status < 400) {
      await response.body?.cancel();
      return bad(`it answers ${status}, a redirect: set the final URL`);
    }
    const text = await readAll(response);
    if (text === undefined) return bad(`it answers more than ${replyBytesMax / 1024} KiB`);
    const [type = ""] = (headers.get("content-type") ?? "").split(";");
    return good({ status, type: type.trim().toLowerCase(), text });
  } catch (error) {
    if (signal.aborted) return bad("it does not answer while the gate starts or stops");
    if (late.aborted) return bad(`it does not answer within ${timeoutMs / 1000} s`);
    return bad(`it cannot be reached (${reasonOf(error)})`);
  }
}

async function readAll({ body }: Response): Promise<string | undefined> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop ends the connection too.
  for await (const piece of body ?? []) {
    bytes += piece.length;
    if (bytes > replyBytesMax) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** Returns a code such as ECONNREFUSED, which `fetch` hides behind a general error. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error;
  return (cause as NodeJS.ErrnoException | undefined)?.code ?? (cause as Error | undefined)?.message ?? message;
}

/** Returns the start of a reply, for use in a message. */
export function replyText({ status, text }: ServerReply): string {
  const said = text
    .slice(0, 120)
    .replaceAll(/[^\x20-\x7e]+/g, " ")
    .trim();
  return said === "" ? `it answers ${status}` : `it answers ${status}: ${said}`;
}
