import { join } from "node:path";
import { hookWords } from "./shell.ts";
import { hostFolder, membersOf, otherHooks, parsedSettings } from "./host.ts";
import type { Host, SettingsMembers, HostSettings, InstallOptions } from "./host.ts";

const product = "Claude Code";

/** Seconds. The host ends a hook after this time, and then refuses the call. */
const hookSeconds = 60;
const waitSeconds = 600;

/** The user's own settings of Claude Code. */
export function userFile(): string {
  return join(hostFolder("CLAUDE_CONFIG_DIR", ".claude"), "settings.json");
}

/** The settings of the machine, which no other settings can switch off. */
export function managedFile(): string {
  if (process.platform === "darwin") return "/Library/Application Support/ClaudeCode/managed-settings.json";
  if (process.platform === "win32") return "C:\\Program Files\\ClaudeCode\\managed-settings.json";
  return "/etc/claude-code/managed-settings.json";
}

export const claudeCode: Host = {
  userFile,
  managedFile,
  settings: claudeCodeSettings,
  canGrant: true,
  hasMoreOptions: true,
};

function claudeCodeSettings(before: string | undefined, wanted: InstallOptions): HostSettings {
  const settings = parsedSettings(before, product);
  const { permissions, warnings } = permissionsOf(settings, wanted);
  const { disableAllHooks, ...rest } = settings;
  const switchedOn =
    disableAllHooks === true ? ["`disableAllHooks` was set; it is removed, because it switches the gate off"] : [];
  const sandbox = membersOf(settings, "sandbox", product);
  const allowsBash = wanted.isGrant && sandbox["autoAllowBashIfSandboxed"] === true;
  const next = {
    ...rest,
    ...(allowsBash ? { sandbox: { ...sandbox, autoAllowBashIfSandboxed: false } } : {}),
    ...(wanted.isManaged ? { allowManagedHooksOnly: true, allowManagedPermissionRulesOnly: true } : {}),
    ...(permissions === undefined ? {} : { permissions }),
    hooks: hooksOf(settings, wanted),
  };
  return {
    text: `${JSON.stringify(next, null, 2)}\n`,
    warnings: [...switchedOn, ...(allowsBash ? [sandboxWarning] : []), ...warnings, ...scopeWarnings(settings, wanted)],
  };
}

const sandboxWarning =
  "`sandbox.autoAllowBashIfSandboxed` is switched off, because it lets commands run without the gate's ALLOW";

/** In grant mode the host starts with nothing allowed, so a hook that is missing or broken refuses every call. */
function permissionsOf(
  settings: SettingsMembers,
  { isGrant, isManaged, keepsAllow }: InstallOptions,
): { readonly permissions: SettingsMembers | undefined; readonly warnings: readonly string[] } {
  const known = membersOf(settings, "permissions", product);
  if (!isGrant) return { permissions: settings["permissions"] === undefined ? undefined : known, warnings: [] };
  const { allow, ...others } = known;
  const allowed = Array.isArray(allow) ? allow.map(String) : [];
  const permissions = {
    ...others,
    ...(keepsAllow && allow !== undefined ? { allow } : {}),
    defaultMode: "dontAsk",
    ...(isManaged ? { disableBypassPermissionsMode: "disable" } : {}),
  };
  if (allowed.length === 0) return { permissions, warnings: [] };
  const listed = allowed.map((rule) => JSON.stringify(rule)).join(", ");
  const warning = keepsAllow
    ? `if the hook fails, these permissions still let calls run: ${listed}`
    : `these permissions are removed, because the gate grants each call: ${listed}`;
  return { permissions, warnings: [warning] };
}

function scopeWarnings(settings: SettingsMembers, { isManaged, isGrant }: InstallOptions): readonly string[] {
  if (isManaged) return [];
  const others = otherHooks(membersOf(settings, "hooks", product), "PreToolUse").length > 0;
  const rewriting = others
    ? ["another hook of PreToolUse can change a call after the gate has allowed it: remove it, or use --scope managed"]
    : [];
  const sentence =
    "`disableAllHooks` in a project's .claude/settings.json, or --bare, switches off the hooks of this file";
  return [
    ...rewriting,
    isGrant
      ? `${sentence}; then the host refuses each call that needs a permission. Only --scope managed prevents both`
      : `${sentence}, and calls then run without the gate. Use --scope managed`,
    commandsOfProjects,
  ];
}

/** Why the ready contract does not allow two tools under a user's own settings. The doctor says it too. */
export const commandsOfProjects: string =
  "a project's sub-agent or skill can run commands that no hook sees, so the ready contract lets a person decide about " +
  "`Agent` and `Skill`. To allow them, use --scope managed, and set `managed_settings: true` in the limits of the contract";

function hooksOf(settings: SettingsMembers, wanted: InstallOptions): SettingsMembers {
  const known = membersOf(settings, "hooks", product);
  const [asking, reporting] = [hookOf(wanted, true), hookOf(wanted, false)];
  return {
    ...known,
    PreToolUse: [...otherHooks(known, "PreToolUse"), { matcher: "*", hooks: [asking] }],
    PostToolUse: [...otherHooks(known, "PostToolUse"), { matcher: "*", hooks: [reporting] }],
    PostToolUseFailure: [...otherHooks(known, "PostToolUseFailure"), { matcher: "*", hooks: [reporting] }],
  };
}

function hookOf({ url, keyFile, program, form, onEscalate }: InstallOptions, isAsking: boolean): SettingsMembers {
  const waits = isAsking && onEscalate === "wait";
  const timeout = (waits ? waitSeconds : 0) + hookSeconds;
  const closing = isAsking ? { onFailure: "block" } : {};
  if (form === "http") {
    const query = isAsking && onEscalate !== "deny" ? `?on_escalate=${onEscalate}` : "";
    return {
      type: "http",
      url: `${url}/hooks/claude-code${query}`,
      headers: { Authorization: "Bearer $SVC_KEY" },
      allowedEnvVars: ["SVC_KEY"],
      timeout,
      ...closing,
    };
  }
  const more = isAsking && onEscalate !== "deny" ? ["--on-escalate", onEscalate] : [];
  const command = hookWords("claude-code", { url, keyFile, program }, more);
  // A shell that cannot start the program ends with 126 or 127, which the host takes for "no objection".
  const otherwise = isAsking ? ` || { echo 'Svc: the hook gave no verdict; the action is blocked.' >&2; exit 2; }` : "";
  return { type: "command", command: command + otherwise, timeout, ...closing };
}
