import { Decimal, type Json } from "../../../../core/src/wire/mod.ts";

const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** A value on one line of YAML: every text in double quotes, with no hidden characters. */
export function yamlFlow(value: Json): string {
  if (typeof value === "string") return yamlText(value);
  if (value instanceof Decimal) return value.text;
  if (value === null || typeof value === "boolean" || typeof value === "number") return String(value);
  if (value instanceof Map) {
    const members = [...(value as ReadonlyMap<string, Json>)].map(
      ([name, inner]) => `${yamlText(name)}: ${yamlFlow(inner)}`,
    );
    return `{${members.join(", ")}}`;
  }
  return `[${(value as readonly Json[]).map(yamlFlow).join(", ")}]`;
}

export function yamlText(text: string): string {
  return JSON.stringify(text).replace(hidden, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}
