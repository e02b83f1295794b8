import type { Schema, TypeName } from "./language.ts";
import { compare, divide, fromText, isWhole } from "./number.ts";
import { equal, fromJson, memberOf, type Value } from "./value.ts";

/** Returns whether the value meets the schema. */
export function meets(value: Value, schema: Schema): boolean {
  if (schema.types.length > 0 && !schema.types.some((type) => isOf(value, type))) return false;
  if (schema.oneOf !== undefined && !schema.oneOf.some((each) => equal(value, fromJson(each)))) return false;
  if (schema.constant !== undefined && !equal(value, fromJson(schema.constant))) return false;
  return numberMeets(value, schema) && textMeets(value, schema) && listMeets(value, schema) && mapMeets(value, schema);
}

function isOf(value: Value, type: TypeName): boolean {
  if (type === "object") return value.type === "map";
  if (type === "array") return value.type === "list";
  if (type === "string") return value.type === "text";
  if (type === "integer") return value.type === "number" && isWhole(value.value);
  return value.type === type;
}

function numberMeets(value: Value, schema: Schema): boolean {
  if (value.type !== "number") return true;
  const from = (bound: string | undefined): number => (bound === undefined ? 0 : compare(value.value, fromText(bound)));
  if (schema.minimum !== undefined && from(schema.minimum) < 0) return false;
  if (schema.maximum !== undefined && from(schema.maximum) > 0) return false;
  if (schema.exclusiveMinimum !== undefined && from(schema.exclusiveMinimum) <= 0) return false;
  if (schema.exclusiveMaximum !== undefined && from(schema.exclusiveMaximum) >= 0) return false;
  return schema.multipleOf === undefined || isWhole(divide(value.value, fromText(schema.multipleOf)));
}

function textMeets(value: Value, { minLength, maxLength }: Schema): boolean {
  if (value.type !== "text") return true;
  const length = Array.from(value.value).length;
  return (minLength === undefined || length >= minLength) && (maxLength === undefined || length <= maxLength);
}

function listMeets(value: Value, { minItems, maxItems, uniqueItems, items }: Schema): boolean {
  if (value.type !== "list") return true;
  if (minItems !== undefined && value.items.length < minItems) return false;
  if (maxItems !== undefined && value.items.length > maxItems) return false;
  if (items !== undefined && !value.items.every((item) => meets(item, items))) return false;
  return (
    uniqueItems !== true ||
    value.items.every((item, index) => !value.items.slice(0, index).some((before) => equal(item, before)))
  );
}

function mapMeets(value: Value, { properties = [], required = [], additional }: Schema): boolean {
  if (value.type !== "map") return true;
  if (!required.every((name) => memberOf(value, name) !== undefined)) return false;
  return value.entries.every(([name, member]) => {
    const property = properties.find(([each]) => each === name)?.[1];
    if (property !== undefined) return meets(member, property);
    return typeof additional === "object" ? meets(member, additional) : additional !== false;
  });
}
