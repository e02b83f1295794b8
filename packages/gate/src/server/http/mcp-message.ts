/**
 * Reads what a client sends to an MCP server over Streamable HTTP.
 *
 * The server reads the same bytes later, with a reader that nobody here knows. So a message that two programs could read
 * differently is refused, and so is each method that is not listed. `packages/agent/src/mcp/channels.ts` has the list of
 * the proxy, which can also change messages.
 */
import type { IncomingHttpHeaders } from "node:http";
import {
  bad,
  Decimal,
  good,
  misreadAs,
  quote,
  readJson,
  type Json,
  type JsonDocument,
  type JsonObject,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { readBodyText } from "../request/body.ts";
import { escapeName } from "../dialects/dialect.ts";

export interface McpMessage {
  /** Null for a notification, and for a message whose id cannot be read. */
  readonly id: string | number | null;
  readonly method: string | undefined;
  /** The call that the gate judges; undefined if the message carries none. Or one sentence: why the message is refused. */
  readonly call: Result<McpCall | undefined, string>;
}

export interface McpCall {
  /** The tool's name at the gate. */
  readonly tool: string;
  /** The text of the input, as received. */
  readonly input: string;
}

/** Requests that carry data to the server: the members of their params, and the channel's name at the gate. */
const judged: ReadonlyMap<string, { readonly members: readonly string[]; readonly channel?: string }> = new Map([
  ["tools/call", { members: ["name", "arguments"] }],
  ["resources/read", { members: ["uri"], channel: "resources.read" }],
  ["prompts/get", { members: ["name", "arguments"], channel: "prompts.get" }],
  ["completion/complete", { members: ["ref", "argument", "context"], channel: "completion" }],
]);

const harmlessRequests: ReadonlySet<string> = new Set([
  "initialize",
  "ping",
  "server/discover",
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
]);

const harmlessNotifications: ReadonlySet<string> = new Set([
  "notifications/initialized",
  "notifications/cancelled",
  "notifications/progress",
]);

/** @param server the server's part of its tools' names */
export function readMcpMessage(server: string, body: Buffer, headers: IncomingHttpHeaders): McpMessage {
  const unreadable = (why: string): McpMessage => ({ id: null, method: undefined, call: bad(why) });
  const text = readBodyText(body);
  if (typeof text !== "string") return unreadable(`the message is not UTF-8: ${text.detail}`);
  const read = readJson(text);
  if (!read.ok) {
    const { line, column, sentence } = read.problem;
    return unreadable(`the message is not one strict JSON object: line ${line}, column ${column}: ${sentence}`);
  }
  const { members } = read.value;
  const [id, method] = [idIn(members) ?? null, members.get("method")];
  const why = faultOf(members);
  if (why !== undefined || typeof method !== "string") return { ...unreadable(why ?? "it has no method"), id };
  const params = paramsOf(read.value);
  const fault = headerFault(method, params.members, headers);
  return { id, method, call: fault === undefined ? toMcpCall(server, method, id, params) : bad(fault) };
}

function idIn(members: JsonObject): string | number | undefined {
  const id = members.get("id");
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}

/** A member that a message does not have could be another spelling of one that it has: some readers fold letters. */
function faultOf(members: JsonObject): string | undefined {
  if (members.has("result") || members.has("error")) return "an answer to a question of the server does not pass";
  const stranger = [...members.keys()].find((name) => !["jsonrpc", "id", "method", "params"].includes(name));
  if (stranger !== undefined) return `a message of MCP has no member ${quote(stranger)}`;
  if (members.get("jsonrpc") !== "2.0") return "the message is not JSON-RPC 2.0";
  if (typeof members.get("method") !== "string") return "the method is missing or not a text";
  if (members.has("id") && idIn(members) === undefined) return "the id is neither a text nor a whole number";
  return members.has("params") && !(members.get("params") instanceof Map) ? "the params are not an object" : undefined;
}

const none: JsonDocument = { members: new Map(), source: () => undefined };

/** The params as a document of their own, which knows the received text of each member. */
function paramsOf(message: JsonDocument): JsonDocument {
  const read = readJson(message.source("params") ?? "{}");
  return read.ok ? read.value : none;
}

function toMcpCall(
  server: string,
  method: string,
  id: string | number | null,
  params: JsonDocument,
): Result<McpCall | undefined, string> {
  const isHarmless = (id === null ? harmlessNotifications : harmlessRequests).has(method);
  if (isHarmless) return good(undefined);
  const found = id === null ? undefined : judged.get(method);
  if (found === undefined) return bad(`the method ${quote(method)} is not one that the gate passes on`);
  const names = [...params.members.keys()].filter((name) => name !== "_meta");
  const stranger = names.find((name) => !found.members.includes(name));
  if (stranger !== undefined) return bad(`the params of ${quote(method)} have an unknown member ${quote(stranger)}`);
  const number = names.map((name) => misreadIn(params.members.get(name))).find((each) => each !== undefined);
  if (number !== undefined) return bad(`programs read the number ${quote(number)} differently; send it as text`);
  if (found.channel !== undefined) {
    const texts = names.map((name) => `${JSON.stringify(name)}:${params.source(name)}`);
    return good({ tool: `${server}.mcp.${found.channel}`, input: `{${texts.join(",")}}` });
  }
  const [name, input] = [params.members.get("name"), params.members.get("arguments") ?? new Map()];
  if (typeof name !== "string" || name === "" || !(input instanceof Map))
    return bad("a call needs the tool's name, and its arguments are an object");
  return good({ tool: `${server}.${escapeName(name)}`, input: params.source("arguments") ?? "{}" });
}

/** Returns a number that a program with IEEE doubles reads as another one. The server's program may be one. */
function misreadIn(value: Json | undefined): string | undefined {
  if (value instanceof Decimal) return misreadAs(value) === undefined ? undefined : value.text;
  const inner = value instanceof Map ? [...value.values()] : Array.isArray(value) ? value : [];
  for (const each of inner as readonly Json[]) {
    const found = misreadIn(each);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A program in between may act on the headers, and the server on the body. Two headers of one name never match. */
function headerFault(method: string, params: JsonObject, headers: IncomingHttpHeaders): string | undefined {
  const session = headers["mcp-session-id"]?.toString();
  // Node joins repeated headers with a space, and programs differ in the one that they read.
  if (session !== undefined && !/^[\x21-\x7e]+$/.test(session))
    return "the header mcp-session-id is not one id of visible ASCII";
  const meta = params.get("_meta");
  const version = meta instanceof Map ? meta.get("io.modelcontextprotocol/protocolVersion") : undefined;
  const stated: readonly (readonly [name: string, value: Json | undefined])[] = [
    ["mcp-method", method],
    ["mcp-name", params.get("name") ?? params.get("uri")],
    ["mcp-protocol-version", version ?? headers["mcp-protocol-version"]?.toString()],
  ];
  const judgedTexts = new Set(textsIn(params.get("arguments")));
  const isOther = ([name, value]: (typeof stated)[number]): boolean =>
    headers[name] !== undefined && decodeHeader(headers[name]) !== value;
  const isUnjudged = ([name, value]: [string, unknown]): boolean =>
    name.startsWith("mcp-param-") && !judgedTexts.has(decodeHeader(value) ?? "");
  const [name] = stated.find(isOther) ?? Object.entries(headers).find(isUnjudged) ?? [];
  return name === undefined ? undefined : `the header ${name} does not equal the body`;
}

/** The texts that arguments have as headers. Nobody here knows which argument a header repeats. */
function textsIn(value: Json | undefined): readonly string[] {
  if (value instanceof Map) return [...value.values()].flatMap(textsIn);
  if (value instanceof Decimal) return [value.text];
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? [String(value)] : [];
}

/** MCP sends a text that a header cannot have as Base64 of its UTF-8 bytes. */
function decodeHeader(header: unknown): string | undefined {
  if (typeof header !== "string") return undefined;
  const [, base64] = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(header) ?? [];
  return base64 === undefined ? header : Buffer.from(base64, "base64").toString("utf8");
}
