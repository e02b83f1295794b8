import { bad, good, quote, type JsonObject, type Result } from "../../../../core/src/wire/mod.ts";
import { escapeName, textIn, type HookDialect } from "./dialect.ts";

/** GitHub Copilot CLI, started without allowed tools: the hook's `allow` is the grant. */
export const copilotCli: HookDialect = {
  host: "copilot-cli",
  events: "preToolUse, postToolUse, postToolUseFailure",
  // The input does not name the hook. Only the host writes these members, and only after a call.
  eventOf: (members) => {
    if (members.has("error")) return "failed";
    const result = members.get("toolResult");
    if (result === undefined) return "asks";
    return textIn(result, "resultType") === "success" ? "done" : "failed";
  },
  members: { tool: "toolName", input: "toolArgs", session: "sessionId" },
  textMembers: new Map([["apply_patch", "patch"]]),
  facts: ["cwd"],
  gateName,
  namesServers: false,
  canDefer: false,
  decided: (decision, reason) =>
    decision === "none" ? { decision } : { permissionDecision: decision, permissionDecisionReason: reason },
  reported: () => ({ decision: "none" }),
};

/**
 * The host writes `server-tool`, and both parts may have a `-`. So the hook's address lists the servers, and a name that
 * belongs to none or to two of them is refused. No built-in tool has a `-` in its name.
 */
function gateName(name: string, _: JsonObject, servers: readonly string[]): Result<string, string> {
  if (/^\w+$/.test(name)) return good(name);
  const [server, second] = servers.filter((each) => name.startsWith(`${each}-`) && name.length > each.length + 1);
  if (server !== undefined && second === undefined)
    return good(`${escapeName(server)}.${escapeName(name.slice(server.length + 1))}`);
  return server === undefined
    ? bad(`no listed MCP server has the tool ${quote(name)}: list its server in --servers of the hook`)
    : bad(`the MCP servers ${server} and ${second} could both have the tool ${quote(name)}: rename one`);
}
