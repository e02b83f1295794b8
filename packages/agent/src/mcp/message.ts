/** JSON-RPC messages as MCP has them, and the answers that the proxy gives itself. */
import { isObject, JsonError, objectIn, readJson, type JsonRecord } from "./json.ts";

export type MessageId = string | number;

export interface RpcRequest {
  readonly kind: "request";
  readonly id: MessageId;
  readonly method: string;
  readonly params: JsonRecord;
  /** The message as it came, in one line. */
  readonly text: string;
}

export interface RpcNotification {
  readonly kind: "notification";
  readonly method: string;
  readonly params: JsonRecord;
  readonly text: string;
}

export interface RpcResponse {
  readonly kind: "response";
  /** Null if an error answers a message whose id the other side could not read. */
  readonly id: MessageId | null;
  readonly result: JsonRecord | undefined;
  readonly error: JsonRecord | undefined;
  readonly text: string;
}

export type RpcMessage = RpcRequest | RpcNotification | RpcResponse;

export const errors = {
  parse: -32700,
  invalid: -32600,
  method: -32601,
  params: -32602,
  internal: -32603,
  /** The specification's `HeaderMismatch`. */
  header: -32020,
  /** For refusals of the gate: outside the range that JSON-RPC reserves. */
  refused: -31999,
} as const;

/** A text that the proxy does not pass on. */
export class MessageError extends Error {
  readonly code: number;
  /** The id of the request, if it can be read. */
  readonly id: MessageId | null;

  constructor(message: string, code: number, id: MessageId | null) {
    super(message);
    this.code = code;
    this.id = id;
  }
}

const shapes = [
  { kind: "request", members: ["jsonrpc", "id", "method", "params"] },
  { kind: "response", members: ["jsonrpc", "id", "result"] },
  { kind: "response", members: ["jsonrpc", "id", "error"] },
] as const;

/** Members of `params` and of `result` that decide what passes. Some programs read them in any case of letters. */
const knownMembers: readonly string[] = [
  ..."name arguments _meta task inputResponses requestState uri ref argument context requestId notifications".split(
    " ",
  ),
  ..."tools instructions capabilities resultType inputRequests".split(" "),
];
const foldedMembers: ReadonlySet<string> = new Set(knownMembers.map(foldCase));

/**
 * Reads one message.
 *
 * @throws MessageError for a batch, a repeated member, a member that a message does not have, or an unusable id
 */
export function readMessage(text: string): RpcMessage {
  let value: unknown;
  try {
    value = readJson(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new MessageError(`Svc: the message cannot be read: ${error.message}.`, errors.parse, looseId(text));
  }
  if (Array.isArray(value)) throw new MessageError("Svc: batches are refused.", errors.invalid, null);
  if (!isObject(value)) throw new MessageError("Svc: the message is not an object.", errors.invalid, null);
  const why = faultOf(value);
  if (why !== undefined) throw new MessageError(`Svc: the message is refused: ${why}.`, errors.invalid, idIn(value));
  return toRpcMessage(value, text);
}

function faultOf(value: JsonRecord): string | undefined {
  if (value["jsonrpc"] !== "2.0") return "it is not JSON-RPC 2.0";
  const names = Object.keys(value);
  if (!shapes.some(({ members }) => names.every((name) => members.some((member) => member === name))))
    return "its members are not those of a request, a response or an error";
  if ("method" in value && typeof value["method"] !== "string") return "its method is not a text";
  if ("id" in value && idIn(value) === null && !("error" in value && value["id"] === null))
    return "its id is neither a text nor an exact whole number";
  for (const name of ["params", "result", "error"]) {
    if (name in value && !isObject(value[name])) return `its ${name} is not an object`;
  }
  if (!("method" in value || "result" in value || "error" in value)) return "it has no method, result or error";
  if ("result" in value && !("id" in value)) return "it has no id";
  const members = Object.keys(objectIn(value, "params") ?? objectIn(value, "result") ?? {});
  const isOdd = members.some((name) => !knownMembers.includes(name) && foldedMembers.has(foldCase(name)));
  return isOdd ? "a member of its params or result differs from a known member only in case" : undefined;
}

function toRpcMessage(value: JsonRecord, original: string): RpcMessage {
  // Some readers end a line at a carriage return, and would find a message in the middle of this one.
  const text = original.replaceAll(/[\r\n]/g, " ");
  const id = idIn(value);
  const method = value["method"];
  if (typeof method !== "string")
    return { kind: "response", id, result: objectIn(value, "result"), error: objectIn(value, "error"), text };
  const params = objectIn(value, "params") ?? {};
  return id === null ? { kind: "notification", method, params, text } : { kind: "request", id, method, params, text };
}

function idIn(value: unknown): MessageId | null {
  const id = isObject(value) ? value["id"] : undefined;
  return typeof id === "string" || (typeof id === "number" && Number.isSafeInteger(id)) ? id : null;
}

/** The id of a request that is refused, so that its sender does not wait for an answer. */
function looseId(text: string): MessageId | null {
  try {
    return idIn(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Go's decoder matches names in any case, and some letters fold to others: the long s is an s. */
function foldCase(name: string): string {
  return name.normalize("NFKC").toLowerCase();
}

/** Two ids are the same only if their JSON is: 1 and "1" are two. */
export function keyOf(id: MessageId): string {
  return JSON.stringify(id);
}

export function requestText({ id, method, params }: Pick<RpcRequest, "id" | "method" | "params">): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

export function notificationText(method: string, params: JsonRecord): string {
  return JSON.stringify({ jsonrpc: "2.0", method, params });
}

export function resultText(id: MessageId, result: JsonRecord): string {
  return JSON.stringify({ jsonrpc: "2.0", id, result });
}

export function errorText(id: MessageId | null, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } });
}

/** A tool's result that both generations of clients hand to the model. */
export function refusalText(id: MessageId, reason: string): string {
  return resultText(id, { resultType: "complete", content: [{ type: "text", text: reason }], isError: true });
}
