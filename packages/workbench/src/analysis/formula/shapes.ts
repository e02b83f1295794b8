import type { Value } from "../../../../readers/src/contract.ts";
import { compare, isExact, isInteger, type Core, type Exact } from "../../../../readers/src/ir.ts";
import type { Json, JsonObject } from "../../../../core/src/wire/mod.ts";

/** A schema of a contract, with the document that resolves its references. */
export interface Shape {
  readonly schema: JsonObject;
  readonly root: Json;
}

export function shapeOf(schema: Json | undefined, root: Json | undefined = schema): Shape | undefined {
  if (!isObject(schema) || root === undefined) return undefined;
  const reference = schema.get("$ref");
  if (typeof reference !== "string") return { schema, root };
  let found: Json | undefined = root;
  for (const step of reference.split("/").slice(1)) found = isObject(found) ? found.get(step) : undefined;
  return shapeOf(found, root);
}

export function memberShape(shape: Shape | undefined, name: string): Shape | undefined {
  if (shape === undefined) return undefined;
  const properties = shape.schema.get("properties");
  const member = isObject(properties) ? properties.get(name) : undefined;
  return shapeOf(member ?? shape.schema.get("additionalProperties"), shape.root);
}

export function itemShape(shape: Shape | undefined): Shape | undefined {
  return shape === undefined ? undefined : shapeOf(shape.schema.get("items"), shape.root);
}

export function isObject(json: Json | undefined): json is JsonObject {
  return json instanceof Map;
}

export function isJsonList(json: Json | undefined): json is readonly Json[] {
  return Array.isArray(json);
}

/** The value of a keyword if it is a number. */
export function numberUnder({ schema }: Shape, keyword: string): Exact | undefined {
  const value = schema.get(keyword);
  return isExact(value) ? value : undefined;
}

/** The values that a shape accepts if they are listed. */
export function listedValues(shape: Shape | undefined, core: Core): readonly Value[] | undefined {
  if (shape?.schema.has("const") === true) return [shape.schema.get("const") as Json];
  const values = shape?.schema.get("enum");
  if (isJsonList(values)) return values;
  return core.type.kind === "boolean" ? [true, false] : undefined;
}

/** Does the shape only accept whole numbers? */
export function isWholeShape(shape: Shape | undefined): boolean {
  if (shape === undefined) return false;
  const listed = shape.schema.get("enum");
  return (
    shape.schema.get("type") === "integer" ||
    (isJsonList(listed) && listed.every((each) => isExact(each) && isInteger(each)))
  );
}

/** Does the schema allow the text, or null? Keywords that are not understood allow it. */
export function admits(shape: Shape | undefined, value: Value): boolean {
  if (shape === undefined) return true;
  const types = shape.schema.get("type");
  const names = isJsonList(types) ? types : types === undefined ? [] : [types];
  if (value === null) return names.length === 0 || names.includes("null");
  if (typeof value !== "string") return true;
  if (names.length > 0 && !names.includes("string")) return false;
  const length = Array.from(value).length;
  const [least, most] = [numberUnder(shape, "minLength"), numberUnder(shape, "maxLength")];
  return (least === undefined || compare(length, least) >= 0) && (most === undefined || compare(length, most) <= 0);
}
