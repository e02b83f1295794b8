import { hiddenPattern, jsonText, readJson, type Json, type JsonObject } from "../../../core/src/wire/mod.ts";

/** A longer text stays on one line: the gate takes no larger body. */
const prettyMax = 200_000;

/**
 * The JSON text of an object on several lines. Its numbers keep their characters, and characters that a person cannot
 * see are escapes.
 */
export function prettyText(text: string): string {
  const read = readJson(text);
  if (!read.ok) return text;
  const { members } = read.value;
  const found = pretty(members, "");
  return found.length > prettyMax ? escapeHidden(jsonText(members)) : found;
}

/** A list without objects and lists stays on one line. */
function pretty(value: Json, indent: string): string {
  if (Array.isArray(value)) {
    const items = value as readonly Json[];
    const isPlain = items.every((item) => !(item instanceof Map || Array.isArray(item)));
    if (isPlain) return `[${items.map((item) => escapeHidden(jsonText(item))).join(", ")}]`;
    return block(
      "[]",
      indent,
      items.map((item) => pretty(item, `${indent}  `)),
    );
  }
  if (!(value instanceof Map)) return escapeHidden(jsonText(value));
  const members = [...(value as JsonObject)].map(
    ([name, member]) => `${escapeHidden(JSON.stringify(name))}: ${pretty(member, `${indent}  `)}`,
  );
  return block("{}", indent, members);
}

function block([open = "", close = ""]: string, indent: string, lines: readonly string[]): string {
  return lines.length === 0 ? open + close : `${open}\n${indent}  ${lines.join(`,\n${indent}  `)}\n${indent}${close}`;
}

const hidden = new RegExp(hiddenPattern, "gu");

/** JSON text with escapes instead of hidden characters, which are only in its texts. */
function escapeHidden(text: string): string {
  return text.replace(hidden, (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}
