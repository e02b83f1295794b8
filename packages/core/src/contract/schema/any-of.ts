import type { Json } from "../../wire/mod.ts";
import { isOfType, mismatch, typesValidator, type JsonType, type Schema } from "./schema.ts";
import { any, joinAll } from "../value/type.ts";
import { equals } from "../value/value.ts";
import { memberOf, toJson, type YamlNode } from "../text/yaml.ts";

/** One alternative: its schema, its types, and its node after references are resolved. */
export interface Branch {
  readonly schema: Schema;
  readonly types: readonly JsonType[] | undefined;
  readonly node: YamlNode;
}

/** Combines alternatives that can be told apart; undefined if two of them could accept the same value. */
export function anyOfSchema(branches: readonly Branch[]): Schema | undefined {
  const type = joinAll(branches.map(({ schema }) => schema.type));
  const tag = sharedConst(branches.map(({ node }) => node));
  const validate = tag === undefined ? byType(branches) : byTag(branches, tag);
  return validate === undefined ? undefined : { type: type ?? any, validate };
}

function byTag(branches: readonly Branch[], tag: string): Schema["validate"] {
  const values = branches.map(({ node }) => constOf(node, tag));
  const expected = `must have a known value of \`${tag}\``;
  return (found) => {
    if (!(found instanceof Map)) return mismatch("must be an object", found);
    const at = values.findIndex((value) => value !== undefined && found.has(tag) && equals(value, found.get(tag)));
    return at < 0 ? { path: [], expected, found: "" } : branches[at]?.schema.validate(found);
  };
}

function byType(branches: readonly Branch[]): Schema["validate"] | undefined {
  const kinds = branches.map(({ types }) => types?.map((type) => (type === "integer" ? "number" : type)));
  const all = kinds.flatMap((types) => types ?? []);
  if (kinds.includes(undefined) || new Set(all).size < all.length) return undefined;
  const none = typesValidator(all);
  return (found) => {
    const at = kinds.findIndex((types) => types?.some((type) => isOfType(type, found)));
    return at < 0 ? none(found) : branches[at]?.schema.validate(found);
  };
}

/** The required member that has a different `const` in every branch, if there is one. */
function sharedConst(nodes: readonly YamlNode[]): string | undefined {
  const [first] = nodes;
  const properties = memberOf(first, "properties");
  for (const name of properties?.kind === "map" ? properties.entries.keys() : []) {
    const values = nodes.map((node) => constOf(node, name));
    const distinct = values.every(
      (value, at) =>
        value !== undefined && !values.slice(0, at).some((other) => other !== undefined && equals(other, value)),
    );
    if (distinct) return name;
  }
  return undefined;
}

function constOf(node: YamlNode, name: string): Json | undefined {
  const required = memberOf(node, "required");
  const isRequired =
    required?.kind === "list" && required.items.some((item) => item.kind === "scalar" && item.text === name);
  const constant = memberOf(memberOf(memberOf(node, "properties"), name), "const");
  return isRequired && constant !== undefined ? toJson(constant) : undefined;
}
