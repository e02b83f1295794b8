import type { StopScope } from "../../approvals/mod.ts";
import {
  bad,
  good,
  limits,
  quote,
  refuse,
  typeName,
  utf8Bytes,
  type Json,
  type Refusal,
  type Result,
} from "../../wire/mod.ts";
import { isSentence, readMembers, sentenceBytesMax } from "../request/body.ts";
import type { AskedStop } from "../policy/stops.ts";

const toolsMax = 50;

/** Reads the body of POST /admin/stop. */
export function readStop(received: unknown): Result<AskedStop, Refusal> {
  const body = readMembers(received, ["scope", "why", "approvals"]);
  if (!body.ok) return body;
  const scope = scopeOf(body.value.get("scope"));
  if (!scope.ok) return scope;
  const why = whyOf(body.value.get("why"));
  if (!why.ok) return why;
  if (why.value.trim() === "") return bad(invalid('"why" must say why: the reason of each blocked call repeats it'));
  const approvals = body.value.get("approvals");
  if (approvals !== undefined && approvals !== "keep")
    return bad(invalid('"approvals" must be "keep", or absent to cancel the approvals that the stop covers'));
  return good({ scope: scope.value, why: why.value, approvals: approvals ?? "end" });
}

/** Reads the body of POST /admin/stop/lift. */
export function readLift(received: unknown): Result<Pick<AskedStop, "scope" | "why">, Refusal> {
  const body = readMembers(received, ["scope", "why"]);
  if (!body.ok) return body;
  const scope = scopeOf(body.value.get("scope"), 2 * toolsMax); // GET /stop lists own names beside aliases.
  if (!scope.ok) return scope;
  const why = whyOf(body.value.get("why") ?? "");
  return why.ok ? good({ scope: scope.value, why: why.value }) : why;
}

function whyOf(value: Json | undefined): Result<string, Refusal> {
  if (isSentence(value)) return good(value);
  return bad(invalid(`"why" must be at most ${sentenceBytesMax} bytes of visible characters on one line`));
}

const scopeForms = '"all", {"tools": [...]}, {"key": "..."} or {"session": {"key": "...", "id": "..."}}';

function scopeOf(value: Json | undefined, most: number = toolsMax): Result<StopScope, Refusal> {
  if (value === "all") return good("all");
  if (value instanceof Map && value.size === 1) {
    const [[name, member]] = [...value] as [[string, Json]];
    if (name === "tools") return toolsOf(member, most);
    if (name === "key" && isName(member, limits.toolNameBytesMax)) return good({ key: member });
    if (name === "session" && member instanceof Map && member.size === 2) {
      const [key, id] = [member.get("key"), member.get("id")];
      if (isName(key, limits.toolNameBytesMax) && isName(id, limits.sessionIdBytesMax))
        return good({ session: { id, key } });
    }
  }
  return bad(invalid(`"scope" must be ${scopeForms}${value === undefined ? ": it is missing" : ""}`));
}

function toolsOf(value: Json, most: number): Result<StopScope, Refusal> {
  if (!Array.isArray(value) || value.length === 0 || value.length > most)
    return bad(invalid(`"tools" must be a list of 1 to ${most} names of tools, not ${typeName(value)}`));
  const names = value as readonly Json[];
  const wrong = names.find((name) => !isName(name, limits.toolNameBytesMax));
  if (wrong !== undefined || new Set(names).size < names.length)
    return bad(invalid('"tools" must name each tool once, by its whole name'));
  const pattern = (names as readonly string[]).find((name) => name.includes("*"));
  if (pattern !== undefined) return bad(invalid(`${quote(pattern)} is a pattern: a stop names whole tools`));
  return good({ tools: names as readonly string[] });
}

function isName(value: Json | undefined, bytesMax: number): value is string {
  // No key, tool or session has a NUL, and PostgreSQL has no text with one.
  return typeof value === "string" && value !== "" && !value.includes("\0") && utf8Bytes(value) <= bytesMax;
}

function invalid(sentence: string): Refusal {
  return refuse("invalid-request", sentence);
}
