import type { Json, JsonObject } from "./json.ts";
import { memberBelow } from "./member-path.ts";
import { Decimal, decimalText } from "./number.ts";

/** The characters of a number as it was sent. */
export function charactersOf(number: number | Decimal): string {
  return typeof number === "number" ? String(number) : number.text;
}

/** One text for each value: `1.0` and `1` have the same. */
export function numberByValue(number: number | Decimal): string {
  return typeof number === "number" ? String(number) : decimalText(number.coefficient, number.exponent);
}

/**
 * The text of an input, or of any value, with members sorted by code units. Two inputs have one text if and only if they are
 * equal.
 *
 * @param unbound the members of an input that do not count, such as `input.note`
 */
export function inputText(
  value: Json,
  numberText: (number: number | Decimal) => string,
  unbound: readonly string[] = [],
  path = "input",
): string {
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number" || value instanceof Decimal) return numberText(value);
  // Members inside lists have no path, so they always count.
  if (!(value instanceof Map))
    return `[${(value as readonly Json[]).map((item) => inputText(item, numberText)).join(",")}]`;
  const members = [...(value as JsonObject)].flatMap(([name, member]) => {
    const below = memberBelow(path, name);
    return unbound.includes(below) ? [] : [[name, inputText(member, numberText, unbound, below)] as const];
  });
  const sorted = members.toSorted(([one], [other]) => (one < other ? -1 : 1));
  return `{${sorted.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}
