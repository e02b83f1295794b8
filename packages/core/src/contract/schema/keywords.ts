import type { JsonType } from "./schema.ts";

/** Keywords that do not constrain values. */
export const annotations: ReadonlySet<string> = new Set(
  "title description examples default format deprecated $comment $schema $id $defs".split(" "),
);
/** The keywords with a number as their value, and the type that they constrain. */
export const bounds: ReadonlyMap<string, JsonType> = new Map([
  ["minimum", "number"],
  ["maximum", "number"],
  ["exclusiveMinimum", "number"],
  ["exclusiveMaximum", "number"],
  ["multipleOf", "number"],
  ["minLength", "string"],
  ["maxLength", "string"],
  ["minItems", "array"],
  ["maxItems", "array"],
]);
/** The keywords that constrain values of one type, and that type. */
export const owners: ReadonlyMap<string, JsonType> = new Map([
  ...bounds,
  ["items", "array"],
  ["uniqueItems", "array"],
  ["properties", "object"],
  ["required", "object"],
  ["additionalProperties", "object"],
  // After the others, so that `maxLength` refuses a long text before a pattern is matched.
  ["pattern", "string"],
]);
export const keywords: readonly string[] = [...annotations, ...owners.keys(), "type", "enum", "const", "anyOf", "$ref"];
/** What to write instead of a keyword that is left out. */
export const leftOut: ReadonlyMap<string, string> = new Map([
  ["allOf", "write the members of all parts into one schema"],
  ["oneOf", "write `anyOf`, its branches told apart by `type` or by one `const`"],
  ["not", "say which values are allowed instead"],
  ["if", "write `anyOf`, its branches told apart by one `const`"],
  ["then", "write `anyOf`, its branches told apart by one `const`"],
  ["else", "write `anyOf`, its branches told apart by one `const`"],
  ["patternProperties", "use `additionalProperties` with a schema"],
  ["propertyNames", "use `additionalProperties` with a schema"],
  ["prefixItems", "use an object with named members"],
  ["contains", "write a rule with `exists(...)`"],
  ["nullable", 'write `type: [string, "null"]`'],
  ["dependentRequired", "write a rule with `has(...)`"],
  ["minProperties", "write a rule with `size()`"],
  ["maxProperties", "write a rule with `size()`"],
  ["definitions", "write `$defs`"],
]);
