import type { Json, JsonObject } from "../../../../core/src/wire/mod.ts";
import { resolvePointer } from "./subset.ts";
import type { SourceTool } from "./source-tool.ts";

const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/**
 * Each operation of an OpenAPI 3 document as a tool. `operationId` is its name; its parameters and the members of its
 * JSON body are the members of one input. If both have a member of one name, the body's is called `body_NAME`.
 */
export function openApiTools(document: JsonObject): readonly SourceTool[] {
  const paths = asMap(document.get("paths"));
  return [...paths].flatMap(([path, item]) => {
    const shared = asMap(resolveReference(item, document));
    return methods.flatMap((method) => {
      const operation = shared.get(method);
      if (!(operation instanceof Map)) return [];
      return [toolOf({ document, path, method, shared, operation: operation as JsonObject })];
    });
  });
}

interface Operation {
  readonly document: JsonObject;
  readonly path: string;
  readonly method: string;
  /** The path's own members, which apply to each of its operations. */
  readonly shared: JsonObject;
  readonly operation: JsonObject;
}

function toolOf({ document, path, method, shared, operation }: Operation): SourceTool {
  const id = operation.get("operationId");
  const name =
    typeof id === "string" && id !== "" ? id : `${method}${path.replaceAll(/[^A-Za-z0-9]+/g, "_")}`.replace(/_$/, "");
  const properties = new Map<string, Json>();
  const required: string[] = [];
  for (const item of [...asList(shared.get("parameters")), ...asList(operation.get("parameters"))]) {
    const parameter = asMap(resolveReference(item, document));
    const key = parameter.get("name");
    if (typeof key !== "string") continue;
    const content = [...asMap(parameter.get("content")).values()][0];
    properties.set(key, parameter.get("schema") ?? asMap(content).get("schema") ?? new Map());
    if (parameter.get("required") === true) required.push(key);
  }
  addBody(operation, document, properties, required);
  const description = operation.get("summary") ?? operation.get("description");
  const input = new Map<string, Json>([
    ["type", "object"],
    ["required", [...new Set(required)]],
    ["properties", properties],
  ]);
  return { name, description: typeof description === "string" ? description : "", input, root: document };
}

function addBody(operation: JsonObject, document: JsonObject, properties: Map<string, Json>, required: string[]): void {
  const body = asMap(resolveReference(operation.get("requestBody") ?? null, document));
  const content = asMap(body.get("content"));
  const type = [...content.keys()].find((name) => /json/i.test(name)) ?? [...content.keys()][0];
  if (type === undefined) return;
  const schema = asMap(content.get(type)).get("schema") ?? new Map<string, Json>();
  const flat = asMap(resolveReference(schema, document));
  const members = asMap(flat.get("properties"));
  const isRequired = body.get("required") === true;
  const isPlain = [...flat].every(
    ([name, value]) =>
      plainKeywords.has(name) || name.startsWith("x-") || (name === "additionalProperties" && value === false),
  );
  if (members.size === 0 || !isPlain) {
    const key = properties.has("body") ? "request_body" : "body";
    properties.set(key, schema);
    if (isRequired) required.push(key);
    return;
  }
  const wanted = asList(flat.get("required"));
  for (const [name, member] of members) {
    const key = properties.has(name) ? `body_${name}` : name;
    properties.set(key, member);
    if (isRequired && wanted.includes(name)) required.push(key);
  }
}

/** A body with only these keywords becomes members of the input; any other stays whole. */
const plainKeywords = new Set(["type", "properties", "required", "title", "description", "example", "examples", "xml"]);

function resolveReference(node: Json, document: JsonObject): Json {
  const seen = new Set<Json>();
  let found = node;
  while (found instanceof Map && typeof found.get("$ref") === "string" && !seen.has(found)) {
    seen.add(found);
    found = resolvePointer(document, String(found.get("$ref")));
  }
  return found;
}

export function asMap(value: Json | undefined): JsonObject {
  return value instanceof Map ? (value as JsonObject) : new Map<string, Json>();
}

function asList(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : [];
}
