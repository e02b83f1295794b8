import { bad, good, quote, type Result } from "../../../../core/src/wire/mod.ts";
import { escapeName, type HookDialect } from "./dialect.ts";

/**
 * Codex CLI. A hook can only deny: Codex runs the tool after `allow`, `ask` and a `deny` without a reason. So the command
 * hook prints an allowed call as an output without a decision.
 */
export const codex: HookDialect = {
  host: "codex",
  events: "PreToolUse, PostToolUse",
  eventOf: (members) => {
    const name = members.get("hook_event_name");
    if (name === "PreToolUse") return "asks";
    if (name !== "PostToolUse") return undefined;
    // Only results of MCP servers say that the tool failed: github.com/openai/codex/issues/34289
    const response = members.get("tool_response");
    return response instanceof Map && response.get("isError") === true ? "failed" : "done";
  },
  members: { tool: "tool_name", input: "tool_input", session: "session_id", useId: "tool_use_id" },
  facts: ["cwd", "permission_mode", "agent_id", "agent_type"],
  gateName,
  namesServers: true,
  canDefer: false,
  decided: (decision, reason) => ({
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: decision === "none" ? "allow" : decision,
      permissionDecisionReason: reason,
    },
  }),
  reported: () => ({ hookSpecificOutput: { hookEventName: "PostToolUse" } }),
};

/** Server and tool, each without `__` and without `_` at its ends: then only one pair has the name. */
const pair = /^mcp__((?:[A-Za-z0-9-]+_)*[A-Za-z0-9-]+)__((?:[A-Za-z0-9-]+_)*[A-Za-z0-9-]+)$/;

function gateName(name: string): Result<string, string> {
  if (!name.startsWith("mcp__"))
    return name.includes(".") ? bad("the tool's name has a dot, as only tools of MCP servers have") : good(name);
  const [, server, tool] = pair.exec(name) ?? [];
  return server === undefined || tool === undefined
    ? bad(`two MCP servers could have the tool ${quote(name)}: rename it without "__"`)
    : good(`${escapeName(server)}.${escapeName(tool)}`);
}
