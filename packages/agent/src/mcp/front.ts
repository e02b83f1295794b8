/** Who may use the listener, and what its requests must look like. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isObject, objectIn, textIn } from "./json.ts";
import { errors, MessageError, readMessage, type RpcMessage } from "./message.ts";

/** A call is at most 256 KiB at the gate; an answer of a client can contain an image. */
const bodyBytesMax = 4_194_304;

/** The request is refused with this status before the server sees it. */
export class HttpRefusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Refuses callers from elsewhere: a browser's page that resolves to this machine, and programs without the key.
 *
 * @throws HttpRefusal
 */
export function refuseStrangers({ headers, url }: IncomingMessage, port: number, key: string): void {
  const hosts = ["127.0.0.1", "localhost", "[::1]"].map((name) => `${name}:${port}`);
  const { host = "", origin, authorization = "" } = headers;
  if (!hosts.includes(host)) throw new HttpRefusal(403, "the Host header is not this listener's");
  if (origin !== undefined && !hosts.some((each) => origin === `http://${each}`))
    throw new HttpRefusal(403, "requests of other origins are refused");
  if (!isSame(authorization, `Bearer ${key}`)) throw new HttpRefusal(401, "the bearer token is missing or wrong");
  if (url?.split("?", 1)[0] !== "/mcp") throw new HttpRefusal(404, "the only path is /mcp");
}

/** Takes the same time for any two texts. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

/**
 * Reads the message of a POST.
 *
 * @throws HttpRefusal for a body that is not a message, MessageError for a message that does not pass
 */
export async function readPost(request: IncomingMessage): Promise<RpcMessage> {
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers["content-type"] ?? ""))
    throw new HttpRefusal(415, "the content type must be application/json");
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request) {
    length += piece.length;
    if (length > bodyBytesMax) throw new HttpRefusal(413, `the body is over ${bodyBytesMax} bytes`);
    pieces.push(piece);
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(pieces));
  } catch {
    throw new HttpRefusal(400, "the body is not UTF-8");
  }
  const message = readMessage(text);
  refuseOtherHeaders(message, request.headers);
  return message;
}

/** A server in between may act on the headers, and the last one on the body. */
function refuseOtherHeaders(message: RpcMessage, headers: IncomingMessage["headers"]): void {
  const id = message.kind === "notification" ? null : message.id;
  const params = message.kind === "response" ? undefined : message.params;
  const version = textIn(objectIn(params, "_meta"), "io.modelcontextprotocol/protocolVersion");
  const pairs = [
    ["Mcp-Method", message.kind === "response" ? undefined : message.method],
    ["Mcp-Name", textIn(params, "name") ?? textIn(params, "uri")],
    ["MCP-Protocol-Version", version ?? headers["mcp-protocol-version"]],
  ] as const;
  const isOther = ([name, stated]: (typeof pairs)[number]): boolean => {
    const header = headers[name.toLowerCase()];
    return header !== undefined && !(typeof header === "string" && decodeHeader(header) === stated);
  };
  const judged = new Set(textsIn(objectIn(params, "arguments")));
  const isUnjudged = ([name, header]: [string, unknown]): boolean =>
    name.startsWith("mcp-param-") && !(typeof header === "string" && judged.has(decodeHeader(header)));
  const [name] = pairs.find(isOther) ?? Object.entries(headers).find(isUnjudged) ?? [];
  if (name !== undefined) throw new MessageError(`Svc: the ${name} header does not equal the body.`, errors.header, id);
}

/** The texts that arguments have as headers. The proxy does not know which argument a header repeats. */
function textsIn(value: unknown): readonly string[] {
  if (isObject(value)) return Object.values(value).flatMap(textsIn);
  return ["string", "number", "boolean"].includes(typeof value) ? [String(value)] : [];
}

/** A value that a header cannot have is sent as Base64 of its UTF-8 bytes. */
function decodeHeader(header: string): string {
  const [, base64] = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(header) ?? [];
  return base64 === undefined ? header : Buffer.from(base64, "base64").toString("utf8");
}
