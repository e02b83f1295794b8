import { exactText, isExact } from "../value/rational.ts";
import type { Syntax } from "./syntax.ts";
import { Duration, isList, Optional, Timestamp, type Value } from "../value/value.ts";

/**
 * An expression in one canonical spelling: independent of white space, quotes, redundant brackets and spellings of
 * numbers.
 */
export function spell(syntax: Syntax): string {
  switch (syntax.kind) {
    case "literal":
      return spellValue(syntax.value);
    case "name":
      return syntax.name;
    case "member":
      return `${spell(syntax.of)}${syntax.optional ? ".?" : "."}${JSON.stringify(syntax.name)}`;
    case "index": {
      const { of, at, optional } = syntax;
      const isName = at.kind === "literal" && typeof at.value === "string";
      return `${spell(of)}${isName ? `${optional ? ".?" : "."}${spell(at)}` : `${optional ? "[?" : "["}${spell(at)}]`}`;
    }
    case "call":
      return `${syntax.target === undefined ? "" : `${spell(syntax.target)}.`}${syntax.name}(${spellAll(syntax.args)})`;
    case "unary":
      return `(${syntax.operator}${spell(syntax.operand)})`;
    case "binary":
      return `(${spell(syntax.left)} ${syntax.operator} ${spell(syntax.right)})`;
    case "conditional":
      return `(${spell(syntax.test)} ? ${spell(syntax.yes)} : ${spell(syntax.no)})`;
    case "list":
      return `[${spellAll(syntax.items)}]`;
    case "map":
      return `{${syntax.entries.map((entry) => entry.map(spell).join(": ")).join(", ")}}`;
    case "broken":
      return "?";
    default:
      return syntax satisfies never;
  }
}

function spellAll(list: readonly Syntax[]): string {
  return list.map(spell).join(", ");
}

/** A whole value in one canonical spelling: two values are equal if and only if their spellings are. */
export function spellValue(value: Value): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return JSON.stringify(value);
  if (isExact(value)) return exactText(value);
  if (value instanceof Duration) return `duration(${exactText(value.seconds)})`;
  if (value instanceof Timestamp) return `timestamp(${exactText(value.seconds)})`;
  if (value instanceof Optional) return value.value === undefined ? "nothing" : `optional(${spellValue(value.value)})`;
  if (isList(value)) return `[${value.map(spellValue).join(", ")}]`;
  const members = [...value].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}: ${spellValue(member)}`).join(", ")}}`;
}
