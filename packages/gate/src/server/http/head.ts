import type { IncomingMessage } from "node:http";
import { limits, refuse, type Refusal } from "../../../../core/src/wire/mod.ts";

/** Returns why a request is refused for its head alone, on any route; undefined if it is not. */
export function refusalForHead(request: IncomingMessage): Refusal | undefined {
  if (headBytes(request) > limits.headerBytesMax) return headTooLarge();
  const oddity = oddityOf(request);
  return oddity === undefined ? undefined : refuse("bad-http", oddity);
}

export function headTooLarge(): Refusal {
  return refuse("headers-too-large", `the headers and the request line must not exceed ${limits.headerBytesMax} bytes`);
}

/**
 * Returns the bytes of a request's head, from the method through the empty line, without spaces around the values of
 * headers. The server's own limit only counts target, names and values, so this limit is always reached first.
 */
function headBytes({ method = "", url = "", rawHeaders }: IncomingMessage): number {
  let bytes = method.length + url.length + "  HTTP/1.1\r\n\r\n".length;
  // A name and its colon, a value and its line end: 3 extra bytes for each pair of texts.
  for (const text of rawHeaders) bytes += text.length;
  return bytes + (rawHeaders.length / 2) * ":\r\n".length;
}

/** Finds heads that the server's parser accepts, but that two readers could understand differently. */
function oddityOf(request: IncomingMessage): string | undefined {
  const { headers, httpVersion, rawHeaders, url } = request;
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "the gate speaks HTTP/1.1";
  if (headers.host === undefined && httpVersion === "1.1") return "the Host header is missing";
  if (url?.includes("#") === true) return "the request's target must not have a fragment";
  if (isFramingLost(request))
    return "HTTP/1.0 does not support Transfer-Encoding: send Content-Length, or use HTTP/1.1";
  const twice = repeatedHeader(rawHeaders);
  return twice === undefined ? undefined : `the header ${twice} appears twice`;
}

/** Connections on which the end of a message is unknown. */
const lost = new WeakSet<object>();

/**
 * Returns true if a message of HTTP/1.0 with Transfer-Encoding came on this connection. Its end is unknown, so nothing
 * after it is read as a request, and the connection is closed (RFC 9112, section 6.1).
 */
export function isFramingLost({ headers, httpVersion, socket }: IncomingMessage): boolean {
  if (httpVersion === "1.0" && headers["transfer-encoding"] !== undefined) lost.add(socket);
  return lost.has(socket);
}

/** Headers that must not be repeated, by the length of their names. No two names have the same length. */
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

/** Returns why the body of a POST is refused for its headers. */
export function refusalForBody({ headers }: IncomingMessage): Refusal | undefined {
  if (!isJson(headers["content-type"])) {
    return refuse(
      "unsupported-media-type",
      "the Content-Type is not application/json: send a JSON object with Content-Type: application/json",
    );
  }
  const coding = headers["transfer-encoding"];
  const isChunked = coding === undefined || coding === "chunked" || coding.toLowerCase() === "chunked";
  if (headers["content-encoding"] === undefined && isChunked) return undefined;
  return refuse(
    "unsupported-media-type",
    "the body is encoded: send it without Content-Encoding, and with no Transfer-Encoding other than chunked",
  );
}

function isJson(type: string | undefined): boolean {
  if (type === undefined) return false;
  return type === "application/json" || /^application\/json *(?:; *charset=(?:utf-8|"utf-8") *)?$/i.test(type);
}

/**
 * Returns true if the path has an escape, such as `%61` for `a`. No route needs one. A proxy that closes a path
 * compares it as text, so the gate must not read two texts as one path.
 */
export function hasEscapedPath(url: string): boolean {
  const at = url.indexOf("%");
  return at >= 0 && !url.slice(0, at).includes("?");
}
