/** GitHub Copilot CLI reads every file in a folder of hooks, so the gate's hook has a file of its own. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { shellWord } from "../shell-word.ts";
import { hostFolder, parsedSettings, type Host, type HostSettings, type InstallOptions } from "./host.ts";
import { guardedCommand, hookWords, hostSeconds, noVerdict, reportingCommand } from "./shell.ts";

const home = ["COPILOT_HOME", ".copilot"] as const;

export const copilotCli: Host = {
  userFile: () => join(hostFolder(...home), "hooks", "svc-gate.json"),
  managedFile: () => "/etc/github-copilot/policy.d/svc-gate.json",
  settings: (_, wanted) => copilotSettings(wanted, serversOf(join(hostFolder(...home), "mcp-config.json"))),
  canGrant: true,
  hasMoreOptions: false,
};

/** @param servers the names of the MCP servers that the gate may tell apart */
export function copilotSettings(wanted: InstallOptions, servers: readonly string[]): HostSettings {
  const list = ["--servers", servers.join(",")];
  const more = wanted.onEscalate === "wait" ? [...list, "--on-escalate", "wait"] : list;
  const asking = guardedCommand(hookWords("copilot-cli", wanted, more), wanted, {
    prefixes: ['{"permissionDecision":"allow"', '{"permissionDecision":"deny"'],
    whole: ["{}"],
    refusal: `echo ${shellWord(JSON.stringify({ permissionDecision: "deny", permissionDecisionReason: noVerdict }))}`,
  });
  const reporting = reportingCommand(hookWords("copilot-cli", wanted, list));
  const hook = (bash: string): object => ({ type: "command", bash, timeoutSec: hostSeconds(wanted) });
  const hooks = { preToolUse: [hook(asking)], postToolUse: [hook(reporting)], postToolUseFailure: [hook(reporting)] };
  return {
    text: `${JSON.stringify({ version: 1, hooks }, null, 2)}\n`,
    warnings: [
      wanted.isGrant
        ? "start Copilot without --allow-all-tools, --allow-tool and --yolo: then a call that the gate did not allow is refused"
        : "with --allow-all-tools or --allow-tool, calls run if the hook is off or does not answer",
      `the gate knows the MCP servers ${servers.join(", ")}: run this again when you add one, or its tools are refused`,
      ...(wanted.isManaged
        ? []
        : ["`disableAllHooks` switches off the hooks of this file. Only --scope managed prevents that"]),
    ],
  };
}

/** The host's own server, and those that the user has configured. */
function serversOf(file: string): readonly string[] {
  const { mcpServers = {} } = existsSync(file) ? parsedSettings(readFileSync(file, "utf8"), file) : {};
  return [...new Set(["github-mcp-server", ...Object.keys(mcpServers as object)])];
}
