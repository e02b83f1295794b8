import { bad, good, type JsonObject, type Result } from "../../../../core/src/wire/mod.ts";
import { escapeName, textIn, type HookDialect } from "./dialect.ts";

/** Claude Code. It can send the hook's input itself, so the route's answer is what it reads. */
export const claudeCode: HookDialect = {
  host: "claude-code",
  events: "PreToolUse, PostToolUse, PostToolUseFailure",
  eventOf: (members) => {
    const name = members.get("hook_event_name");
    if (name === "PreToolUse") return "asks";
    if (name === "PostToolUse") return "done";
    return name === "PostToolUseFailure" ? "failed" : undefined;
  },
  members: { tool: "tool_name", input: "tool_input", session: "session_id", useId: "tool_use_id" },
  facts: ["cwd", "permission_mode", "agent_id", "agent_type"],
  gateName,
  namesServers: true,
  canDefer: true,
  decided: (decision, reason) => ({
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      ...(decision === "none" ? {} : { permissionDecision: decision, permissionDecisionReason: reason }),
    },
  }),
  reported: (members) => ({ hookSpecificOutput: { hookEventName: members.get("hook_event_name") } }),
};

/**
 * The host replaces characters in `mcp__server__tool`, so the server's own name comes from `mcp_server`. A server that a
 * project's file may have named is `project:server`, because anyone who can write the project can choose its name.
 */
function gateName(name: string, members: JsonObject): Result<string, string> {
  const server = members.get("mcp_server");
  const isBare = !name.startsWith("mcp__");
  if (isBare && server === undefined && !name.includes(".")) return good(name);
  const owner = textIn(server, "name");
  // With CLAUDE_AGENT_SDK_MCP_NO_PREFIX the host writes only the tool's own name, which may be that of a built-in tool.
  const prefix = isBare ? "" : `mcp__${owner?.replaceAll(/[^a-zA-Z0-9_-]/g, "_")}__`;
  if (owner === undefined || !name.startsWith(prefix))
    return bad("the hook's input does not say which MCP server has the tool");
  const scope = ownSources.includes(textIn(server, "source") ?? "") ? "" : "project:";
  return good(`${scope}${escapeName(owner)}.${escapeName(name.slice(prefix.length))}`);
}

/** Where only the user, the machine's administrator or the program that starts the host names servers. */
const ownSources: readonly string[] = ["claudeai", "dynamic", "enterprise", "local", "managed", "sdk", "user"];
