import { compileContracts } from "../../../../readers/src/contract.ts";
import { compare, isExact } from "../../../../readers/src/ir.ts";
import { quoteAscii, type Json, type JsonObject } from "../../../../core/src/wire/mod.ts";
import { yamlFlow } from "./yaml-flow.ts";

/** A schema in the published subset, and the parts of the source that it does not express. */
export interface Subset {
  readonly schema: Json;
  readonly notes: readonly SchemaNote[];
}

export interface SchemaNote {
  /** The member, in the spelling of conditions: `input.to[]`. */
  readonly at: string;
  readonly text: string;
}

/** Nodes of one tool's schema, with each `$ref` expanded; beyond this number, the rest is left open. */
const partsMax = 5000;
const depthMax = 24;

const types = ["object", "array", "string", "number", "integer", "boolean", "null"];
/** Keywords that are copied, and the type that each constrains. */
const owners: ReadonlyMap<string, string> = new Map([
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"].map(
    (name) => [name, "number"] as const,
  ),
  ...["minLength", "maxLength", "pattern"].map((name) => [name, "string"] as const),
  ...["items", "minItems", "maxItems", "uniqueItems"].map((name) => [name, "array"] as const),
  ...["properties", "required", "additionalProperties"].map((name) => [name, "object"] as const),
]);
/** Keywords that do not constrain values. */
const silent = new Set(
  (
    "title description examples example default format deprecated $comment $schema $id $defs definitions readOnly writeOnly " +
    "xml externalDocs discriminator $anchor contentEncoding contentMediaType contentSchema"
  ).split(" "),
);
/** Keywords with their own code. */
const handled = new Set(["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "nullable"]);

/**
 * Converts a tool's input schema to the subset of JSON Schema that contracts have. Parts that the subset cannot express
 * are left open, with a note, and references are expanded. An object that does not mention other members accepts none,
 * and one that declares no member accepts any.
 *
 * @param root the document that contains the targets of references
 */
export function toSubset(schema: Json, root: Json = schema): Subset {
  const converter = new Converter(root);
  return { schema: converter.input(schema), notes: converter.notes };
}

class Converter {
  readonly notes: SchemaNote[] = [];
  readonly #root: Json;
  readonly #open: Json[] = [];
  #parts = 0;

  constructor(root: Json) {
    this.#root = root;
  }

  /** An input is an object, whatever else the source says. */
  input(schema: Json): Json {
    const found = this.#schema(schema, "input");
    if (found instanceof Map && found.get("type") === "object") {
      const declares = (found.get("properties") as JsonObject | undefined)?.size ?? 0;
      const says = this.#resolve(schema);
      const isSilent = !(says instanceof Map) || !says.has("additionalProperties");
      return declares === 0 && isSilent ? withMember(found, "additionalProperties", false) : found;
    }
    this.#note("input", "it is not described as one object, so any object is accepted");
    return new Map<string, Json>([
      ["type", "object"],
      ["additionalProperties", true],
    ]);
  }

  #note(at: string, text: string): void {
    this.notes.push({ at, text });
  }

  #schema(node: Json, at: string): Json {
    this.#parts += 1;
    if (node === true) return true;
    if (!(node instanceof Map))
      return this.#leaveOpen(at, node === false ? "`false` as a schema" : "something that is not a schema");
    if (this.#parts > partsMax || this.#open.length > depthMax)
      return this.#leaveOpen(at, "too many or too deep parts");
    if (this.#open.includes(node)) return this.#leaveOpen(at, "a schema that contains itself");
    this.#open.push(node);
    const found = this.#whole(this.#flat(node, at), at);
    this.#open.pop();
    return found;
  }

  #leaveOpen(at: string, what: string): Json {
    this.#note(at, `${what} is left out: any value is accepted`);
    return new Map<string, Json>();
  }

  #resolve(node: Json): Json {
    const target = node instanceof Map ? node.get("$ref") : undefined;
    return typeof target === "string" ? resolvePointer(this.#root, target) : node;
  }

  /** Combines `$ref` and `allOf` into one schema. */
  #flat(node: JsonObject, at: string, depth = 0): JsonObject {
    const target = node.get("$ref");
    const all = node.get("allOf");
    if ((target === undefined && all === undefined) || depth > depthMax) return node;
    const rest = new Map([...node].filter(([name]) => name !== "$ref" && name !== "allOf"));
    const parts: Json[] = Array.isArray(all) ? [...(all as readonly Json[])] : [];
    if (target !== undefined) parts.unshift(this.#target(target, at));
    return parts.reduce<JsonObject>((whole, part) => {
      if (!(part instanceof Map)) return whole;
      // A reference to a part that is being expanded: the reader of members finds it again and reports it.
      if (!this.#open.includes(part)) return this.#mergeSchemas(this.#flat(part, at, depth + 1), whole, at);
      this.#note(at, "a schema that contains itself is left out");
      return whole;
    }, rest);
  }

  #target(target: Json, at: string): Json {
    const found = typeof target === "string" ? resolvePointer(this.#root, target) : null;
    if (found instanceof Map) {
      if (!this.#open.includes(found)) return found;
      return this.#leaveOpen(at, "a schema that contains itself");
    }
    return this.#leaveOpen(
      at,
      `a \`$ref\` to ${typeof target === "string" ? quoteAscii(target) : "something that is not a text"}`,
    );
  }

  #mergeSchemas(a: JsonObject, b: JsonObject, at: string): JsonObject {
    const merged = new Map(a);
    for (const [name, value] of b) {
      const other = a.get(name);
      if (other === undefined || silent.has(name)) merged.set(name, value);
      else if (name === "properties" && other instanceof Map && value instanceof Map) {
        const both = [...value].map(([key, inner]): [string, Json] => {
          const known = other.get(key);
          return [key, known === undefined ? inner : new Map<string, Json>([["allOf", [known, inner]]])];
        });
        merged.set(name, new Map([...other, ...both]));
      } else if (name === "required" && Array.isArray(other) && Array.isArray(value)) {
        merged.set(name, [...new Set([...(other as readonly Json[]), ...(value as readonly Json[])])]);
      } else if (yamlFlow(other) !== yamlFlow(value)) {
        this.#note(at, `one of two ${quoteAscii(name)} that apply together is left out`);
      }
    }
    return merged;
  }

  #whole(node: JsonObject, at: string): Json {
    for (const name of node.keys()) {
      if (owners.has(name) || silent.has(name) || handled.has(name) || name.startsWith("x-")) continue;
      this.#note(at, `${quoteAscii(name)} is left out`);
    }
    const choice = node.get("anyOf") ?? node.get("oneOf");
    if (Array.isArray(choice)) return this.#choice(node, choice as readonly Json[], at);
    return this.#plain(node, at);
  }

  #choice(node: JsonObject, choice: readonly Json[], at: string): Json {
    if (node.has("anyOf") && node.has("oneOf")) this.#note(at, "`oneOf` next to `anyOf` is left out");
    const around = new Map([...node].filter(([name]) => !["anyOf", "oneOf"].includes(name) && !silent.has(name)));
    if (choice.length === 0) {
      this.#note(at, "it has no alternative, so it is left open");
      return this.#plain(around, at);
    }
    const branches = choice.map((branch) => {
      const inner = this.#resolve(branch);
      const isPlain = around.size === 0 || !(inner instanceof Map);
      return this.#schema(isPlain ? branch : new Map<string, Json>([["allOf", [around, inner]]]), at);
    });
    const [first] = branches;
    if (branches.length === 1 && first !== undefined) return first;
    const values = branches.map((branch) => onlyConst(branch));
    if (values.every((value) => value !== undefined)) return new Map([["enum", values]]);
    const found = new Map<string, Json>([["anyOf", branches]]);
    if (isTaken(found)) return found;
    const joined = [...new Set(branches.flatMap(scalarTypes))];
    this.#note(at, "its alternatives cannot be told apart by `type` or by one `const`, so they are left open");
    return joined.length > 0 && branches.every((branch) => scalarTypes(branch).length > 0)
      ? new Map<string, Json>([["type", joined.length === 1 ? (joined[0] ?? null) : joined]])
      : new Map<string, Json>();
  }

  #plain(node: JsonObject, at: string): Json {
    const named = this.#types(node, at);
    const found = new Map<string, Json>();
    if (named.length > 0) found.set("type", named.length === 1 ? (named[0] ?? null) : [...named]);
    for (const name of ["const", "enum"]) {
      const value = node.get(name);
      if (value === undefined) continue;
      const isNull = name === "enum" && node.get("nullable") === true && Array.isArray(value) && !value.includes(null);
      const values = isNull ? [...(value as readonly Json[]), null] : value;
      if (name === "const" || (Array.isArray(values) && values.length > 0)) found.set(name, values);
      else this.#note(at, `${quoteAscii(name)} is left out: it is not a list of values`);
    }
    for (const [name, owner] of owners) {
      const value = node.get(name);
      if (value === undefined) continue;
      if (!named.some((type) => type === owner || (owner === "number" && type === "integer"))) {
        this.#note(at, `${quoteAscii(name)} is left out: its type is not allowed here`);
      } else this.#keyword(found, name, node, at);
    }
    if (named.includes("object")) this.#object(found, node, at);
    const order = ["type", "additionalProperties", "required", "properties"];
    const rank = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length);
    return new Map([...found].toSorted(([a], [b]) => rank(a) - rank(b)));
  }

  #types(node: JsonObject, at: string): readonly string[] {
    const value = node.get("type");
    const written = value === undefined ? [] : Array.isArray(value) ? (value as readonly Json[]) : [value];
    const named = written.filter((type): type is string => typeof type === "string" && types.includes(type));
    if (named.length < written.length) this.#note(at, "a type that JSON does not have is left out");
    if (named.length > 0) return node.get("nullable") === true ? [...new Set([...named, "null"])] : [...new Set(named)];
    const implied = new Set([...owners].flatMap(([name, owner]) => (node.has(name) ? [owner] : [])));
    if (implied.size !== 1 || node.has("enum") || node.has("const")) return [];
    this.#note(at, `\`type: ${[...implied][0]}\` is added: the source names none`);
    return [...implied];
  }

  #keyword(found: Map<string, Json>, name: string, node: JsonObject, at: string): void {
    const value = node.get(name);
    if (value === undefined || name === "required" || name === "additionalProperties") return;
    if (name === "properties") {
      const members = value instanceof Map ? [...(value as JsonObject)] : [];
      if (members.length === 0) return;
      found.set(name, new Map(members.map(([key, inner]) => [key, this.#schema(inner, `${at}.${key}`)])));
    } else if (name === "items") {
      found.set(name, this.#schema(value, `${at}[]`));
    } else if (name.startsWith("exclusive") && typeof value === "boolean") {
      // OpenAPI 3.0: a flag next to the bound.
      const bound = name === "exclusiveMinimum" ? "minimum" : "maximum";
      const limit = node.get(bound);
      if (!value || limit === undefined) return;
      found.delete(bound);
      found.set(name, limit);
    } else if (name === "uniqueItems" && value === false) return;
    else if (isBound(name, value) ?? isTaken(new Map([...found, [name, value]]))) found.set(name, value);
    else this.#note(at, `${quoteAscii(name)} is left out: the subset does not accept its value`);
  }

  #object(found: Map<string, Json>, node: JsonObject, at: string): void {
    const properties = (found.get("properties") as JsonObject | undefined) ?? new Map<string, Json>();
    const wanted = node.get("required");
    const names = (Array.isArray(wanted) ? (wanted as readonly Json[]) : []).filter((name) => typeof name === "string");
    const missing = [...new Set(names)].filter((name) => !properties.has(name));
    if (missing.length > 0)
      found.set("properties", new Map([...properties, ...missing.map((name): [string, Json] => [name, new Map()])]));
    if (names.length > 0) found.set("required", [...new Set(names)]);
    const others = node.get("additionalProperties");
    const isAny = others === undefined ? properties.size === 0 && missing.length === 0 : others === true;
    const inner = others instanceof Map ? this.#schema(others, `${at}.*`) : isAny;
    found.set("additionalProperties", inner instanceof Map && inner.size === 0 ? true : inner);
  }
}

/** Does the subset accept the value of a bound? Undefined for keywords that are not bounds. */
function isBound(name: string, value: Json): boolean | undefined {
  if (/(?:Length|Items)$/.test(name) && name !== "uniqueItems") return typeof value === "number" && value >= 0;
  if (!/[mM](?:inimum|aximum|ultipleOf)$/.test(name)) return undefined;
  return isExact(value) && (name !== "multipleOf" || compare(value, 0) > 0);
}

const taken = new Map<string, boolean>();

/** Does the gate's own reader accept it? It checks patterns, alternatives and bounds. */
function isTaken(schema: Json): boolean {
  const isObject = schema instanceof Map && schema.get("type") === "object";
  const closed = yamlFlow(isObject ? withMember(schema, "additionalProperties", true) : schema);
  return taken.getOrInsertComputed(closed, () => {
    const input = `{ type: object, additionalProperties: false, properties: { x: ${closed} } }`;
    const text = `contract: c\ntools:\n  t: { input: ${input}, otherwise: BLOCK }\n`;
    return compileContracts([{ name: "schema", text }]).ok;
  });
}

function onlyConst(branch: Json): Json | undefined {
  if (!(branch instanceof Map)) return undefined;
  const isOnly = [...branch.keys()].every((name) => name === "const" || name === "type");
  return isOnly ? (branch.get("const") as Json | undefined) : undefined;
}

function scalarTypes(branch: Json): readonly string[] {
  const value: Json | undefined = branch instanceof Map ? (branch.get("type") as Json | undefined) : undefined;
  const named = Array.isArray(value) ? (value as readonly Json[]) : [value ?? ""];
  const found = named.filter(
    (type) => typeof type === "string" && /^(?:string|number|integer|boolean|null)$/.test(type),
  );
  return found.length === named.length ? (found as readonly string[]) : [];
}

/** The target of a local reference (`#/a/b`, RFC 6901); undefined values become null. */
export function resolvePointer(root: Json, target: string): Json {
  if (!target.startsWith("#")) return null;
  const names = target.slice(1).split("/").slice(1);
  return names.reduce<Json>((node, name) => {
    const key = decodeSafely(name).replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(node)) return (node as readonly Json[])[Number(key)] ?? null;
    return node instanceof Map ? ((node.get(key) as Json | undefined) ?? null) : null;
  }, root);
}

function decodeSafely(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function withMember(map: JsonObject, name: string, value: Json): JsonObject {
  return new Map([...map, [name, value]]);
}
