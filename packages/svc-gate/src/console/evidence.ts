import { Decimal, readJson, type Json, type JsonObject } from "../wire/mod.ts";
import type { Receipt } from "./answers.ts";

/** The text of a part of a receipt's evidence, such as `input`; undefined if it was erased. */
export function partOf({ evidence }: Pick<Receipt, "evidence">, name: string): string | undefined {
  for (const part of evidence) {
    if (part.startsWith("!")) continue;
    const text = new TextDecoder().decode(bytesOf(part));
    const head = `,"${name}",`;
    if (text.startsWith(head, saltEnd)) return text.slice(saltEnd + head.length, -1);
  }
  return undefined;
}

/** A part is `["`, 22 characters of salt, `"`, then a comma, its name, its value and `]`. */
const saltEnd = 25;

/** Decodes base64url without padding. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
}

/** The text of a call's input, with its sensitive members where the evidence keeps them apart. */
export function inputOf(receipt: Pick<Receipt, "evidence">): string | undefined {
  return partOf(receipt, "input");
}

export interface Difference {
  /** Such as `input.lines[2].amount`. */
  readonly path: string;
  /** The texts of the values; undefined if absent. */
  readonly before: string | undefined;
  readonly now: string | undefined;
}

/** Compares the texts of two inputs, member by member. */
export function differences(before: string, now: string): readonly Difference[] {
  const [one, other] = [leavesOf(before), leavesOf(now)];
  const paths = new Set([...other.keys(), ...one.keys()]);
  return [...paths]
    .filter((path) => one.get(path) !== other.get(path))
    .map((path) => ({ path, before: one.get(path), now: other.get(path) }));
}

function leavesOf(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const read = readJson(text);
  if (read.ok) visit(read.value.members, "input", found);
  return found;
}

function visit(value: Json, path: string, found: Map<string, string>): void {
  if (value instanceof Map && value.size > 0)
    for (const [name, member] of value as JsonObject) visit(member, `${path}.${name}`, found);
  else if (Array.isArray(value) && value.length > 0)
    for (const [at, item] of (value as readonly Json[]).entries()) visit(item, `${path}[${at}]`, found);
  else found.set(path, scalarText(value));
}

function scalarText(value: Json): string {
  if (value instanceof Decimal) return value.text;
  if (value instanceof Map) return "{}";
  return JSON.stringify(value);
}
