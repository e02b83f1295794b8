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

/** Decodes base64, or base64url without padding. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
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
  const [one, other] = [leavesOf(before, "input"), leavesOf(now, "input")];
  const paths = new Set([...other.keys(), ...one.keys()]);
  return [...paths]
    .filter((path) => one.get(path) !== other.get(path))
    .map((path) => ({ path, before: one.get(path), now: other.get(path) }));
}

/**
 * Compares what the answer shows of a receipt with the leaf, which is hashed, and the parts that the leaf commits to. A
 * part that was erased proves nothing, so it is left out.
 *
 * @param raw the texts of `tool_input` and `platform_state` in the answer
 */
export function isShownTruly(receipt: Receipt, raw: Readonly<Record<string, string>>): boolean {
  const leaf = JSON.parse(receipt.leaf) as Readonly<Record<string, unknown>>;
  const call = partOf(receipt, "call");
  const said = JSON.parse(call ?? "{}") as Readonly<Record<string, unknown>>;
  const reason = partOf(receipt, "reason");
  const judged = receipt.tool ?? receipt.tool_name ?? null;
  const ofLeaf = ["at", "seq", "act", "verdict", "answered", "mode", "rule", "contract", "key"] as const;
  return (
    ofLeaf.every((name) => (receipt[name] ?? null) === (leaf[name] ?? null)) &&
    (call === undefined || judged === (leaf["tool"] ?? said["tool_name"] ?? null)) &&
    (call === undefined ||
      (["tool_name", "session_id"] as const).every((name) => (receipt[name] ?? null) === (said[name] ?? null))) &&
    (reason === undefined || JSON.stringify(receipt.reason ?? null) === JSON.stringify(JSON.parse(reason))) &&
    isPartShown(receipt, "input", raw["tool_input"]) &&
    isPartShown(receipt, "platform", raw["platform_state"])
  );
}

/** A sensitive member is a part of its own: it is put back before the texts are compared. */
function isPartShown(receipt: Receipt, name: "input" | "platform", shown = "null"): boolean {
  const part = partOf(receipt, name);
  if (part === undefined || part === shown) return true;
  const [expected, found] = [leavesOf(part, name), leavesOf(shown, name)];
  for (const [member, text] of membersOf(receipt, name)) {
    for (const leaves of [expected, ...(text === undefined ? [found] : [])])
      for (const path of leaves.keys()) if (isBelow(path, member)) leaves.delete(path);
    if (text !== undefined) visit(valueOf(text), member, expected);
  }
  return expected.size === found.size && [...expected].every(([path, text]) => found.get(path) === text);
}

function isBelow(path: string, member: string): boolean {
  return path === member || path.startsWith(`${member}.`) || path.startsWith(`${member}[`);
}

/** The sensitive members with the texts of their values; undefined if erased. */
function membersOf(
  { evidence }: Receipt,
  root: string,
): readonly (readonly [name: string, text: string | undefined])[] {
  return evidence.slice(fixedParts).flatMap((part) => {
    const name = memberName(part);
    return name.startsWith(`${root}.`) ? [[name, partOf({ evidence: [part] }, name)] as const] : [];
  });
}

/** Every row has these parts; sensitive members come after them. */
export const fixedParts = 6;
/** The end of the digest in an erased part: `!` and 43 characters. */
export const digestEnd = 44;

/** The name of a sensitive member's part, even if it was erased. */
export function memberName(part: string): string {
  if (part.startsWith("!")) return part.slice(digestEnd);
  const [, name = ""] = JSON.parse(new TextDecoder().decode(bytesOf(part))) as readonly string[];
  return name;
}

function valueOf(text: string): Json {
  const read = readJson(`{"value":${text}}`);
  return read.ok ? (read.value.members.get("value") ?? null) : null;
}

function leavesOf(text: string, root: string): Map<string, string> {
  const found = new Map<string, string>();
  const read = readJson(text);
  if (read.ok) visit(read.value.members, root, found);
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
