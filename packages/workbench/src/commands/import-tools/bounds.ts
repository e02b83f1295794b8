import { compare, isExact, spellValue } from "../../../../readers/src/ir.ts";
import { quote, type Json, type JsonObject } from "../../../../core/src/wire/mod.ts";

/** Where the contract accepts more than the source, one clause each. Narrower bounds are not reported. */
export function compareBounds(source: JsonObject, contract: JsonObject): readonly string[] {
  const found: string[] = [];
  for (const [names, isWider] of [
    [["minimum", "exclusiveMinimum", "minLength", "minItems"], (ours: Json, theirs: Json) => lower(ours, theirs)],
    [["maximum", "exclusiveMaximum", "maxLength", "maxItems"], (ours: Json, theirs: Json) => lower(theirs, ours)],
  ] as const) {
    for (const name of names) {
      const theirs = source.get(name);
      const ours = contract.get(name) ?? contract.get(related.get(name) ?? "");
      if (theirs === undefined || (valuesOf(contract) !== undefined && ours === undefined)) continue;
      if (ours === undefined || isWider(ours, theirs))
        found.push(`\`${name}\` is ${formatValue(theirs)} in the source, ${formatValue(ours)} in the contract`);
    }
  }
  for (const name of ["pattern", "multipleOf", "uniqueItems"]) {
    const theirs = source.get(name);
    if (theirs === undefined || valuesOf(contract) !== undefined) continue;
    if (spellOptional(theirs) !== spellOptional(contract.get(name)))
      found.push(
        `\`${name}\` is ${formatValue(theirs)} in the source, ${formatValue(contract.get(name))} in the contract`,
      );
  }
  const theirs = valuesOf(source);
  const ours = valuesOf(contract);
  if (theirs === undefined) return found;
  const known = new Set(theirs.map(spellValue));
  if (ours === undefined) found.push("the source lists the allowed values, the contract does not");
  else if (!ours.every((value) => known.has(spellValue(value))))
    found.push("the contract accepts values that the source does not list");
  return found;
}

/** The other keyword for the same side. */
const related: ReadonlyMap<string, string> = new Map([
  ["minimum", "exclusiveMinimum"],
  ["exclusiveMinimum", "minimum"],
  ["maximum", "exclusiveMaximum"],
  ["exclusiveMaximum", "maximum"],
]);

function lower(a: Json, b: Json): boolean {
  return isExact(a) && isExact(b) && compare(a, b) < 0;
}

/** The values that a schema lists. */
export function valuesOf(schema: JsonObject): readonly Json[] | undefined {
  const listed = schema.get("enum");
  if (schema.has("const")) return [schema.get("const") ?? null];
  return Array.isArray(listed) ? (listed as readonly Json[]) : undefined;
}

function spellOptional(value: Json | undefined): string {
  return value === undefined ? "" : spellValue(value);
}

function formatValue(value: Json | undefined): string {
  if (value === undefined) return "not said";
  return typeof value === "string" ? quote(value) : spellValue(value);
}
