/**
 * Codex CLI. Its hooks are in a JSON file of their own, so the user's `config.toml` is left alone. The machine's file
 * `requirements.toml` is written only if it has nothing else. Adding to it needs a TOML parser, and a mistake could
 * switch off an administrator's rules.
 */
import { join } from "node:path";
import { InputError } from "../bad-input.ts";
import {
  hostFolder,
  membersOf,
  otherHooks,
  parsedSettings,
  type Host,
  type HostSettings,
  type InstallOptions,
} from "./host.ts";
import { exit2, guardedCommand, hookWords, hostSeconds, reportingCommand } from "./shell.ts";

export const codex: Host = {
  userFile: () => join(hostFolder("CODEX_HOME", ".codex"), "hooks.json"),
  managedFile: () => "/etc/codex/requirements.toml",
  settings: (before, wanted) => (wanted.isManaged ? requirements(before, wanted) : userHooks(before, wanted)),
  canGrant: false,
  hasMoreOptions: false,
};

const product = "Codex";

function userHooks(before: string | undefined, wanted: InstallOptions): HostSettings {
  const settings = parsedSettings(before, product);
  const hooks = membersOf(settings, "hooks", product);
  const { asking, reporting } = commandsOf(wanted);
  const group = (command: string): object => ({
    matcher: "*",
    hooks: [{ type: "command", command, timeout: hostSeconds(wanted) }],
  });
  const others = otherHooks(hooks, "PreToolUse");
  const next = {
    ...settings,
    hooks: {
      ...hooks,
      PreToolUse: [...others, group(asking)],
      PostToolUse: [...otherHooks(hooks, "PostToolUse"), group(reporting)],
    },
  };
  return {
    text: `${JSON.stringify(next, null, 2)}\n`,
    warnings: [
      "Codex skips a hook that you have not trusted, and then runs every call. Start Codex, open /hooks and trust this one",
      "the gate is not asked about text for a running process. Run `codex features disable unified_exec_tty`",
      ...(others.length > 0 ? ["another hook of PreToolUse can change a call after the gate has allowed it"] : []),
      "a hook of Codex can only deny. With `hooks = false` in config.toml, or `--disable hooks`, calls run without the gate. " +
        "Use --scope managed",
    ],
  };
}

const firstLine = "# Written by `svc-gate hook install --agent codex --scope managed`.";

function requirements(before: string | undefined, wanted: InstallOptions): HostSettings {
  const { asking, reporting } = commandsOf(wanted);
  const table = (event: string, command: string): string => `[[hooks.${event}]]
matcher = "*"

[[hooks.${event}.hooks]]
type = "command"
command = ${JSON.stringify(command)}
timeout = ${hostSeconds(wanted)}
`;
  const text = `${firstLine}
allow_managed_hooks_only = true

[features]
hooks = true
unified_exec_tty = false

${table("PreToolUse", asking)}
${table("PostToolUse", reporting)}`;
  if (before !== undefined && before.trim() !== "" && !before.startsWith(firstLine))
    throw new InputError(
      "/etc/codex/requirements.toml has other requirements, and this command does not change TOML. Add these lines, " +
        `each to its table:\n\n${text}`,
    );
  return { text, warnings: [] };
}

function commandsOf(wanted: InstallOptions): { readonly asking: string; readonly reporting: string } {
  const more = wanted.onEscalate === "wait" ? ["--on-escalate", "wait"] : [];
  const prefixes = ['{"hookSpecificOutput":{"hookEventName":"PreToolUse"'];
  return {
    asking: guardedCommand(hookWords("codex", wanted, more), wanted, { prefixes, refusal: exit2 }),
    reporting: reportingCommand(hookWords("codex", wanted, [])),
  };
}
