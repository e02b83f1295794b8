import type { Json, JsonObject } from "./json.ts";
import { memberBelow } from "./member-path.ts";
import { Decimal, decimalText } from "./number.ts";

type NumberText = (number: number | Decimal) => string;

/** The characters of a number as it was sent. */
export function charactersOf(number: number | Decimal): string {
  return typeof number === "number" ? String(number) : number.text;
}

/** One text for each value: `1.0` and `1` have the same. */
export function numberByValue(number: number | Decimal): string {
  return typeof number === "number" ? String(number) : decimalText(number.coefficient, number.exponent);
}

/**
 * The text of a whole input, with its members sorted by code units. Two inputs have one text if and only if they are equal.
 *
 * @param unbound the members that do not count, such as `input.note`
 */
export function inputText(input: JsonObject, unbound: readonly string[], numberText: NumberText): string {
  return textOf(input, "input", { unbound: new Set(unbound), numberText });
}

/** The text of any value, in the same form. */
export function valueText(value: Json, numberText: NumberText): string {
  return textOf(value, "", { unbound: new Set(), numberText });
}

interface Form {
  readonly unbound: ReadonlySet<string>;
  readonly numberText: NumberText;
}

function textOf(value: Json, path: string, form: Form): string {
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number" || value instanceof Decimal) return form.numberText(value);
  // Members inside lists have no path, so they always count.
  if (value instanceof Map) {
    const members = value as JsonObject;
    const paths = [...members.keys()].map((name) => [name, memberBelow(path, name)] as const);
    const texts = paths
      .filter(([, member]) => !form.unbound.has(member))
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, member]) => `${JSON.stringify(name)}:${textOf(members.get(name) ?? null, member, form)}`);
    return `{${texts.join(",")}}`;
  }
  return `[${(value as readonly Json[]).map((item) => textOf(item, "", form)).join(",")}]`;
}
