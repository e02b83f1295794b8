import type { Json } from "./language.ts";
import { compare, fromText, type Fraction } from "./number.ts";

/** The value of an expression. */
export type Value =
  | { readonly type: "null" }
  | { readonly type: "boolean"; readonly value: boolean }
  | { readonly type: "text"; readonly value: string }
  | { readonly type: "number"; readonly value: Fraction }
  | { readonly type: "list"; readonly items: readonly Value[] }
  | { readonly type: "map"; readonly entries: readonly (readonly [string, Value])[] }
  /** Both in seconds; a timestamp counts from the epoch. */
  | { readonly type: "duration"; readonly value: Fraction }
  | { readonly type: "moment"; readonly value: Fraction };

export function fromJson(json: Json): Value {
  if (json === null) return { type: "null" };
  if (typeof json === "boolean") return { type: "boolean", value: json };
  if (typeof json === "string") return { type: "text", value: json };
  if (isArray(json)) return { type: "list", items: json.map(fromJson) };
  if ("num" in json) return { type: "number", value: fromText(json.num) };
  return { type: "map", entries: json.obj.map(([name, value]) => [name, fromJson(value)] as const) };
}

function isArray(json: Json): json is readonly Json[] {
  return Array.isArray(json);
}

export function equal(a: Value, b: Value): boolean {
  if (a.type === "null") return b.type === "null";
  if (a.type === "list")
    return (
      b.type === "list" &&
      a.items.length === b.items.length &&
      a.items.every((item, index) => {
        const other = b.items[index];
        return other !== undefined && equal(item, other);
      })
    );
  if (a.type === "map")
    return (
      b.type === "map" &&
      a.entries.length === b.entries.length &&
      a.entries.every(([name, value]) => b.entries.some(([other, found]) => other === name && equal(value, found)))
    );
  if (a.type === "number" || a.type === "duration" || a.type === "moment")
    return b.type === a.type && compare(a.value, b.value) === 0;
  return a.type === b.type && a.value === b.value;
}

/** Compares texts by code points. */
export function compareTexts(a: string, b: string): number {
  const left = Array.from(a, (character) => character.codePointAt(0) ?? 0);
  const right = Array.from(b, (character) => character.codePointAt(0) ?? 0);
  for (let index = 0; ; index += 1) {
    const [x, y] = [left[index], right[index]];
    if (x === undefined || y === undefined) return left.length - right.length;
    if (x !== y) return x - y;
  }
}

/** Returns the member's value, or undefined if it is absent. */
export function memberOf(value: Value, name: string): Value | undefined {
  if (value.type !== "map") return undefined;
  return value.entries.find(([each]) => each === name)?.[1];
}
