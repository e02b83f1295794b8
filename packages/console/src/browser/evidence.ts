import {
  jsonText,
  memberBelow,
  readJson,
  type Json,
  type JsonObject,
  type ReceiptJson,
} from "../../../core/src/wire/mod.ts";

/** The text of a part of a receipt's evidence, such as `input`; undefined if it was erased. */
export function partOf({ evidence }: Pick<ReceiptJson, "evidence">, name: string): string | undefined {
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

/** Where a value is in a call: the names of members and the positions in lists that lead to it. */
export type ValuePath = readonly (number | string)[];

/** A member of two inputs. */
export interface MemberComparison {
  readonly node: PathNode | undefined;
  /** Undefined if only the second input has the member. */
  readonly before: Json | undefined;
  readonly isSame: boolean;
}

/** A path from its end: many values of a large input share the start of their paths. */
interface PathNode {
  readonly within: PathNode | undefined;
  readonly step: number | string;
}

/** Compares two values member by member. Objects and lists that both have are compared by what is in them. */
export function compareMembers(before: Json, now: Json): readonly MemberComparison[] {
  const found: MemberComparison[] = [];
  const visit = (one: Json | undefined, other: Json | undefined, within: PathNode | undefined): void => {
    if (isObject(one) && isObject(other))
      for (const name of new Set([...other.keys(), ...one.keys()]))
        visit(one.get(name), other.get(name), { within, step: name });
    else if (isList(one) && isList(other))
      for (let at = 0; at < Math.max(one.length, other.length); at += 1)
        visit(one[at], other[at], { within, step: at });
    else
      found.push({
        node: within,
        before: one,
        isSame: one === other || formatOptionalJson(one) === formatOptionalJson(other),
      });
  };
  visit(before, now, undefined);
  return found;
}

export function pathOf(node: PathNode | undefined): ValuePath {
  return node === undefined ? [] : [...pathOf(node.within), node.step];
}

function isObject(value: Json | undefined): value is JsonObject {
  return value instanceof Map;
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function formatOptionalJson(value: Json | undefined): string | undefined {
  return value === undefined ? undefined : jsonText(value);
}

/** Such as `lines[2].amount`. A name that is not a word is in quotes, so no two paths have the same text. */
export function pathText(path: ValuePath): string {
  const below = (text: string, step: number | string): string =>
    typeof step === "number" ? `${text}[${step}]` : memberBelow(text, step);
  return path.reduce<string>(below, "").replace(/^\./, "");
}

/**
 * Compares what the answer shows of a receipt with the leaf, which is hashed, and the parts that the leaf commits to. Of
 * a part that was erased the answer must show nothing.
 *
 * @param raw the texts of `tool_input` and `platform_state` in the answer
 */
export function isShownTruly(receipt: ReceiptJson, raw: Readonly<Record<string, string>>): boolean {
  const leaf = JSON.parse(receipt.leaf) as Readonly<Record<string, unknown>>;
  const call = partOf(receipt, "call");
  const said = JSON.parse(call ?? "{}") as Readonly<Record<string, unknown>>;
  const judged = call === undefined ? undefined : (leaf["tool"] ?? said["tool_name"]);
  const reason: unknown = JSON.parse(partOf(receipt, "reason") ?? "null");
  const ofLeaf = ["at", "seq", "act", "verdict", "answered", "mode", "rule", "contract", "key"] as const;
  return (
    ofLeaf.every((name) => (receipt[name] ?? null) === (leaf[name] ?? null)) &&
    (["tool_name", "session_id", "key_kind"] as const).every(
      (name) => (receipt[name] ?? null) === (said[name] ?? null),
    ) &&
    (receipt.tool ?? receipt.tool_name ?? null) === (judged ?? null) &&
    JSON.stringify(receipt.reason ?? null) === JSON.stringify(reason) &&
    isPartShown(receipt, "input", raw["tool_input"]) &&
    isPartShown(receipt, "platform", raw["platform_state"])
  );
}

function isPartShown(receipt: ReceiptJson, name: "input" | "platform", shown = "null"): boolean {
  const recorded = recordedOf(receipt, name);
  // An input that was not kept whole is a list, and no input is one.
  if (recorded === undefined || isList(recorded.value)) return shown === "null";
  return compareMembers(recorded.value, readValue(shown)).every(({ isSame }) => isSame);
}

/** What a receipt has of an input or of facts. */
export interface RecordedValue {
  /** A list if the input was not kept whole. An erased sensitive member has a reference instead. */
  readonly value: Json;
  /** The sensitive members that were erased. */
  readonly erased: readonly ValuePath[];
}

/** Returns an input or facts with its sensitive members, which are parts of their own; undefined if it was erased. */
export function recordedOf(
  receipt: Pick<ReceiptJson, "evidence">,
  name: "input" | "platform",
): RecordedValue | undefined {
  const part = partOf(receipt, name);
  if (part === undefined) return undefined;
  let value = readValue(part);
  const erased: ValuePath[] = [];
  for (const [member, text] of membersOf(receipt, name)) {
    const [, ...path] = member.split(".");
    if (text === undefined) erased.push(path);
    else value = withMember(value, path, readValue(text));
  }
  return { value, erased };
}

/** The value with another value of one of its members. */
function withMember(value: Json, [name = "", ...rest]: readonly string[], member: Json): Json {
  if (!isObject(value)) return value;
  const inner = rest.length === 0 ? member : withMember(value.get(name) ?? null, rest, member);
  return new Map(value).set(name, inner);
}

/** The sensitive members with the texts of their values; undefined if erased. */
function membersOf(
  { evidence }: Pick<ReceiptJson, "evidence">,
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

/** The value of a JSON text, whose numbers keep their characters. A text that is not JSON is shown, and equals none. */
export function readValue(text: string): Json {
  const read = readJson(`{"value":${text}}`);
  const isOne = read.ok && read.value.members.size === 1;
  return isOne ? (read.value.members.get("value") ?? null) : new Map([["this is not JSON", text]]);
}
