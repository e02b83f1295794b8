import { text as textOf } from "node:stream/consumers";
import { parseDocument } from "yaml";
import { io, readText } from "../../../../gate/src/cli/mod.ts";
import {
  bad,
  Decimal,
  good,
  limits,
  parseNumber,
  quoteAscii,
  utf8Bytes,
  type Json,
  type JsonObject,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { openApiTools } from "./openapi.ts";
import { escapedName, isPrefix } from "./names.ts";
import type { SourceTool } from "./source-tool.ts";

export interface ImportSource {
  /** A suitable name for a contract of these tools. */
  readonly name: string;
  readonly tools: readonly SourceTool[];
  /** The MCP server's part of the names of all these tools. */
  readonly server?: string;
  /** The agent host that has these tools, with its version. */
  readonly host?: string;
  /** Tools that are left out, and why. */
  readonly leftOut?: readonly string[];
}

const toolsMax = 5000;

/**
 * Reads the tools that a file describes; `-` is standard input.
 *
 * @param server the server's part of all names; null keeps the tools' own names, also if the file names a server
 */
export async function readSource(file: string, server?: string | null): Promise<Result<ImportSource, string>> {
  const text = await (file === "-" ? textOf(io().stdin) : readText(file));
  const value = /\.ya?ml$/i.test(file) ? fromYaml(text) : fromJson(text);
  const source = value.ok ? sourceOf(value.value, toBaseName(file), server) : value;
  return source.ok ? source : bad(`${file === "-" ? "standard input" : file}: ${source.problem}`);
}

/** Reads the tools that a text in JSON describes. */
export function sourceIn(text: string, server?: string | null): Result<ImportSource, string> {
  const value = fromJson(text);
  return value.ok ? sourceOf(value.value, "server", server) : value;
}

/**
 * The tools of a value in one of the known formats: an MCP `tools/list` result, the output of `svc-gate mcp tools` or
 * `svc-gate doctor --tools`, a lock file of `svc-gate mcp`, a list of functions, or an OpenAPI 3 document.
 */
export function sourceOf(value: Json, name: string, server?: string | null): Result<ImportSource, string> {
  if (value instanceof Map && typeof value.get("openapi") === "string") {
    if (!String(value.get("openapi")).startsWith("3.")) return bad("only OpenAPI 3 is supported");
    return checkSource({ name, tools: openApiTools(value) });
  }
  const list = toolList(value);
  if (list === undefined) return bad("it is not a `tools/list` result, a list of functions or an OpenAPI 3 document");
  const host = hostIn(value);
  const tools = list.map((item) => toolOf(item, host !== undefined));
  const known = tools.filter((tool) => tool !== undefined);
  if (known.length < tools.length)
    return bad(`item ${tools.indexOf(undefined) + 1} of its list has no name, or no schema for its input`);
  if (host !== undefined) return checkSource({ name: host.agent, tools: known, host: `${host.agent} ${host.version}` });
  const prefix = server === undefined ? textIn(value, "server") : (server ?? undefined);
  if (prefix === undefined) return checkSource({ name, tools: known });
  if (!isPrefix(prefix)) return bad(`${quoteAscii(prefix)} is not a server's part of a name at the gate`);
  return checkSource(ofServer(prefix, known));
}

function ofServer(server: string, tools: readonly SourceTool[]): ImportSource {
  const leftOut: string[] = [];
  const named = tools.flatMap((tool) => {
    const own = escapedName(tool.name);
    const name = `${server}.${own}`;
    if (own !== undefined && own !== "" && utf8Bytes(name) <= limits.toolNameBytesMax) return [{ ...tool, name }];
    leftOut.push(`the tool ${quoteAscii(tool.name)} cannot be called through the gate: its name is too long or broken`);
    return [];
  });
  return { name: server, tools: named, server, leftOut };
}

function hostIn(value: Json): { readonly agent: string; readonly version: string } | undefined {
  const agent = textIn(value, "agent");
  const version = textIn(value, "version") ?? "";
  const isHost = agent !== undefined && /^[a-z][a-z0-9-]{0,63}$/.test(agent) && /^[\w.+-]{1,64}$/.test(version);
  return isHost ? { agent, version } : undefined;
}

function textIn(value: Json, name: string): string | undefined {
  const found: Json | undefined = value instanceof Map ? (value.get(name) as Json | undefined) : undefined;
  return typeof found === "string" ? found : undefined;
}

function toolList(value: Json): readonly Json[] | undefined {
  if (Array.isArray(value)) return value as readonly Json[];
  if (!(value instanceof Map)) return undefined;
  const inner: Json | undefined = value.get("tools") as Json | undefined;
  if (Array.isArray(inner)) return inner as readonly Json[];
  if (inner instanceof Map) return [...(inner as JsonObject).values()].map(firstDefinition);
  const result: Json | undefined = value.get("result") as Json | undefined;
  return result instanceof Map ? toolList(result) : undefined;
}

/** A lock file has every definition of a tool that a person accepted. */
function firstDefinition(pinned: Json): Json {
  const first: Json = Array.isArray(pinned) ? ((pinned as readonly Json[])[0] ?? null) : null;
  return first instanceof Map ? ((first.get("definition") as Json | undefined) ?? null) : null;
}

/** MCP calls it `inputSchema`, Anthropic `input_schema`, OpenAI `parameters`, there often inside `function`. */
function toolOf(item: Json, isOfHost: boolean): SourceTool | undefined {
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
  const text = typeof description === "string" ? description : "";
  if (input === undefined) return isOfHost ? withoutSchema(name, text) : undefined;
  return { name, description: text, input, root: input };
}

/** A host gives no schema for a text in a grammar of its own, and for tools that the model's provider runs. */
function withoutSchema(name: string, description: string): SourceTool {
  const input = new Map<string, Json>([
    ["type", "object"],
    ["additionalProperties", true],
  ]);
  const note = "the host gives no schema for it; if the model's provider runs the tool, the gate is not asked";
  return { name, description, input, root: input, note };
}

/** Tool names are compared byte for byte at every call, so a name that looks like another is not imported. */
function checkSource(source: ImportSource): Result<ImportSource, string> {
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
      typeof value === "number" && context?.source !== undefined ? parseExactNumber(context.source) : value;
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
  if (depth > depthMax) throw new Error(`it has values of over ${depthMax} levels`);
  if (value === null || typeof value === "boolean" || typeof value === "string" || value instanceof Decimal)
    return value;
  if (typeof value === "number" || typeof value === "bigint") return parseExactNumber(String(value));
  if (Array.isArray(value)) return value.map((item) => jsonOf(item, depth + 1));
  if (typeof value !== "object") return null;
  return new Map(Object.entries(value).map(([name, inner]) => [name, jsonOf(inner, depth + 1)]));
}

function parseExactNumber(text: string): number | Decimal {
  const found = parseNumber(text);
  if (typeof found === "number" || found instanceof Decimal) return found;
  throw new Error(`the number ${text.slice(0, 40)}: ${found.problem}`);
}

function toBaseName(file: string): string {
  return file.replace(/^.*[/\\]/, "").replace(/\..*$/, "");
}
