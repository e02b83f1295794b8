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
  utf8Bytes,
  type JsonDocument,
  type JsonObject,
  type Refusal,
  type Result,
} from "../../wire/mod.ts";

/** Reads a body that is one JSON object with only these members. An empty body is an empty object. */
export function readMembers(body: unknown, known: readonly string[]): Result<JsonObject, Refusal> {
  const read = readDocument(body, known);
  return read.ok ? good(read.value.members) : read;
}

/** Reads the same, and also gives the received text of each member. */
export function readDocument(body: unknown, known: readonly string[]): Result<JsonDocument, Refusal> {
  const text = textOf(body);
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

/** Returns a body as text. A body that is not UTF-8 is refused at its first wrong byte. */
export function textOf(body: unknown): string | Refusal {
  if (!Buffer.isBuffer(body)) return "";
  if (isAscii(body)) return body.toString("latin1");
  if (isUtf8(body)) return body.toString("utf8");
  const fault = findUtf8Fault(body);
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
