import type { WidthJson } from "../../../../core/src/approvals/mod.ts";
import {
  Decimal,
  misreadAs,
  restWords,
  visible,
  widthWords,
  type Json,
  type JsonObject,
} from "../../../../core/src/wire/mod.ts";

/**
 * Prints a value for the person who decides: whole, with hidden characters escaped. Nothing is cut, because an agent
 * could put the part that matters behind the cut.
 */
export function cardLines(value: Json, indent = "  "): readonly string[] {
  if (value instanceof Map) {
    const members: JsonObject = value;
    if (members.size === 0) return [`${indent}{}`];
    return [...members].flatMap(([name, member]) => memberLines(`${shownText(name)}:`, member, indent));
  }
  if (Array.isArray(value)) {
    const items = value as readonly Json[];
    if (items.length === 0) return [`${indent}[]`];
    return items.flatMap((item) => memberLines("-", item, indent));
  }
  return [`${indent}${scalarText(value)}`];
}

function memberLines(label: string, value: Json, indent: string): readonly string[] {
  const isInline = !(value instanceof Map || Array.isArray(value));
  if (isInline) return [`${indent}${label} ${scalarText(value)}`];
  return [`${indent}${label}`, ...cardLines(value, `${indent}  `)];
}

function scalarText(value: Json): string {
  if (typeof value === "string") return shownText(value);
  return typeof value === "number" || value instanceof Decimal ? numberText(value) : JSON.stringify(value);
}

/** A text in quotes. Eight blanks or more are shown as a count, because they could push text out of sight. */
export function shownText(text: string): string {
  return visible(JSON.stringify(text)).replace(/ {8,}/g, (blanks) => `\u00ab${blanks.length} blanks\u00bb`);
}

/** A number with its characters. A program that reads it as a binary number may get another one. */
function numberText(number: number | Decimal): string {
  const text = typeof number === "number" ? String(number) : number.text;
  const read = misreadAs(number);
  return read === undefined ? text : `${text} (programs may read this as ${read})`;
}

/**
 * What a grant binds in the calls that it lets through, and what it leaves free.
 *
 * @param isByForm a grant by form binds all that is not free
 */
export function boundLines(
  isByForm: boolean,
  namesOf: (bound: "free" | "least" | "most" | "pins" | "sums") => readonly string[],
): readonly string[] {
  const part = (words: string, names: readonly string[]): readonly string[] =>
    names.length === 0 ? [] : [`  ${words}: ${names.map(visible).join(", ")}`];
  return [
    ...part("the same in each call", isByForm ? [restWords] : namesOf("pins")),
    ...part("at most as in this call", [...namesOf("sums"), ...namesOf("most")]),
    ...part("at least as in this call", namesOf("least")),
    `  free: ${namesOf("free").map(visible).join(", ") || "nothing"}`,
  ];
}

/** If the command line may not differ at all. */
export const onlyWidth = "no other text is of its form: svc-gate commands shows what each form lists";

/** A width of a command line: its name, what it means, and the command line with kinds for the words that may differ. */
export function widthLines({ name, shown }: WidthJson): readonly string[] {
  return [`  ${visible(name).padEnd(6)} ${widthWords[name] ?? ""}`, `    ${visible(shown)}`];
}
