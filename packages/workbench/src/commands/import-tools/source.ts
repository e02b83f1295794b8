import { readFile } from "node:fs/promises";
import { parseDocument } from "yaml";
import { NoSuchFile, whyNot } from "../../../../svc-gate/src/cli/mod.ts";
import { bad, Decimal, good, limits, parseNumber, quoteAscii, utf8Bytes } from "../../../../svc-gate/src/wire/mod.ts";
import type { Json, JsonObject, Result } from "../../../../svc-gate/src/wire/mod.ts";
import { openApiTools } from "./openapi.ts";
import type { SourceTool } from "./source-tool.ts";

export interface Source {
  /** A suitable name for a contract of these tools. */
  readonly name: string;
  readonly tools: readonly SourceTool[];
}

const toolsMax = 5000;

/** The tools that a file describes: an MCP `tools/list` result, a list of functions, or an OpenAPI 3 document. */
export async function readSource(file: string): Promise<Result<Source, string>> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new NoSuchFile(`${file} cannot be read: ${whyNot(error)}`);
  });
  const value = /\.ya?ml$/i.test(file) ? fromYaml(text) : fromJson(text);
  return value.ok ? sourceOf(value.value, nameOf(file)) : bad(`${file}: ${value.problem}`);
}

/** The tools of a value in one of the known formats. */
export function sourceOf(value: Json, name: string): Result<Source, string> {
  if (value instanceof Map && typeof value.get("openapi") === "string") {
    if (!String(value.get("openapi")).startsWith("3.")) return bad("only OpenAPI 3 is supported");
    return checked({ name, tools: openApiTools(value) });
  }
  const list = toolList(value);
  if (list === undefined) return bad("it is not a `tools/list` result, a list of functions or an OpenAPI 3 document");
  const tools = list.map(toolOf);
  if (tools.every((tool) => tool !== undefined)) return checked({ name, tools });
  return bad(`item ${tools.indexOf(undefined) + 1} of its list has no name, or no schema for its input`);
}

function toolList(value: Json): readonly Json[] | undefined {
  if (Array.isArray(value)) return value as readonly Json[];
  if (!(value instanceof Map)) return undefined;
  const inner: Json | undefined = value.get("tools") as Json | undefined;
  if (Array.isArray(inner)) return inner as readonly Json[];
  const result: Json | undefined = value.get("result") as Json | undefined;
  return result instanceof Map ? toolList(result) : undefined;
}

/** MCP calls it `inputSchema`, Anthropic `input_schema`, OpenAI `parameters`, there often inside `function`. */
function toolOf(item: Json): SourceTool | undefined {
  const outer = item instanceof Map ? (item as JsonObject) : undefined;
  const inner = outer?.get("function");
  const tool = inner instanceof Map ? (inner as JsonObject) : outer;
  const name = tool?.get("name");
  if (tool === undefined || typeof name !== "string") return undefined;
  const schema = ["inputSchema", "input_schema", "parameters"]
    .map((key) => tool.get(key))
    .find((found) => found instanceof Map);
  // A function without parameters may leave them out.
  const input = schema ?? (inner === undefined ? undefined : new Map<string, Json>([["type", "object"]]));
  const description = tool.get("description");
  if (input === undefined) return undefined;
  return { name, description: typeof description === "string" ? description : "", input, root: input };
}

/** Tool names are compared byte for byte at every call, so a name that looks like another is not imported. */
function checked(source: Source): Result<Source, string> {
  if (source.tools.length > toolsMax) return bad(`over ${toolsMax} tools`);
  const seen = new Set<string>();
  for (const { name } of source.tools) {
    if (!/^[!-~]+$/.test(name))
      return bad(
        `the name ${quoteAscii(name)} has hidden characters, or letters that look like others: it is not imported`,
      );
    if (name.includes("*") || utf8Bytes(name) > limits.toolNameBytesMax)
      return bad(`${quoteAscii(name)} cannot be the name of a tool`);
    if (seen.has(name)) return bad(`two tools are called ${quoteAscii(name)}`);
    seen.add(name);
  }
  return good(source);
}

function fromJson(text: string): Result<Json, string> {
  try {
    const exact = (_: string, value: unknown, context?: { source?: string }): unknown =>
      typeof value === "number" && context?.source !== undefined ? numberOf(context.source) : value;
    return good(jsonOf(JSON.parse(text, exact)));
  } catch (error) {
    return bad(error instanceof Error ? error.message : String(error));
  }
}

function fromYaml(text: string): Result<Json, string> {
  const document = parseDocument(text, { intAsBigInt: true });
  const [problem] = document.errors;
  if (problem !== undefined) return bad(problem.message);
  try {
    return good(jsonOf(document.toJS({ maxAliasCount: 100 })));
  } catch (error) {
    return bad(error instanceof Error ? error.message : String(error));
  }
}

const depthMax = 200;

/** A JavaScript value as the gate's reader represents it: objects without prototypes, exact numbers. */
export function jsonOf(value: unknown, depth = 0): Json {
  if (depth > depthMax) throw new Error(`over ${depthMax} levels`);
  if (value === null || typeof value === "boolean" || typeof value === "string" || value instanceof Decimal)
    return value;
  if (typeof value === "number" || typeof value === "bigint") return numberOf(String(value));
  if (Array.isArray(value)) return value.map((item) => jsonOf(item, depth + 1));
  if (typeof value !== "object") return null;
  return new Map(Object.entries(value).map(([name, inner]) => [name, jsonOf(inner, depth + 1)]));
}

function numberOf(text: string): number | Decimal {
  const found = parseNumber(text);
  if (typeof found === "number" || found instanceof Decimal) return found;
  throw new Error(`the number ${text.slice(0, 40)}: ${found.problem}`);
}

function nameOf(file: string): string {
  return file.replace(/^.*[/\\]/, "").replace(/\..*$/, "");
}
