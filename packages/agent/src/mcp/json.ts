/** Reads JSON so that no two programs can read it in two ways, and writes it in one form. */
import { createHash } from "node:crypto";

export type JsonRecord = { readonly [name: string]: unknown };

/** Deeper than any message of a client or a server, and far from the end of the call stack. */
const depthMax = 256;

export class JsonError extends Error {}

/**
 * Parses a text. `JSON.parse` silently takes the last of two members with one name; another program may take the first.
 *
 * @throws JsonError for a text that is not JSON, repeats a member in one object, or is nested too deep
 */
export function readJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new JsonError("it is not JSON");
  }
  refuseAmbiguous(text);
  return value;
}

/** Scans a text that is JSON. Long strings cost one search each. */
function refuseAmbiguous(text: string): void {
  const open: (Set<string> | null)[] = [];
  let isName = false;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text[at];
    if (unit === '"') {
      const end = endOfString(text, at);
      if (isName) addName(open.at(-1), text.slice(at, end + 1));
      isName = false;
      at = end;
    } else if (unit === "{" || unit === "[") {
      isName = unit === "{";
      open.push(isName ? new Set() : null);
      if (open.length > depthMax) throw new JsonError(`it is nested over ${depthMax} deep`);
    } else if (unit === "}" || unit === "]") {
      open.pop();
      isName = false;
    } else if (unit === ",") {
      isName = open.at(-1) instanceof Set;
    }
  }
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  for (;;) {
    let first = end;
    while (text[first - 1] === "\\") first -= 1;
    if ((end - first) % 2 === 0) return end;
    end = text.indexOf('"', end + 1);
  }
}

function addName(names: Set<string> | null | undefined, literal: string): void {
  const name: string = JSON.parse(literal);
  if (names?.has(name)) throw new JsonError("an object repeats a member");
  names?.add(name);
}

export function isObject(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the object's own member if it is an object itself. */
export function objectIn(value: unknown, name: string): JsonRecord | undefined {
  const member = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return isObject(member) ? member : undefined;
}

export function textIn(value: unknown, name: string): string | undefined {
  const member = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return typeof member === "string" ? member : undefined;
}

/** Returns a copy without these members. */
export function without(object: JsonRecord, ...names: readonly string[]): JsonRecord {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** Returns the same text for values that differ only in the order of members. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(",")}}`;
}

/** Returns `sha256:` and 64 hexadecimal digits. */
export function digestOf(value: unknown): string {
  return `sha256:${createHash("sha256").update(canonicalJson(value)).digest("hex")}`;
}
