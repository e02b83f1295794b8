import type { StopScope } from "../../../../core/src/approvals/mod.ts";
import {
  limits,
  quote,
  typeName,
  utf8Bytes,
  type Json,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { isSentence, readBody, sentenceBytesMax, BodyError } from "../request/body.ts";
import type { StopRequest } from "../policy/stops.ts";

const toolsMax = 50;

/** Reads the body of POST /admin/stop. */
export function readStop(received: unknown): Result<StopRequest, Refusal> {
  return readBody(received, ["scope", "why", "approvals"], (members) => {
    const wanted = { scope: scopeOf(members.get("scope")), why: whyOf(members.get("why")) };
    if (wanted.why.trim() === "") throw new BodyError('"why" must say why: the reason of each blocked call repeats it');
    const approvals = members.get("approvals") ?? "end";
    if (members.has("approvals") && approvals !== "keep")
      throw new BodyError('"approvals" must be "keep", or absent to cancel the approvals that the stop covers');
    return { ...wanted, approvals: approvals === "keep" ? "keep" : "end" };
  });
}

/** Reads the body of POST /admin/stop/lift. */
export function readLift(received: unknown): Result<Pick<StopRequest, "scope" | "why">, Refusal> {
  return readBody(received, ["scope", "why"], (members) => {
    const scope = scopeOf(members.get("scope"), 2 * toolsMax); // GET /stop lists own names beside aliases.
    return { scope, why: whyOf(members.get("why") ?? "") };
  });
}

function whyOf(value: Json | undefined): string {
  if (isSentence(value)) return value;
  throw new BodyError(`"why" must be at most ${sentenceBytesMax} bytes of visible characters on one line`);
}

const scopeForms = '"all", {"tools": [...]}, {"key": "..."} or {"session": {"key": "...", "id": "..."}}';

function scopeOf(value: Json | undefined, most: number = toolsMax): StopScope {
  if (value === "all") return "all";
  if (value instanceof Map && value.size === 1) {
    const [[name, member]] = [...value] as [[string, Json]];
    if (name === "tools") return parseToolsScope(member, most);
    if (name === "key" && isName(member, limits.toolNameBytesMax)) return { key: member };
    if (name === "session" && member instanceof Map && member.size === 2) {
      const [key, id] = [member.get("key"), member.get("id")];
      if (isName(key, limits.toolNameBytesMax) && isName(id, limits.sessionIdBytesMax)) return { session: { id, key } };
    }
  }
  throw new BodyError(`"scope" must be ${scopeForms}${value === undefined ? ": it is missing" : ""}`);
}

function parseToolsScope(value: Json, most: number): StopScope {
  if (!Array.isArray(value) || value.length === 0 || value.length > most)
    throw new BodyError(`"tools" must be a list of 1 to ${most} names of tools, not ${typeName(value)}`);
  const names = value as readonly Json[];
  const wrong = names.find((name) => !isName(name, limits.toolNameBytesMax));
  if (wrong !== undefined || new Set(names).size < names.length)
    throw new BodyError('"tools" must name each tool once, by its whole name');
  const pattern = (names as readonly string[]).find((name) => name.includes("*"));
  if (pattern !== undefined) throw new BodyError(`${quote(pattern)} is a pattern: a stop names whole tools`);
  return { tools: names as readonly string[] };
}

function isName(value: Json | undefined, bytesMax: number): value is string {
  // No key, tool or session has a NUL, and PostgreSQL has no text with one.
  return typeof value === "string" && value !== "" && !value.includes("\0") && utf8Bytes(value) <= bytesMax;
}
