import { isExact, spellValue } from "../../../../readers/src/ir.ts";
import type { Json, JsonObject } from "../../../../core/src/wire/mod.ts";
import { isJsonList, isObject, shapeOf } from "../formula/shapes.ts";
import { patternTerm } from "./pattern.ts";
import { tags, type SymbolicValue, type Sight, type Tag } from "./symbolic-value.ts";
import { and, equal, implies, literal, not, or, real, type Term } from "./term.ts";

/** Unknown values for the parts of a schema whose translation is not exact. */
export interface Unknowns {
  /** Unknown, true or false; the same for one key. */
  readonly unknown: (key: string) => Term;
}

/**
 * Does the value of the symbol match the schema? First call `declareSchema` with every schema for the symbol: a closed
 * object refuses the members of the others.
 */
export function meets(
  schema: Json | undefined,
  symbol: SymbolicValue,
  unknowns: Unknowns,
  root: Json | undefined = schema,
): Term {
  const part = shapeOf(schema, root)?.schema;
  if (part === undefined) return "true";
  const branches = part.get("anyOf");
  if (isJsonList(branches)) return or(...branches.map((branch) => meets(branch, symbol, unknowns, root)));
  return and(
    ofTypes(part, symbol),
    ofValues(part, symbol, unknowns),
    ofBounds(part, symbol, unknowns),
    ofObject(part, symbol, unknowns, root),
    ofList(part, symbol, unknowns, root),
  );
}

/** Declares the members and list lengths of a schema for the symbol. Must be called before everything else. */
export function declareSchema(schema: Json | undefined, symbol: SymbolicValue, sight: Sight): void {
  const number = sight.schemas;
  if (schema !== undefined) declarePart(schema, symbol, number, schema);
}

function declarePart(schema: Json | undefined, symbol: SymbolicValue, number: number, root: Json): void {
  const part = shapeOf(schema, root)?.schema;
  if (part === undefined) return;
  const branches = part.get("anyOf");
  if (isJsonList(branches)) for (const branch of branches) declarePart(branch, symbol, number, root);
  const properties = part.get("properties");
  if (isObject(properties))
    for (const [name, each] of properties) declarePart(each, symbol.member(name).symbol, number, root);
  const most = part.get("maxItems");
  if (speaksOf(part, "array")) symbol.takesItems(number, typeof most === "number" ? most : Infinity);
  const items = part.get("items");
  if (items !== undefined) symbol.greet((item) => declarePart(items, item, number, root));
}

const tagsOfTypes: Readonly<Record<string, Tag>> = {
  object: "object",
  array: "list",
  string: "text",
  number: "number",
  integer: "number",
  boolean: "boolean",
  null: "null",
};

function ofTypes(schema: JsonObject, symbol: SymbolicValue): Term {
  const type = schema.get("type");
  if (type === undefined) return "true";
  const types = isJsonList(type) ? type : [type];
  return or(
    ...types.map((name) => {
      const tag = typeof name === "string" ? tagsOfTypes[name] : undefined;
      if (tag === undefined) return "false";
      return name === "integer" ? and(symbol.is(tag), symbol.isWhole) : symbol.is(tag);
    }),
  );
}

function ofValues(schema: JsonObject, symbol: SymbolicValue, unknowns: Unknowns): Term {
  const listed = schema.get("enum");
  return and(
    schema.has("const") ? equalsJson(symbol, schema.get("const") ?? null, unknowns) : "true",
    isJsonList(listed) ? or(...listed.map((value) => equalsJson(symbol, value, unknowns))) : "true",
  );
}

/** Is the value of the symbol exactly this value? */
export function equalsJson(symbol: SymbolicValue, value: Json, unknowns: Unknowns): Term {
  if (value === null) return symbol.is("null");
  if (typeof value === "boolean") return and(symbol.is("boolean"), equal(symbol.boolean, String(value)));
  if (typeof value === "string") {
    const text = literal(value);
    return and(
      symbol.is("text"),
      text === undefined ? unknowns.unknown(`${symbol.id} is ${value}`) : equal(symbol.text, text),
    );
  }
  if (isExact(value)) return and(symbol.is("number"), equal(symbol.number, real(value)));
  return and(
    symbol.is(isJsonList(value) ? "list" : "object"),
    unknowns.unknown(`${symbol.id} is ${spellValue(value)}`),
  );
}

function ofBounds(schema: JsonObject, symbol: SymbolicValue, unknowns: Unknowns): Term {
  const found: Term[] = [];
  for (const [name, bound] of schema) {
    if (isExact(bound)) found.push(ofBound(name, real(bound), symbol));
    if (name === "pattern" && typeof bound === "string") {
      const pattern = patternTerm(bound);
      const fits = pattern === undefined ? unknowns.unknown(`${symbol.id} fits ${bound}`) : symbol.matches(pattern);
      found.push(implies(symbol.is("text"), fits));
    }
  }
  return and(...found);
}

const bounds: Readonly<Record<string, readonly ["length" | "number" | "size", string]>> = {
  minimum: ["number", ">="],
  maximum: ["number", "<="],
  exclusiveMinimum: ["number", ">"],
  exclusiveMaximum: ["number", "<"],
  minLength: ["length", ">="],
  maxLength: ["length", "<="],
  minItems: ["size", ">="],
  maxItems: ["size", "<="],
};

function ofBound(name: string, bound: Term, symbol: SymbolicValue): Term {
  if (name === "multipleOf") return implies(symbol.is("number"), symbol.isMultipleOf(bound));
  const [of, operator] = bounds[name] ?? [];
  if (of === undefined) return "true";
  if (of === "number") return implies(symbol.is("number"), `(${operator} ${symbol.number} ${bound})`);
  return of === "length"
    ? implies(symbol.is("text"), `(${operator} (str.len ${symbol.text}) ${whole(bound)})`)
    : implies(symbol.is("list"), `(${operator} ${symbol.length} ${whole(bound)})`);
}

function whole(bound: Term): Term {
  return bound.replace(/\.0$/, "");
}

function ofObject(schema: JsonObject, symbol: SymbolicValue, unknowns: Unknowns, root: Json | undefined): Term {
  if (!speaksOf(schema, "object")) return "true";
  const properties = schema.get("properties");
  const declared: JsonObject = isObject(properties) ? properties : new Map();
  const required = schema.get("required");
  const additional = schema.get("additionalProperties") ?? true;
  const found: Term[] = [];
  for (const name of isJsonList(required) ? required : [])
    if (typeof name === "string") found.push(symbol.member(name).present);
  for (const [name, { present, symbol: member }] of symbol.members) {
    const own = declared.get(name);
    const fits = own === undefined && additional === false ? "false" : meets(own ?? additional, member, unknowns, root);
    found.push(implies(present, fits));
  }
  if (additional === false) found.push(not(symbol.others));
  else if (isObject(additional))
    found.push(implies(symbol.others, unknowns.unknown(`${symbol.id} others ${spellValue(additional)}`)));
  return implies(symbol.is("object"), and(...found));
}

function ofList(schema: JsonObject, symbol: SymbolicValue, unknowns: Unknowns, root: Json | undefined): Term {
  if (!speaksOf(schema, "array")) return "true";
  const items = schema.get("items");
  const fits = items === undefined ? "true" : symbol.every((item) => meets(items, item, unknowns, root));
  const unique = schema.get("uniqueItems") === true ? distinctItems(symbol, unknowns) : "true";
  return implies(symbol.is("list"), and(fits, unique));
}

function distinctItems(symbol: SymbolicValue, unknowns: Unknowns): Term {
  if (symbol.view === "any") return unknowns.unknown(`${symbol.id} differ`);
  const items = symbol.allItems();
  const pairs = items.flatMap(([, a], at) => items.slice(at + 1).map(([isThere, b]) => [isThere, a, b] as const));
  return and(...pairs.map(([isThere, a, b]) => implies(isThere, not(sameScalar(a, b)))));
}

/** Do both symbols have equal single values? Lists and objects never count as equal. */
export function sameScalar(a: SymbolicValue, b: SymbolicValue): Term {
  const same = (tag: Tag, what: Term): Term => and(equal(a.tag, String(tags[tag])), what);
  return and(
    equal(a.tag, b.tag),
    or(
      a.is("null"),
      same("boolean", equal(a.boolean, b.boolean)),
      same("number", equal(a.number, b.number)),
      same("text", equal(a.text, b.text)),
    ),
  );
}

function speaksOf(schema: JsonObject, type: string): boolean {
  const types = schema.get("type");
  return types === type || (isJsonList(types) && types.includes(type));
}
