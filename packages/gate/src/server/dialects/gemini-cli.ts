import { bad, good, type JsonObject, type Result } from "../../../../core/src/wire/mod.ts";
import { escapeName, textIn, type HookDialect } from "./dialect.ts";

/** Gemini CLI. A hook can only deny: `allow` grants nothing, and every word but `deny` and `block` runs the tool. */
export const geminiCli: HookDialect = {
  host: "gemini-cli",
  events: "BeforeTool, AfterTool",
  eventOf: (members) => {
    const name = members.get("hook_event_name");
    if (name === "BeforeTool") return "asks";
    if (name !== "AfterTool") return undefined;
    const response = members.get("tool_response");
    return response instanceof Map && response.get("error") !== undefined ? "failed" : "done";
  },
  members: { tool: "tool_name", input: "tool_input", session: "session_id" },
  facts: ["cwd"],
  gateName,
  namesServers: true,
  canDefer: false,
  decided: (decision, reason) => ({ decision: decision === "none" ? "allow" : decision, reason }),
  reported: () => ({ hookSpecificOutput: { hookEventName: "AfterTool" } }),
};

/** The host joins server and tool with one `_`, so their names come from `mcp_context`. */
function gateName(name: string, members: JsonObject): Result<string, string> {
  const context = members.get("mcp_context");
  if (context === undefined && !name.startsWith("mcp_") && !name.includes(".")) return good(name);
  const [server, tool] = [textIn(context, "server_name"), textIn(context, "tool_name")];
  return server === undefined || tool === undefined || server === "" || tool === ""
    ? bad("the hook's input does not say which MCP server has the tool")
    : good(`${escapeName(server)}.${escapeName(tool)}`);
}
