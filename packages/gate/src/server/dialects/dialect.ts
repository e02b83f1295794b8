/** How hosts describe their calls to a hook: each host's dialect is a table, and the route is the same for all. */
import type { JsonObject, Result } from "../../../../core/src/wire/mod.ts";

/** The question of a hook. */
export interface ProposedCall {
  readonly tool: string;
  /** The text of the arguments, as received. */
  readonly input: string;
  /** Undefined: the call belongs to no session. */
  readonly session: string | undefined;
  /** Undefined: the host says nothing about itself. */
  readonly facts: Readonly<Record<string, string>> | undefined;
}

/** `none` leaves the call to the host's own rules; `defer` parks a headless run. */
export type HookDecision = "allow" | "defer" | "deny" | "none";

/** What became of a tool that ran. */
export type HookedRun = "done" | "failed";

export interface HookedCall extends ProposedCall {
  readonly session: string;
  /** The id of the call in the host: only to find the receipt when the tool has run. */
  readonly useId: string;
}

export interface HookDialect {
  /** As in the route's path. */
  readonly host: string;
  /** The hooks that the gate reads, for a person. */
  readonly events: string;
  readonly eventOf: (members: JsonObject) => HookedRun | "asks" | undefined;
  /** The members of the hook's input. Without an id a call is found by its session, tool and arguments. */
  readonly members: {
    readonly tool: string;
    readonly input: string;
    readonly session: string;
    readonly useId?: string;
  };
  /** Tools whose arguments are a text, each with the member for it. Such a call of any other tool is refused. */
  readonly textMembers?: ReadonlyMap<string, string>;
  /** Members that rules may read as facts, if a contract lists them under `host_facts`. */
  readonly facts: readonly string[];
  /**
   * The tool's name at the gate: a built-in tool keeps the name that the hook says, and a tool of an MCP server is
   * `server.tool`.
   *
   * @param servers names of MCP servers, from the address of the hook; only a host that does not name servers needs them
   * @returns why two servers could have the name
   */
  readonly gateName: (name: string, members: JsonObject, servers: readonly string[]) => Result<string, string>;
  /** Whether the hook's input says which MCP server has a tool. */
  readonly namesServers: boolean;
  /** Whether the host can park a run for a person. */
  readonly canDefer: boolean;
  /** The output of the hook before a call. A `deny` always has a reason, because some hosts run the tool without one. */
  readonly decided: (decision: HookDecision, reason: string) => object;
  /** The output of the hook after a call. */
  readonly reported: (members: JsonObject) => object;
}

/** Returns why a text is not a list of servers; undefined if it is one. */
export function serversProblem(value: string): string | undefined {
  const names = value.split(",");
  return names.every((name) => /^[\w.-]{1,100}$/.test(name)) && new Set(names).size === names.length
    ? undefined
    : '"servers" must be different names of MCP servers with commas between them';
}

/** Returns the text of an object's member; undefined if it is not an object, or has none. */
export function textIn(value: unknown, name: string): string | undefined {
  const member: unknown = value instanceof Map ? value.get(name) : undefined;
  return typeof member === "string" ? member : undefined;
}

/**
 * Escapes what could separate scope, server and tool, so that two of them never have one name. Every program that names
 * tools of MCP servers has this rule: adapters/README.md.
 */
export function escapeName(part: string): string {
  const percent = (text: string): string => Buffer.from(text).toString("hex").toUpperCase().replaceAll(/../g, "%$&");
  return part.replaceAll(/__+|[^A-Za-z0-9_-]/gu, percent);
}
