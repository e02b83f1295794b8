import type { IncomingMessage } from "node:http";
import { limits, refuse, type Refusal } from "../../wire/mod.ts";

/** Why a request is refused for its head alone, whatever its route; undefined if it is not. */
export function refusalForHead(request: IncomingMessage): Refusal | undefined {
  if (headBytes(request) > limits.headerBytesMax) return headTooLarge();
  const oddity = oddityOf(request);
  return oddity === undefined ? undefined : refuse("bad-http", oddity);
}

export function headTooLarge(): Refusal {
  return refuse("headers-too-large", `headers and request line are at most ${limits.headerBytesMax} bytes`);
}

/**
 * The bytes of a request's head, from the method through the empty line, without spaces around the values of headers.
 * The server's own limit counts target, names and values alone, so this one is always the smaller.
 */
function headBytes({ method = "", url = "", rawHeaders }: IncomingMessage): number {
  let bytes = method.length + url.length + "  HTTP/1.1\r\n\r\n".length;
  // A name and its colon, a value and its line end: 3 bytes for two texts.
  for (const text of rawHeaders) bytes += text.length;
  return bytes + (rawHeaders.length / 2) * ":\r\n".length;
}

/** Heads that the server's parser accepts, but that two readers could understand differently. */
function oddityOf(request: IncomingMessage): string | undefined {
  const { headers, httpVersion, rawHeaders, url } = request;
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "the gate speaks HTTP/1.1";
  if (headers.host === undefined && httpVersion === "1.1") return "the request names no host";
  if (url?.includes("#") === true) return "a request's target has no fragment";
  if (isFramingLost(request)) return "HTTP/1.0 has no Transfer-Encoding: send Content-Length, or HTTP/1.1";
  const twice = repeatedHeader(rawHeaders);
  return twice === undefined ? undefined : `the header ${twice} stands twice`;
}

/** Connections on which nobody can know where a message ended. */
const lost = new WeakSet<object>();

/**
 * Did a message of HTTP/1.0 with Transfer-Encoding come on this connection? Nobody can know where it ends, so nothing
 * after it is read as a request, and the connection is closed (RFC 9112, section 6.1).
 */
export function isFramingLost({ headers, httpVersion, socket }: IncomingMessage): boolean {
  if (httpVersion === "1.0" && headers["transfer-encoding"] !== undefined) lost.add(socket);
  return lost.has(socket);
}

/** Headers of which the first and the last could be taken, by their length: no two are of one. */
const singleHeaders: ReadonlyMap<number, string> = new Map(
  ["host", "content-type", "authorization", "content-encoding"].map((name) => [name.length, name]),
);

function repeatedHeader(rawHeaders: readonly string[]): string | undefined {
  let seen = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    const single = singleHeaders.get(name.length);
    if (single === undefined || name.toLowerCase() !== single) continue;
    const bit = 1 << name.length;
    if ((seen & bit) !== 0) return single;
    seen |= bit;
  }
  return undefined;
}

/** Why the body of a check or an act is refused for its head. */
export function refusalForBody({ headers }: IncomingMessage): Refusal | undefined {
  if (!isJson(headers["content-type"])) {
    return refuse("unsupported-media-type", "send a JSON object with Content-Type: application/json");
  }
  const coding = headers["transfer-encoding"];
  const isChunked = coding === undefined || coding === "chunked" || coding.toLowerCase() === "chunked";
  if (headers["content-encoding"] === undefined && isChunked) return undefined;
  return refuse(
    "unsupported-media-type",
    "the body is encoded; send it as it is, without Content-Encoding and without Transfer-Encoding other than chunked",
  );
}

function isJson(type: string | undefined): boolean {
  if (type === undefined) return false;
  return type === "application/json" || /^application\/json *(?:; *charset=(?:utf-8|"utf-8") *)?$/i.test(type);
}

/**
 * Does the path have an escape, such as `%61` for `a`? No route needs one. A proxy that closes a path compares it as
 * text, so the gate must not read two texts as one path.
 */
export function hasEscapedPath(url: string): boolean {
  const at = url.indexOf("%");
  return at >= 0 && !url.slice(0, at).includes("?");
}
