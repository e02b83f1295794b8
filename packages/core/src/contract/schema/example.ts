import { Decimal, jsonText, type Json, type JsonObject } from "../../wire/mod.ts";
import type { ContractDocument } from "../text/document.ts";
import { compilePattern } from "../value/pattern.ts";
import { itemsOf, memberOf, toJson, type YamlMap, type YamlNode } from "../text/yaml.ts";
import { definitionOf } from "./read.ts";
import { isOfType, jsonTypes } from "./schema.ts";

/**
 * Returns a call of a tool from which a person can start: the body of a POST /check. Its input and facts have the
 * members that the schemas require, or all if they require none. A schema's own `examples`, `default`, `const` and `enum`
 * are used. A few usual texts are tried for a `pattern`, so a contract may refuse the call.
 */
export function exampleCall(documents: readonly ContractDocument[], tool: string): JsonObject {
  const routing = documents.filter(({ tools }) => tools.has(tool));
  const inputs = routing.map(({ tools }) => tools.get(tool)?.input);
  return new Map<string, Json>([
    ["tool_name", tool],
    ["session_id", "example"],
    ["tool_input", exampleOf(inputs)],
    ["platform_state", exampleOf(routing.map(({ platform }) => platform))],
  ]);
}

/** The most characters of a text, and of a list with several items, however many a schema asks for. */
const longest = 100;
const listCharacters = 2000;

/** An object for several schemas of objects. */
function exampleOf(schemas: readonly (YamlNode | undefined)[]): JsonObject {
  const values = schemas.map((schema) => (schema === undefined ? null : makeExampleValue(schema, schema)));
  return new Map(values.flatMap((value) => (value instanceof Map ? [...(value as JsonObject)] : [])));
}

function makeExampleValue(schema: YamlNode, root: YamlNode): Json {
  if (schema.kind !== "map") return "";
  const at = (name: string): YamlNode | undefined => memberOf(schema, name);
  const definition = definitionOf(schema, root);
  if (definition !== undefined) return makeExampleValue(definition, root);
  const types = itemsOf(at("type")).map((type) => (type.kind === "scalar" ? type.text : ""));
  const given = [at("const"), ...itemsOf(at("examples")), at("default"), ...itemsOf(at("enum"))]
    .flatMap((each) => (each === undefined ? [] : [toJson(each)]))
    .find((value) => types.length === 0 || jsonTypes.some((type) => types.includes(type) && isOfType(type, value)));
  if (given !== undefined) return given;
  const [branch] = itemsOf(at("anyOf"));
  if (branch !== undefined) return makeExampleValue(branch, root);
  switch (types[0]) {
    case "array":
      return makeExampleList(schema, root);
    case "boolean":
      return false;
    case "integer":
    case "number":
      return makeExampleNumber(schema, types[0] === "integer");
    case "null":
      return null;
    case "string":
      return makeExampleText(schema);
    default:
      return membersOf(schema, root);
  }
}

/** The first of some usual texts that the schema allows; else the first one, which a person corrects. */
const texts = ["text", "1", "USD", "2026-01-31", "name@example.com", "https://example.com/", "/path"] as const;

function makeExampleText(schema: YamlMap): string {
  const written = memberOf(schema, "pattern");
  const pattern = written?.kind === "scalar" ? compilePattern(written.text) : undefined;
  const least = Math.min(boundOf(schema, "minLength") ?? 0, longest);
  const most = boundOf(schema, "maxLength") ?? longest;
  const fitting = texts.map((text) => text.padEnd(least, text).slice(0, most));
  return fitting.find((text) => pattern?.ok !== true || pattern.value.test(text)) ?? fitting[0] ?? "";
}

function makeExampleList(schema: YamlMap, root: YamlNode): Json {
  const items = memberOf(schema, "items");
  const least = boundOf(schema, "minItems") ?? 0;
  const length = items === undefined ? least : Math.min(Math.max(least, 1), boundOf(schema, "maxItems") ?? Infinity);
  const item = items === undefined ? "" : makeExampleValue(items, root);
  const room = Math.max(1, Math.floor(listCharacters / jsonText(item).length));
  return Array.from({ length: Math.min(length, room) }, () => item);
}

function membersOf(schema: YamlMap, root: YamlNode): Json {
  const properties = memberOf(schema, "properties");
  const needed = itemsOf(memberOf(schema, "required")).map((item) => (item.kind === "scalar" ? item.text : ""));
  const all = properties?.kind === "map" ? [...properties.entries] : [];
  const shown = needed.length === 0 ? all : all.filter(([name]) => needed.includes(name));
  return new Map(shown.map(([name, { value }]) => [name, makeExampleValue(value, root)]));
}

/** 1 if the schema allows it, else a number at one of its bounds or between them. */
function makeExampleNumber(schema: YamlMap, isInteger: boolean): Json {
  const [least, above] = [boundOf(schema, "minimum") ?? -Infinity, boundOf(schema, "exclusiveMinimum") ?? -Infinity];
  const [most, below] = [boundOf(schema, "maximum") ?? Infinity, boundOf(schema, "exclusiveMaximum") ?? Infinity];
  const step = boundOf(schema, "multipleOf") ?? 1;
  const times = [1, 2, Math.ceil(least / step), Math.floor(above / step) + 1, Math.floor(most / step)];
  const steps = [...times, Math.ceil(below / step) - 1].map((each) => Number((each * step).toPrecision(15)));
  const between = isInteger || schema.entries.has("multipleOf") ? [] : [least, most, (above + below) / 2];
  const fits = (number: number): boolean =>
    number >= least && number <= most && number > above && number < below && (!isInteger || Number.isInteger(number));
  const found = [...steps, ...between].find(fits) ?? 1;
  return Number.isSafeInteger(found) ? found : new Decimal(String(found));
}

/** A bound as a double; undefined if it is beyond all of them. */
function boundOf(schema: YamlMap, name: string): number | undefined {
  const node = memberOf(schema, name);
  const value = node === undefined ? undefined : toJson(node);
  const number = value instanceof Decimal ? Number(value.text) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}
