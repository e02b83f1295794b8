import { isAscii, isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import {
  bad,
  findUtf8Fault,
  good,
  nearest,
  quote,
  readJson,
  refuse,
  typeName,
  utf8Bytes,
  type Json,
  type JsonDocument,
  type JsonObject,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";

/** The mistake in a member of a body, as one sentence. Functions that read members throw it. */
export class BodyError extends Error {}

export function invalid(sentence: string): Result<never, Refusal> {
  return bad(refuse("invalid-request", sentence));
}

/** A refusal that is thrown: the server sends it instead of an answer. */
export class RefusalError extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.detail);
    this.refusal = refusal;
  }
}

/** Returns the value of a result. @throws {RefusalError} if it has none */
export function requireValue<Value>(result: Result<Value, Refusal>): Value {
  if (result.ok) return result.value;
  throw new RefusalError(result.problem);
}

/** Runs a function that reads members. A mistake in one is a refusal. */
export function readOrRefuse<Value>(read: () => Value): Result<Value, Refusal> {
  try {
    return good(read());
  } catch (error) {
    if (error instanceof BodyError) return invalid(error.message);
    throw error;
  }
}

/**
 * Reads a body that is one JSON object with only these members. An empty body is an empty object.
 *
 * @param read gets the members, and the document with the received text of each. It throws `BodyError`
 */
export function readBody<Value>(
  body: unknown,
  known: readonly string[],
  read: (members: JsonObject, document: JsonDocument) => Value,
): Result<Value, Refusal> {
  const document = readDocument(body, known);
  return document.ok ? readOrRefuse(() => read(document.value.members, document.value)) : document;
}

function readDocument(body: unknown, known: readonly string[]): Result<JsonDocument, Refusal> {
  const text = readBodyText(body);
  if (typeof text !== "string") return bad(text);
  const read = readJson(text === "" ? "{}" : text);
  if (!read.ok) {
    const { line, column, sentence } = read.problem;
    return bad(refuse("invalid-json", `line ${line}, column ${column}: ${sentence}`));
  }
  const stranger = [...read.value.members.keys()].find((name) => !known.includes(name));
  if (stranger === undefined) return read;
  const near = nearest(stranger, known);
  const meant = near === undefined ? "" : `; did you mean "${near}"?`;
  return bad(refuse("invalid-request", `unknown member ${quote(stranger)}${meant}`));
}

/** Requires that an object within a body has only these members. @param what it, for a person */
export function requireMembers(what: string, members: JsonObject, known: readonly string[]): void {
  const stranger = members.keys().find((name) => !known.includes(name));
  if (stranger !== undefined) throw new BodyError(`${what} has no member ${quote(stranger)}`);
}

/** Reads a string. @param what the member, or what it is for a person */
export function readText(what: string, value: Json | undefined): string {
  if (typeof value === "string") return value;
  const name = what.includes(" ") ? what : `"${what}"`;
  throw new BodyError(value === undefined ? `${name} is missing` : `${name} must be a string, not ${typeName(value)}`);
}

/** Reads a member that is false if it is absent. */
export function readFlag(name: string, members: JsonObject): boolean {
  const value = members.get(name) ?? false;
  if (typeof value !== "boolean") throw new BodyError(`"${name}" must be true or false`);
  return value;
}

/** Reads the hash of a row that a person was shown. */
export function readHash(value: Json | undefined): string {
  if (typeof value === "string" && /^[0-9a-f]{64}$/.test(value)) return value;
  throw new BodyError('"hash" must be the hash of the row that was shown, 64 hex digits');
}

/** Returns a body as text. A body that is not UTF-8 is refused at its first wrong byte. */
export function readBodyText(body: unknown): string | Refusal {
  if (!Buffer.isBuffer(body)) return "";
  if (isAscii(body)) return body.toString("latin1");
  if (isUtf8(body)) return body.toString("utf8");
  const fault = findUtf8Fault(body, body.toString("utf8"));
  return refuse(
    "invalid-json",
    `line ${fault?.line ?? 1}, column ${fault?.column ?? 1}: ${fault?.sentence ?? "invalid UTF-8"}`,
  );
}

/** The most bytes of a person's sentence. */
export const sentenceBytesMax = 1000;

/** True for a text on one line, at most `sentenceBytesMax` long, in which every character can be seen. */
export function isSentence(value: unknown): value is string {
  return (
    typeof value === "string" &&
    utf8Bytes(value) <= sentenceBytesMax &&
    !/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(value)
  );
}

export function sendJson(reply: FastifyReply, body: string | Readable): FastifyReply {
  return reply.header("content-type", "application/json; charset=utf-8").header("cache-control", "no-store").send(body);
}
