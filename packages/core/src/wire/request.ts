import { readJson, utf8Bytes, type Json, type JsonObject } from "./json.ts";
import { limits } from "./limits.ts";
import { didYouMean } from "./nearest.ts";
import { quote } from "./quote.ts";
import { refuse, type Refusal } from "./refusals.ts";
import { bad, good, type Result } from "./result.ts";

/** A proposed action (specification 2.1), as it was sent. */
export interface CheckRequest {
  /** The name that was sent, until the contracts resolve it; then the tool's own name. */
  readonly toolName: string;
  /** The alias that was sent, if the contracts have resolved it to the tool's own name; else undefined. */
  readonly alias?: string | undefined;
  readonly toolInput: JsonObject;
  /** Null if the caller named none: the check does not belong to a session. */
  readonly sessionId: string | null;
  /** The facts of the calling platform; null if there are none. */
  readonly platformState: JsonObject | null;
  /** The received text of the two objects, without white space outside strings: the receipt commits to it. */
  readonly inputText: string;
  readonly platformText: string | null;
  /** The id of an approval that the caller names; undefined if it names none. */
  readonly approvalId?: string | undefined;
  /** The random id of this check, 32 hex digits; undefined if the caller draws none. */
  readonly callId?: string | undefined;
}

const members = ["tool_name", "tool_input", "session_id", "platform_state", "approval", "call_id"] as const;

/**
 * Reads the body of POST /check, or refuses it with `invalid-json` or `invalid-request`.
 *
 * @param text the body, decoded from well-formed UTF-8
 */
export function parseCheckRequest(text: string): Result<CheckRequest, Refusal> {
  const document = readJson(text);
  if (!document.ok) {
    const { sentence, line, column } = document.problem;
    return bad(refuse("invalid-json", `line ${line}, column ${column}: ${sentence}`));
  }
  const body = document.value.members;
  const toolName = body.get("tool_name");
  const toolInput = body.get("tool_input");
  const sessionId = body.get("session_id");
  const platformState = body.get("platform_state") ?? null;
  const approval = body.get("approval");
  const callId = body.get("call_id");
  const problem =
    unknownMember(body) ??
    nameProblem("tool_name", toolName, limits.toolNameBytesMax) ??
    (toolInput instanceof Map ? undefined : wrongType("tool_input", "an object", toolInput)) ??
    (sessionId === undefined ? undefined : nameProblem("session_id", sessionId, limits.sessionIdBytesMax)) ??
    (platformState === null || platformState instanceof Map
      ? undefined
      : wrongType("platform_state", "an object", platformState)) ??
    approvalProblem(approval) ??
    callIdProblem(callId);
  if (problem !== undefined) return bad(refuse("invalid-request", problem));
  return good({
    toolName: toolName as string,
    toolInput: toolInput as JsonObject,
    sessionId: (sessionId as string | undefined) ?? null,
    platformState: platformState as JsonObject | null,
    inputText: document.value.source("tool_input") ?? "",
    platformText: platformState === null ? null : (document.value.source("platform_state") ?? null),
    ...(approval instanceof Map && { approvalId: (approval as JsonObject).get("id") as string }),
    ...(callId !== undefined && { callId: callId as string }),
  });
}

const approvalIdCharactersMax = 64;

function approvalProblem(approval: Json | undefined): string | undefined {
  if (approval === undefined) return undefined;
  if (!(approval instanceof Map)) return wrongType("approval", "an object", approval);
  const named: JsonObject = approval;
  const stranger = named.keys().find((name) => name !== "id");
  if (stranger !== undefined) return `"approval" has no member ${quote(stranger)}, only "id"`;
  return nameProblem("id", named.get("id"), approvalIdCharactersMax);
}

function callIdProblem(callId: Json | undefined): string | undefined {
  if (callId === undefined || (typeof callId === "string" && /^[0-9a-f]{32}$/.test(callId))) return undefined;
  return '"call_id" must be 32 lowercase hex digits, drawn at random for this check';
}

function unknownMember(body: JsonObject): string | undefined {
  for (const name of body.keys()) {
    if ((members as readonly string[]).includes(name)) continue;
    return `unknown member ${quote(name)}; ${didYouMean(name, members, `members are ${members.join(", ")}`, '"')}`;
  }
  return undefined;
}

function nameProblem(member: string, value: Json | undefined, bytesMax: number): string | undefined {
  if (typeof value !== "string") return wrongType(member, "a string", value);
  if (value.length === 0) return `"${member}" is empty`;
  if (value.includes("\0")) return `"${member}" has a NUL`;
  if (value.length * 3 > bytesMax && utf8Bytes(value) > bytesMax) return `"${member}" is over ${bytesMax} bytes`;
  return undefined;
}

function wrongType(member: string, expected: string, value: Json | undefined): string {
  if (value === undefined) return `"${member}" is missing; it must be ${expected}`;
  return `"${member}" must be ${expected}, not ${typeName(value)}`;
}

/** The JSON type of a value, with its article. */
export function typeName(value: Json): string {
  if (value === null) return "null";
  if (typeof value === "string") return "a string";
  if (typeof value === "boolean") return "a boolean";
  if (Array.isArray(value)) return "an array";
  return value instanceof Map ? "an object" : "a number";
}
