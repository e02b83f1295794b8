import { didYouMean, type Json } from "../../wire/mod.ts";
import type { Report, Span } from "../text/diagnostic.ts";
import { anyOfSchema, type Branch } from "./any-of.ts";
import { compilePattern } from "../value/pattern.ts";
import { compare, isExact, type Exact } from "../value/rational.ts";
import { annotations, bounds, keywords, leftOut, owners } from "./keywords.ts";
import {
  boundValidator,
  every,
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
import { schemasMax, type Budget } from "../check/scope.ts";
import {
  any,
  boolean,
  broken,
  joinAll,
  listType,
  number,
  size,
  string,
  type Field,
  type RecordType,
  type Type,
} from "../value/type.ts";
import { itemsOf, memberOf, toJson, type YamlEntry, type YamlMap, type YamlNode } from "../text/yaml.ts";

/** The schema's role: an input must close its objects explicitly, and facts have a reserved name. */
export type SchemaRole = "input" | "platform";

/** Compiles the published subset of JSON Schema 2020-12. Problems go to the report. */
export function readSchema(
  node: YamlNode,
  role: SchemaRole,
  budget: Budget,
  report: Report,
): Schema & { readonly type: RecordType } {
  const schema = new SchemaReader(node, role, budget, report).root();
  if (schema.type.kind === "record") return { type: schema.type, validate: schema.validate };
  if (schema.type.kind !== "broken") {
    report.add("schema", node.span, `\`${role}\` is always an object`, "write `type: object` and its `properties`");
  }
  return { type: { kind: "record", fields: new Map(), others: broken, open: false }, validate: schema.validate };
}

const anything: Schema = { type: any, validate: () => undefined };
/** A schema with an error that was reported. */
const unread: Schema = { type: broken, validate: () => undefined };

class SchemaReader {
  readonly #root: YamlNode;
  readonly #role: SchemaRole;
  readonly #budget: Budget;
  readonly #report: Report;
  readonly #open: string[] = [];

  constructor(root: YamlNode, role: SchemaRole, budget: Budget, report: Report) {
    this.#root = root;
    this.#role = role;
    this.#budget = budget;
    this.#report = report;
  }

  root(): Schema {
    const schema = this.#schema(this.#root);
    const properties = memberOf(this.#root, "properties");
    const present = properties?.kind === "map" ? properties.entries.get("present") : undefined;
    if (this.#role === "platform" && present !== undefined) {
      this.#report.add(
        "reserved-name",
        present.key.span,
        "`present` is a reserved name: `platform.present` is whether the check has facts",
        "give the fact another name",
      );
    }
    return schema;
  }

  #schema(node: YamlNode): Schema {
    this.#budget.schemas -= 1;
    if (this.#budget.schemas < 0) return this.#tooLarge(node);
    if (node.kind === "scalar" && node.value === true) return anything;
    if (node.kind !== "map") return this.#refuse(node.span, "a schema is a map such as `{ type: string }`");
    for (const [name, { key }] of node.entries) this.#checkKeyword(name, key.span);
    const reference = node.entries.get("$ref");
    const whole = reference ?? node.entries.get("anyOf");
    if (whole === undefined) return this.#plain(node);
    this.#alone(node, whole.key.text);
    return reference === undefined ? this.#anyOf(whole) : this.#reference(node, reference);
  }

  /** Reports it once: every node after this one is too many as well. */
  #tooLarge(node: YamlNode): Schema {
    if (this.#budget.schemas === -1)
      this.#report.add(
        "too-large",
        node.span,
        `schemas of over ${schemasMax} parts in one contract, with each \`$ref\` expanded`,
        "references inside referenced schemas multiply: flatten them",
      );
    return unread;
  }

  /** Refuses other keywords next to `$ref` or `anyOf`: they would be read but not applied, which is a security hole. */
  #alone(node: YamlMap, whole: string): void {
    for (const [name, { key }] of node.entries) {
      if (name === whole || annotations.has(name) || !keywords.includes(name)) continue;
      this.#report.add(
        "schema",
        key.span,
        `\`${name}\` cannot be next to \`${whole}\``,
        whole === "anyOf" ? "write it into each of the branches" : "write it into the schema that is referred to",
      );
    }
  }

  #checkKeyword(name: string, span: Span): void {
    if (keywords.includes(name)) return;
    const hint = leftOut.get(name) ?? didYouMean(name, keywords, undefined);
    this.#report.add("schema", span, `\`${name}\` is not part of the schema language`, hint);
  }

  #refuse(span: Span, message: string, hint?: string): Schema {
    this.#report.add("schema", span, message, hint);
    return { type: broken, validate: (value) => mismatch("must match a schema without an error", value) };
  }

  #plain(node: YamlMap): Schema {
    const types = readTypes(node, this.#report);
    const values = readValues(node, this.#report);
    const validators: Validator[] = types === undefined ? [] : [typesValidator(types)];
    validators.push(...values.map(oneOfValues));
    for (const [name, owner] of owners) {
      const entry = node.entries.get(name);
      if (entry === undefined) continue;
      if (types?.some((type) => type === owner || (owner === "number" && type === "integer")) !== true) {
        this.#report.add("schema", entry.key.span, `\`${name}\` also needs \`type: ${owner}\``);
        continue;
      }
      const validator = readKeyword(name, entry, this.#report);
      if (validator !== undefined) validators.push(validator);
    }
    const object = types?.includes("object") === true ? this.#object(node) : undefined;
    const list = types?.includes("array") === true ? this.#list(node) : undefined;
    for (const part of [object, list]) if (part !== undefined) validators.push(part.validate);
    if (types === undefined) return { type: valuesType(values[0]), validate: every(validators) };
    const parts = types.map((type): Type => {
      if (type === "object") return object?.type ?? broken;
      if (type === "array") return list?.type ?? broken;
      if (type === "number" || type === "integer") return isNotNegative(node, values[0]) ? size : number;
      return type === "string" ? string : type === "boolean" ? boolean : { kind: "null" };
    });
    return { type: joinAll(parts) ?? any, validate: every(validators) };
  }

  #object(node: YamlMap): Schema {
    const fields = new Map<string, Field>();
    const validators = new Map<string, Validator>();
    const required = readRequired(node, this.#report);
    const properties = memberOf(node, "properties");
    if (properties !== undefined && properties.kind !== "map")
      this.#report.add("schema", properties.span, "`properties` is a map of names to schemas");
    for (const [name, { value }] of properties?.kind === "map" ? properties.entries : []) {
      const schema = this.#schema(value);
      fields.set(name, { type: schema.type, required: required.has(name) });
      validators.set(name, schema.validate);
    }
    for (const [name, span] of required) {
      if (fields.has(name)) continue;
      const hint = didYouMean(name, fields.keys(), "declare it under `properties`");
      this.#report.add("schema", span, `\`${name}\` is required but not declared`, hint);
    }
    const { others, type } = this.#others(node);
    return {
      type: { kind: "record", fields, others: type, open: others !== undefined && type === undefined },
      validate: objectValidator({ properties: validators, required: [...required.keys()], others }),
    };
  }

  #others(node: YamlMap): { readonly others: Validator | undefined; readonly type: Type | undefined } {
    const entry = node.entries.get("additionalProperties");
    if (entry === undefined) {
      if (this.#role === "input") {
        const span = node.entries.get("type")?.key.span ?? node.span;
        this.#report.add(
          "open-object",
          span,
          "an object of an input must say whether it accepts undeclared members",
          "add `additionalProperties: false`, or `true` if the tool ignores unknown members",
        );
      }
      return { others: anything.validate, type: undefined };
    }
    const { value } = entry;
    if (value.kind === "scalar" && typeof value.value === "boolean")
      return { others: value.value ? anything.validate : undefined, type: undefined };
    const schema = this.#schema(value);
    return { others: schema.validate, type: schema.type };
  }

  #list(node: YamlMap): Schema {
    const items = node.entries.get("items");
    const schema = items === undefined ? anything : this.#schema(items.value);
    const most = node.entries.get("maxItems")?.value;
    const maxItems = most?.kind === "scalar" && typeof most.value === "number" ? most.value : undefined;
    const wanted = node.entries.get("uniqueItems");
    const unique = wanted?.value.kind === "scalar" && wanted.value.value === false ? undefined : wanted;
    const scalar = ["string", "number", "boolean", "null"].includes(schema.type.kind);
    if (unique !== undefined && (!scalar || maxItems === undefined)) {
      this.#report.add("schema", unique.key.span, "`uniqueItems` needs `items` of one scalar type and a `maxItems`");
    }
    return { type: listType(schema.type, maxItems), validate: itemsValidator(schema.validate) };
  }

  #reference(node: YamlMap, { value }: YamlEntry): Schema {
    const target = value.kind === "scalar" ? value.text : "";
    const name = definitionName(target);
    const definition = definitionOf(node, this.#root);
    if (definition === undefined)
      return this.#refuse(
        value.span,
        `\`${target}\` does not name a schema here`,
        "a `$ref` is `#/$defs/name`, defined in the same schema",
      );
    if (this.#open.includes(name))
      return this.#refuse(
        value.span,
        `\`${name}\` contains itself`,
        "schemas are finite: write as many levels as you need",
      );
    this.#open.push(name);
    const schema = this.#schema(definition);
    this.#open.pop();
    return schema;
  }

  /** A branch of `anyOf` with its references resolved: its types tell the branches apart. */
  #resolveReferences(node: YamlNode, open: readonly YamlNode[] = []): YamlNode {
    const definition = definitionOf(node, this.#root);
    return definition === undefined || open.includes(definition)
      ? node
      : this.#resolveReferences(definition, [...open, definition]);
  }

  #anyOf({ key, value }: YamlEntry): Schema {
    const nodes = value.kind === "list" ? value.items : [];
    if (nodes.length === 0) return this.#refuse(key.span, "`anyOf` is a list of schemas");
    const branches = nodes.map((node): Branch => {
      const resolved = this.#resolveReferences(node);
      const types = resolved.kind === "map" ? readTypes(resolved, this.#report) : undefined;
      return { schema: this.#schema(node), types, node: resolved };
    });
    if (branches.some(({ schema }) => schema.type.kind === "broken")) return unread;
    return (
      anyOfSchema(branches) ??
      this.#refuse(
        key.span,
        "the branches of `anyOf` must be told apart by `type`, or by one required member with a `const`",
      )
    );
  }
}

function readTypes(node: YamlMap, report: Report): readonly JsonType[] | undefined {
  const entry = node.entries.get("type");
  if (entry === undefined) return undefined;
  const items = itemsOf(entry.value);
  if (items.length === 0)
    report.add("schema", entry.value.span, "`type` is an empty list", `types are ${jsonTypes.join(", ")}`);
  return items.flatMap((item) => {
    const name = item.kind === "scalar" ? (item.value === null ? "null" : item.text) : "";
    const type = jsonTypes.find((candidate) => candidate === name);
    if (type !== undefined) return [type];
    const hint = didYouMean(name, jsonTypes, `types are ${jsonTypes.join(", ")}`);
    report.add("schema", item.span, `\`${name}\` is not a type of JSON`, hint);
    return [];
  });
}

/** The values of `const`, then those of `enum`: a value must be in each list. */
function readValues(node: YamlMap, report: Report): readonly (readonly Json[])[] {
  const constant = node.entries.get("const");
  const listed = node.entries.get("enum");
  const found: (readonly Json[])[] = constant === undefined ? [] : [[toJson(constant.value)]];
  if (listed?.value.kind === "list" && listed.value.items.length > 0) found.push(listed.value.items.map(toJson));
  else if (listed !== undefined) report.add("schema", listed.key.span, "`enum` is a list of values");
  return found;
}

function isNotNegative(node: YamlMap, values: readonly Json[] | undefined): boolean {
  const lower = ["minimum", "exclusiveMinimum"].map((name) => node.entries.get(name)?.value);
  if (lower.some((value) => value?.kind === "scalar" && isExact(value.value) && compare(value.value, 0) >= 0))
    return true;
  return values?.every((value) => isExact(value) && compare(value, 0) >= 0) === true;
}

function readKeyword(name: string, { value }: YamlEntry, report: Report): Validator | undefined {
  if (bounds.has(name)) {
    const bound = value.kind === "scalar" ? value.value : null;
    const isCount = name.endsWith("Length") || name.endsWith("Items");
    const fits = isExact(bound) && (isCount ? isCountable(bound) : name !== "multipleOf" || compare(bound, 0) > 0);
    if (fits) return boundValidator(name, bound);
    report.add(
      "schema",
      value.span,
      `\`${name}\` is ${isCount ? "a whole number of 0 or more" : name === "multipleOf" ? "a number above 0" : "a number"}`,
    );
  }
  if (name === "pattern") return readPattern(value, report);
  if (name !== "uniqueItems") return undefined;
  if (value.kind !== "scalar" || typeof value.value !== "boolean")
    report.add("schema", value.span, "`uniqueItems` is true or false");
  return value.kind === "scalar" && value.value === true ? uniqueValidator : undefined;
}

function readPattern(node: YamlNode, report: Report): Validator | undefined {
  const text = node.kind === "scalar" && typeof node.value === "string" ? node.value : undefined;
  if (text === undefined) {
    report.add("schema", node.span, "`pattern` is a text");
    return undefined;
  }
  const compiled = compilePattern(text);
  if (!compiled.ok) {
    report.add("pattern", node.span, compiled.problem.message, compiled.problem.hint);
    return undefined;
  }
  const { test } = compiled.value;
  return (value) => {
    const fits = typeof value === "string" ? test(value) : true;
    if (fits === true) return undefined;
    return mismatch(fits === undefined ? "is too long for its pattern" : `must match the pattern ${text}`, value);
  };
}

function readRequired(node: YamlMap, report: Report): ReadonlyMap<string, Span> {
  const value = node.entries.get("required")?.value;
  if (value === undefined) return new Map();
  if (value.kind === "list" && value.items.every((item) => item.kind === "scalar"))
    return new Map(value.items.map((item) => [item.kind === "scalar" ? item.text : "", item.span]));
  report.add("schema", value.span, "`required` is a list of names");
  return new Map();
}

/** The schema in the root that a node refers to by `$ref`. */
export function definitionOf(node: YamlNode, root: YamlNode): YamlNode | undefined {
  const target = memberOf(node, "$ref");
  return target?.kind === "scalar" ? memberOf(memberOf(root, "$defs"), definitionName(target.text)) : undefined;
}

function definitionName(target: string): string {
  return /^#\/\$defs\/([^/]+)$/.exec(target)?.[1] ?? "";
}

function isCountable(bound: Exact): boolean {
  return typeof bound === "number" && bound >= 0;
}

function valuesType(values: readonly Json[] | undefined): Type {
  if (values === undefined) return any;
  const types = values.map((value): Type => {
    if (typeof value === "string") return string;
    if (typeof value === "boolean") return boolean;
    if (value === null) return { kind: "null" };
    return isExact(value) ? (compare(value, 0) >= 0 ? size : number) : any;
  });
  return joinAll(types) ?? any;
}
