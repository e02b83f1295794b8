import { randomBytes } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";
import { membersOf, otherHooks, parsedSettings, type Host, type SettingsMembers } from "./host.ts";
import { exit2, guardedCommand, hookWords, hostSeconds, reportingCommand } from "./shell.ts";

const product = "Gemini CLI";

export const geminiCli: Host = {
  userFile: () => join(homedir(), ".gemini", "settings.json"),
  managedFile: () => {
    if (process.platform === "darwin") return "/Library/Application Support/GeminiCli/settings.json";
    return "/etc/gemini-cli/settings.json";
  },
  settings: (before, wanted) => {
    const settings = parsedSettings(before, product);
    const hooks = membersOf(settings, "hooks", product);
    const others = otherHooks(hooks, "BeforeTool");
    const more = wanted.onEscalate === "wait" ? ["--on-escalate", "wait"] : [];
    const prefixes = ['{"decision":"allow"', '{"decision":"deny"'];
    const asking = guardedCommand(hookWords("gemini-cli", wanted, more), wanted, { prefixes, refusal: exit2 });
    const reporting = reportingCommand(hookWords("gemini-cli", wanted, []));
    const name = earlierName(hooks) ?? `svc-gate-${randomBytes(8).toString("hex")}`;
    const group = (command: string): object => ({
      matcher: "*",
      hooks: [{ type: "command", name, command, timeout: hostSeconds(wanted) * 1000, env: shellEnvironment }],
    });
    const next = {
      ...settings,
      hooksConfig: { ...membersOf(settings, "hooksConfig", product), enabled: true },
      hooks: {
        ...hooks,
        BeforeTool: [...others, group(asking)],
        AfterTool: [...otherHooks(hooks, "AfterTool"), group(reporting)],
      },
    };
    return {
      text: `${JSON.stringify(next, null, 2)}\n`,
      warnings: [
        ...(others.length > 0 ? ["another hook of BeforeTool can change a call after the gate has allowed it"] : []),
        wanted.isManaged
          ? "a hook of Gemini CLI can only deny. A project that the user trusts can switch it off by name in `hooksConfig.disabled`. " +
            "The name is random, so an unknown project cannot, but an agent can read it"
          : "a hook of Gemini CLI can only deny. `hooksConfig` in .gemini/settings.json of a project that you trust switches it off. " +
            "Calls then run without the gate. Use --scope managed",
      ],
    };
  },
  canGrant: false,
  hasMoreOptions: false,
};

/**
 * The host adds the variables of a project's `.env` to those of the shell that runs the hook. With these a shell or any
 * program would run other code, or the shell would run nothing (`SHELLOPTS=noexec`). The host lets a hook set variables,
 * but not remove them.
 */
const shellEnvironment: Readonly<Record<string, string>> = Object.fromEntries(
  (
    "BASH_ENV ENV SHELLOPTS BASHOPTS PS4 GCONV_PATH LOCPATH " +
    "LD_AUDIT LD_LIBRARY_PATH LD_PRELOAD DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH"
  )
    .split(" ")
    .map((name) => [name, ""]),
);

/** A project can switch a hook off by its name. So each installation has a name of its own, and keeps it. */
function earlierName(hooks: SettingsMembers): string | undefined {
  return /"name":"(svc-gate-[0-9a-f]{16})"/.exec(JSON.stringify(hooks["BeforeTool"] ?? []))?.[1];
}
