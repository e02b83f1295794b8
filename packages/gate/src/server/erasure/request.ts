import { sensitiveMax } from "../../../../core/src/contract/mod.ts";
import {
  erasableParts,
  isErasable,
  rangesMax,
  type ErasablePart,
  type RowRange,
} from "../../../../core/src/record/entry/mod.ts";
import {
  memberCharactersMax,
  didYouMean,
  quote,
  utf8Bytes,
  type Json,
  type JsonObject,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { readBody, readFlag, readText, BodyError } from "../request/body.ts";
import { dayOrMoment } from "../settings/moment.ts";
import { readPath, type Where } from "./where.ts";

/** A request to erase parts of receipts. */
export interface EraseRequest {
  readonly target: EraseTarget;
  readonly parts: readonly ErasablePart[];
  /** The operator's sentence: it stays in the ledger forever. */
  readonly reason: string;
  /** Erases nothing; the answer says what would be erased. */
  readonly preview?: boolean;
}

export type EraseTarget =
  | { readonly rows: readonly RowRange[] }
  /** The rows of a session; if a key is named, only the rows of that key. */
  | { readonly session: string; readonly key: string | undefined }
  /** The rows whose calls had all these values. */
  | { readonly wheres: readonly Where[] }
  /** The rows before a moment, in milliseconds since the epoch. */
  | { readonly before: number };

const reasonBytesMax = 1024;
/** All members that contracts may list for a tool, and all other parts. */
const partsMax = sensitiveMax + erasableParts.length;

/** Reads the body of a POST /admin/erase. */
export function readErase(body: unknown): Result<EraseRequest, Refusal> {
  const known = ["rows", "session_id", "key", "before", "where", "parts", "reason", "preview"];
  return readBody(body, known, (members) => {
    const preview = readPreview(members);
    return {
      target: readTarget(members),
      parts: readParts(members.get("parts")),
      reason: preview ? "" : readReason(members.get("reason")),
      preview,
    };
  });
}

function readTarget(members: JsonObject): EraseTarget {
  const named = ["rows", "session_id", "before", "where"].filter((name) => members.has(name));
  const [name] = named;
  if (name === undefined || named.length > 1)
    throw new BodyError('the request must have exactly one of "rows", "session_id", "before" and "where"');
  if (name !== "session_id" && members.has("key")) throw new BodyError('"key" is only allowed with "session_id"');
  if (name === "rows") return { rows: readRows(members.get("rows")) };
  if (name === "where") return { wheres: readWheres(members.get("where")) };
  if (name === "before") return { before: readBefore(readText("before", members.get("before"))) };
  return {
    session: readText("session_id", members.get("session_id")),
    key: members.has("key") ? readText("key", members.get("key")) : undefined,
  };
}

const wheresMax = 8;

function readWheres(value: Json | undefined): readonly Where[] {
  const named = value instanceof Map ? [...(value as JsonObject)] : [];
  if (named.length === 0 || named.length > wheresMax)
    throw new BodyError(
      `"where" must be an object of 1 to ${wheresMax} members and their values, such as {"input.customer.email": "anna@example.com"}`,
    );
  return named.map(([member, wanted]) => {
    const path = readPath(member);
    if (path === undefined)
      throw new BodyError(
        `${quote(member)} is not a member of a call: write its path, such as input.customer.email or platform.user.id`,
      );
    if (typeof wanted !== "string")
      throw new BodyError(`the value of ${quote(member)} must be a string; write the digits of a number as a string`);
    return { ...path, value: wanted };
  });
}

/** A preview needs no reason, because it changes nothing. */
function readPreview(members: JsonObject): boolean {
  const preview = readFlag("preview", members);
  if (preview && !members.has("where")) throw new BodyError('"preview" is only allowed with "where"');
  return preview;
}

function readRows(value: Json | undefined): readonly RowRange[] {
  const wrong = new BodyError(
    `"rows" must be a list of 1 to ${rangesMax} pairs such as [[3,3],[7,9]]: the first row and the last`,
  );
  if (!Array.isArray(value) || value.length === 0 || value.length > rangesMax) throw wrong;
  const ranges = (value as readonly Json[]).map((pair): RowRange => {
    const [from, to, ...more] = Array.isArray(pair) ? (pair as readonly Json[]) : [];
    if (typeof from !== "number" || typeof to !== "number" || more.length > 0 || from < 1 || to < from) throw wrong;
    return [from, to];
  });
  return mergeRanges(ranges.toSorted(([a], [b]) => a - b));
}

function mergeRanges(ranges: readonly RowRange[]): readonly RowRange[] {
  const found: [number, number][] = [];
  for (const [from, to] of ranges) {
    const last = found.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else found.push([from, to]);
  }
  return found;
}

function readParts(value: Json | undefined): readonly ErasablePart[] {
  const names = Array.isArray(value) ? (value as readonly Json[]) : [];
  if (names.length === 0 || names.length > partsMax)
    throw new BodyError(
      `"parts" must be a list of 1 to ${partsMax} of ${erasableParts.join(", ")}, or sensitive members such as input.customer.email`,
    );
  return names.map((name) => readPart(readText("a part", name)));
}

function readPart(name: string): ErasablePart {
  if (isErasable(name) && name.length <= memberCharactersMax) return name;
  if (name === "effects")
    throw new BodyError(
      'the part "effects" cannot be erased: it has only digests and amounts, and counters are computed from it',
    );
  const parts = `parts are ${erasableParts.join(", ")}, and members that a contract lists under "sensitive"`;
  throw new BodyError(`the part ${quote(name)} does not exist; ${didYouMean(name, erasableParts, parts, '"')}`);
}

function readReason(value: Json | undefined): string {
  const reason = readText("reason", value);
  if (reason.trim() === "" || utf8Bytes(reason) > reasonBytesMax || /\p{C}/u.test(reason))
    throw new BodyError(`"reason" must be 1 to ${reasonBytesMax} bytes of visible characters`);
  return reason;
}

function readBefore(text: string): number {
  const at = dayOrMoment(text);
  if (at !== undefined) return at;
  throw new BodyError('"before" must be a day such as 2026-01-31, or a moment such as 2026-01-31T12:00:00Z');
}
