import { RE2JS } from "re2js";
import { nearest, type Json } from "../wire/mod.ts";
import type { Report, Span } from "./diagnostic.ts";
import { compare, isExact, type Exact } from "./rational.ts";
import {
  boundValidator,
  every,
  isOfType,
  itemsValidator,
  jsonTypes,
  mismatch,
  objectValidator,
  oneOfValues,
  typesValidator,
  uniqueValidator,
  type JsonType,
  type Schema,
  type Validator,
} from "./schema.ts";
import {
  any,
  boolean,
  broken,
  join,
  listOf,
  number,
  size,
  string,
  type Field,
  type RecordType,
  type Type,
} from "./type.ts";
import { equals } from "./value.ts";
import type { YamlEntry, YamlMap, YamlNode } from "./yaml.ts";

/** Which schema is read: an input closes its objects in so many words, a snapshot has a reserved name. */
export type SchemaPlace = "input" | "platform";

/** Compiles the published subset of JSON Schema 2020-12. Problems go to the report; a broken part takes nothing. */
export function readSchema(node: YamlNode, place: SchemaPlace, report: Report): Schema & { readonly type: RecordType } {
  const schema = new SchemaReader(node, place, report).root();
  if (schema.type.kind === "record") return { type: schema.type, validate: schema.validate };
  if (schema.type.kind !== "broken") {
    report.add("schema", node.span, `\`${place}\` is always an object`, "write `type: object` and its `properties`");
  }
  return { type: { kind: "record", fields: new Map(), others: broken }, validate: schema.validate };
}

const annotations = new Set([
  "title",
  "description",
  "examples",
  "default",
  "format",
  "deprecated",
  "$comment",
  "$schema",
  "$id",
  "$defs",
]);
const bounds: Readonly<Record<string, JsonType>> = {
  minimum: "number",
  maximum: "number",
  exclusiveMinimum: "number",
  exclusiveMaximum: "number",
  multipleOf: "number",
  minLength: "string",
  maxLength: "string",
  minItems: "array",
  maxItems: "array",
};
const owners: Readonly<Record<string, JsonType>> = {
  ...bounds,
  pattern: "string",
  items: "array",
  uniqueItems: "array",
  properties: "object",
  required: "object",
  additionalProperties: "object",
};
const keywords = [...annotations, ...Object.keys(owners), "type", "enum", "const", "anyOf", "$ref"];
const leftOut: Readonly<Record<string, string>> = {
  allOf: "write the members of all parts into one schema",
  oneOf: "write `anyOf`, its branches told apart by `type` or by one `const`",
  not: "say what is allowed instead",
  if: "write `anyOf`, its branches told apart by one `const`",
  patternProperties: "use `additionalProperties` with a schema",
  prefixItems: "use an object with named members",
  nullable: 'write `type: [string, "null"]`',
  dependentRequired: "say it as a rule, with `has(...)`",
};

class SchemaReader {
  readonly #root: YamlNode;
  readonly #place: SchemaPlace;
  readonly #report: Report;
  readonly #open: string[] = [];

  constructor(root: YamlNode, place: SchemaPlace, report: Report) {
    this.#root = root;
    this.#place = place;
    this.#report = report;
  }

  root(): Schema {
    const schema = this.#schema(this.#root);
    const reserved =
      this.#place === "platform" && this.#root.kind === "map" ? this.#root.entries.get("properties")?.value : undefined;
    const present = reserved?.kind === "map" ? reserved.entries.get("present") : undefined;
    if (present !== undefined) {
      this.#report.add(
        "reserved-name",
        present.key.span,
        "`present` is a reserved name: `platform.present` says whether a snapshot came",
        "give the fact another name",
      );
    }
    return schema;
  }

  #schema(node: YamlNode): Schema {
    if (node.kind === "scalar" && node.value === true) return { type: any, validate: () => undefined };
    if (node.kind !== "map") return this.#refuse(node.span, "a schema is a map such as `{ type: string }`");
    for (const [name, { key }] of node.entries) this.#known(name, key.span);
    const reference = node.entries.get("$ref");
    if (reference !== undefined) return this.#reference(reference);
    const branches = node.entries.get("anyOf");
    if (branches !== undefined) return this.#anyOf(branches);
    return this.#plain(node);
  }

  #known(name: string, span: Span): void {
    if (keywords.includes(name)) return;
    const near = nearest(name, keywords);
    const hint = leftOut[name] ?? (near === undefined ? undefined : `did you mean \`${near}\`?`);
    this.#report.add("schema", span, `\`${name}\` is not part of the schema language`, hint);
  }

  #refuse(span: Span, message: string, hint?: string): Schema {
    this.#report.add("schema", span, message, hint);
    return { type: broken, validate: (value) => mismatch("must be what a schema without an error says", value) };
  }

  #plain(node: YamlMap): Schema {
    const types = this.#types(node);
    const values = this.#values(node);
    const validators: Validator[] = types === undefined ? [] : [typesValidator(types)];
    if (values !== undefined) validators.push(oneOfValues(values));
    for (const [name, entry] of node.entries) {
      const owner = owners[name];
      if (owner === undefined) continue;
      if (types?.some((type) => type === owner || (owner === "number" && type === "integer")) !== true) {
        this.#report.add("schema", entry.key.span, `\`${name}\` needs \`type: ${owner}\` beside it`);
        continue;
      }
      const validator = this.#keyword(name, entry);
      if (validator !== undefined) validators.push(validator);
    }
    const object = types?.includes("object") === true ? this.#object(node) : undefined;
    const list = types?.includes("array") === true ? this.#list(node) : undefined;
    for (const part of [object, list]) if (part !== undefined) validators.push(part.validate);
    const type = types === undefined ? valuesType(values) : this.#type(types, node, object?.type, list?.type);
    return { type, validate: every(validators) };
  }

  #types(node: YamlMap): readonly JsonType[] | undefined {
    const entry = node.entries.get("type");
    if (entry === undefined) return undefined;
    const items = entry.value.kind === "list" ? entry.value.items : [entry.value];
    return items.flatMap((item) => {
      const name = item.kind === "scalar" ? (item.value === null ? "null" : item.text) : "";
      if ((jsonTypes as readonly string[]).includes(name)) return [name as JsonType];
      const near = nearest(name, jsonTypes);
      this.#report.add(
        "schema",
        item.span,
        `\`${name}\` is not a type of JSON`,
        near === undefined ? `types are ${jsonTypes.join(", ")}` : `did you mean \`${near}\`?`,
      );
      return [];
    });
  }

  #values(node: YamlMap): readonly Json[] | undefined {
    const constant = node.entries.get("const");
    if (constant !== undefined) return [toJson(constant.value)];
    const entry = node.entries.get("enum");
    if (entry === undefined) return undefined;
    if (entry.value.kind === "list" && entry.value.items.length > 0) return entry.value.items.map(toJson);
    this.#report.add("schema", entry.key.span, "`enum` is a list of values");
    return undefined;
  }

  #type(types: readonly JsonType[], node: YamlMap, object: Type | undefined, list: Type | undefined): Type {
    const parts = types.map((type): Type => {
      if (type === "object") return object ?? broken;
      if (type === "array") return list ?? broken;
      if (type === "number" || type === "integer") return this.#isNotNegative(node) ? size : number;
      return type === "string" ? string : type === "boolean" ? boolean : { kind: "null" };
    });
    return (
      parts.reduce<Type | undefined>(
        (joined, part) => (joined === undefined ? undefined : join(joined, part)),
        parts[0] ?? broken,
      ) ?? any
    );
  }

  #isNotNegative(node: YamlMap): boolean {
    const lower = ["minimum", "exclusiveMinimum"].map((name) => node.entries.get(name)?.value);
    if (lower.some((value) => value?.kind === "scalar" && isExact(value.value) && compare(value.value, 0) >= 0))
      return true;
    return this.#values(node)?.every((value) => isExact(value) && compare(value, 0) >= 0) === true;
  }

  #keyword(name: string, entry: YamlEntry): Validator | undefined {
    const { value } = entry;
    if (bounds[name] !== undefined) {
      const bound = value.kind === "scalar" ? value.value : null;
      const isCount = name.endsWith("Length") || name.endsWith("Items");
      const fits =
        isExact(bound) &&
        (isCount ? typeof bound === "number" && bound >= 0 : name !== "multipleOf" || compare(bound, 0) > 0);
      if (fits) return boundValidator(name, bound as Exact);
      this.#report.add(
        "schema",
        value.span,
        `\`${name}\` is ${isCount ? "a whole number of 0 or more" : name === "multipleOf" ? "a number above 0" : "a number"}`,
      );
    }
    if (name === "pattern") return this.#pattern(value);
    if (name === "uniqueItems" && value.kind === "scalar" && value.value === true) return uniqueValidator;
    return undefined;
  }

  #pattern(node: YamlNode): Validator | undefined {
    const text = node.kind === "scalar" && typeof node.value === "string" ? node.value : undefined;
    if (text === undefined) {
      this.#report.add("schema", node.span, "`pattern` is a text");
      return undefined;
    }
    try {
      const compiled = RE2JS.compile(text);
      return (value) =>
        typeof value === "string" && !compiled.test(value)
          ? mismatch(`must match the pattern ${text}`, value)
          : undefined;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#report.add(
        "pattern",
        node.span,
        `not a pattern of RE2: ${why}`,
        "it has no look-around and no back-references, so that it cannot hang",
      );
      return undefined;
    }
  }

  #object(node: YamlMap): Schema {
    const fields = new Map<string, Field>();
    const validators = new Map<string, Validator>();
    const required = this.#required(node);
    const properties = node.entries.get("properties")?.value;
    if (properties !== undefined && properties.kind !== "map")
      this.#report.add("schema", properties.span, "`properties` is a map of names to schemas");
    for (const [name, { value }] of properties?.kind === "map" ? properties.entries : []) {
      const schema = this.#schema(value);
      fields.set(name, { type: schema.type, required: required.has(name) });
      validators.set(name, schema.validate);
    }
    for (const [name, span] of required) {
      if (fields.has(name)) continue;
      const near = nearest(name, fields.keys());
      this.#report.add(
        "schema",
        span,
        `\`${name}\` is required but not declared`,
        near === undefined ? `declare it under \`properties\`` : `did you mean \`${near}\`?`,
      );
    }
    const { others, type } = this.#others(node);
    return {
      type: { kind: "record", fields, others: type },
      validate: objectValidator({ properties: validators, required: [...required.keys()], others }),
    };
  }

  #required(node: YamlMap): ReadonlyMap<string, Span> {
    const value = node.entries.get("required")?.value;
    if (value === undefined) return new Map();
    if (value.kind === "list")
      return new Map(value.items.map((item) => [item.kind === "scalar" ? item.text : "", item.span]));
    this.#report.add("schema", value.span, "`required` is a list of names");
    return new Map();
  }

  #others(node: YamlMap): { readonly others: Validator | undefined; readonly type: Type | undefined } {
    const entry = node.entries.get("additionalProperties");
    if (entry === undefined) {
      if (this.#place === "input") {
        const span = node.entries.get("type")?.key.span ?? node.span;
        this.#report.add(
          "open-object",
          span,
          "an object of an input must say whether it takes members that are not declared",
          "add `additionalProperties: false`, or `true` if the tool ignores what it does not know",
        );
      }
      return { others: () => undefined, type: undefined };
    }
    if (entry.value.kind === "scalar" && typeof entry.value.value === "boolean") {
      return { others: entry.value.value ? () => undefined : undefined, type: undefined };
    }
    const schema = this.#schema(entry.value);
    return { others: schema.validate, type: schema.type };
  }

  #list(node: YamlMap): Schema {
    const items = node.entries.get("items");
    const schema = items === undefined ? { type: any, validate: () => undefined } : this.#schema(items.value);
    const most = node.entries.get("maxItems")?.value;
    const maxItems = most?.kind === "scalar" && typeof most.value === "number" ? most.value : undefined;
    const unique = node.entries.get("uniqueItems");
    const scalar = ["string", "number", "boolean", "null"].includes(schema.type.kind);
    if (unique !== undefined && (!scalar || maxItems === undefined)) {
      this.#report.add("schema", unique.key.span, "`uniqueItems` needs `items` of one scalar type and a `maxItems`");
    }
    return { type: listOf(schema.type, maxItems), validate: itemsValidator(schema.validate) };
  }

  #reference({ value }: YamlEntry): Schema {
    const target = value.kind === "scalar" ? value.text : "";
    const name = /^#\/\$defs\/([^/]+)$/.exec(target)?.[1];
    const definitions = this.#root.kind === "map" ? this.#root.entries.get("$defs")?.value : undefined;
    const definition = definitions?.kind === "map" && name !== undefined ? definitions.entries.get(name) : undefined;
    if (name === undefined || definition === undefined)
      return this.#refuse(
        value.span,
        `\`${target}\` names no schema here`,
        "a `$ref` is `#/$defs/name`, defined in the same schema",
      );
    if (this.#open.includes(name))
      return this.#refuse(
        value.span,
        `\`${name}\` contains itself`,
        "schemas are finite: write out as many levels as you need",
      );
    this.#open.push(name);
    const schema = this.#schema(definition.value);
    this.#open.pop();
    return schema;
  }

  #anyOf({ key, value }: YamlEntry): Schema {
    const nodes = value.kind === "list" ? value.items : [];
    if (nodes.length === 0) return this.#refuse(key.span, "`anyOf` is a list of schemas");
    const branches = nodes.map((node) => ({
      schema: this.#schema(node),
      types: node.kind === "map" ? this.#types(node) : undefined,
      node,
    }));
    const type =
      branches.reduce<Type | undefined>(
        (joined, { schema }) => (joined === undefined ? undefined : join(joined, schema.type)),
        branches[0]?.schema.type ?? broken,
      ) ?? any;
    const tag = sharedConst(nodes);
    if (tag !== undefined) {
      const values = nodes.map((node) => constOf(node, tag));
      return {
        type,
        validate: (found) => {
          if (!(found instanceof Map)) return mismatch("must be an object", found);
          const at = values.findIndex(
            (constant) => constant !== undefined && found.has(tag) && equals(constant, found.get(tag) ?? null),
          );
          const expected = `must have a \`${tag}\` that is one of its kinds`;
          return at < 0 ? { path: [], expected, found: "" } : branches[at]?.schema.validate(found);
        },
      };
    }
    const seen = branches.flatMap(({ types }) => types?.map((name) => (name === "integer" ? "number" : name)) ?? []);
    if (branches.some(({ types }) => types === undefined) || new Set(seen).size < seen.length) {
      return this.#refuse(
        key.span,
        "the branches of `anyOf` must be told apart by `type`, or by one required member with a `const`",
      );
    }
    return {
      type,
      validate: (found) => {
        const branch = branches.find(({ types }) =>
          types?.some((name) => isOfType(name === "integer" ? "number" : name, found)),
        );
        return branch === undefined ? typesValidator(seen)(found) : branch.schema.validate(found);
      },
    };
  }
}

function valuesType(values: readonly Json[] | undefined): Type {
  if (values === undefined) return any;
  const types = values.map((value): Type => {
    if (typeof value === "string") return string;
    if (typeof value === "boolean") return boolean;
    if (value === null) return { kind: "null" };
    return isExact(value) ? (compare(value, 0) >= 0 ? size : number) : any;
  });
  return (
    types.reduce<Type | undefined>(
      (joined, type) => (joined === undefined ? undefined : join(joined, type)),
      types[0] ?? any,
    ) ?? any
  );
}

/** The required member that has another `const` in every branch, where there is one. */
function sharedConst(nodes: readonly YamlNode[]): string | undefined {
  const [first] = nodes;
  const properties = first?.kind === "map" ? first.entries.get("properties")?.value : undefined;
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
  if (node.kind !== "map") return undefined;
  const required = node.entries.get("required")?.value;
  const isRequired =
    required?.kind === "list" && required.items.some((item) => item.kind === "scalar" && item.text === name);
  const properties = node.entries.get("properties")?.value;
  const property = properties?.kind === "map" ? properties.entries.get(name)?.value : undefined;
  const constant = property?.kind === "map" ? property.entries.get("const") : undefined;
  return isRequired && constant !== undefined ? toJson(constant.value) : undefined;
}

/** A YAML node as the JSON it stands for. */
export function toJson(node: YamlNode): Json {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "list") return node.items.map(toJson);
  return new Map([...node.entries].map(([name, { value }]) => [name, toJson(value)]));
}
