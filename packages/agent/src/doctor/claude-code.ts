import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { commandsOfProjects, managedFile, userFile } from "../install/claude-code.ts";
import type { SettingsMembers } from "../install/host.ts";
import { commonCases, usualCalls, type Case } from "./cases.ts";
import { isOfMachine } from "./files.ts";
import type { DoctorHost, SettingsFile } from "./host.ts";
import * as redirect from "./redirect.ts";
import type { Redirection } from "./redirect.ts";

const managedFolder = dirname(managedFile());
const apiKey = "sk-of-the-doctor";

export const claudeCode: DoctorHost = {
  product: "Claude Code",
  program: "claude",
  files: () => [userFile(), managedFile(), ...dropIns()],
  projectFiles: (project) => ["settings.json", "settings.local.json"].map((name) => join(project, ".claude", name)),
  machineFolder: managedFolder, // it may also name MCP servers, which the doctor leaves out
  commandsIn: (text) => {
    const settings = redirect.settingsIn(text);
    return [...redirect.hookLines(settings["hooks"]), ...redirect.leftLines(settings, keptNames)];
  },
  gateHookIn: (text) => {
    const hooks = redirect.hooksOf(redirect.settingsIn(text)["hooks"]).filter(({ event }) => event === "PreToolUse");
    if (hooks.some(({ hook }) => redirect.isGateCommand(hook["command"], hook["args"]))) return "command";
    return hooks.some(({ hook }) => isHttpHook(hook)) ? "http" : undefined;
  },
  isGrantMode: (text) => {
    const { permissions } = redirect.settingsIn(text) as { readonly permissions?: { readonly defaultMode?: unknown } };
    return permissions?.defaultMode === "dontAsk";
  },
  redirect: redirectSettings,
  cases: () => [...commonCases({ install, remedies, hasWrite: true }), ...ownCases],
  calls: (file) => usualCalls(file, "Bash", ["Write", { file_path: file, content: "written" }]),
  start: ({ home, workspace, temporary, model, key, user, project }, prompt) => {
    const config = join(home, ".claude");
    // As after the host's first question about a project.
    const trust = {
      projects: { [workspace]: { hasTrustDialogAccepted: true } },
      hasCompletedOnboarding: true,
      customApiKeyResponses: { approved: [apiKey], rejected: [] },
    };
    return {
      words: ["-p", prompt, "--output-format", "json"],
      files: [
        { path: join(config, ".claude.json"), text: JSON.stringify(trust) },
        { path: join(config, "settings.json"), text: user[0]?.text ?? "{}" },
        { path: join(workspace, ".claude", "settings.json"), text: project ?? "{}" },
      ],
      env: {
        CLAUDE_CONFIG_DIR: config,
        CLAUDE_CODE_TMPDIR: temporary,
        ANTHROPIC_BASE_URL: model,
        ANTHROPIC_API_KEY: apiKey,
        SVC_KEY: key,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_AUTOUPDATER: "1",
      },
    };
  },
  atGate: (tool) => (tool.name.startsWith("mcp__") || tool.name.includes(".") ? ofServer : tool),
  listing: { settings: withoutPrograms, session: (prompt) => [prompt] },
  note: (files) => (isManaged(files) ? undefined : `Not tested here: ${commandsOfProjects}.`),
};

/** True if a project's files can bring neither hooks nor permissions. Only the machine's settings can say so. */
function isManaged(files: readonly SettingsFile[]): boolean {
  const machine = files.filter((file) => isOfMachine({ machineFolder: managedFolder }, file));
  const settings: SettingsMembers = Object.assign({}, ...machine.map(({ text }) => redirect.settingsIn(text)));
  return settings["allowManagedHooksOnly"] === true && settings["allowManagedPermissionRulesOnly"] === true;
}

const ofServer = "svc-gate import-tools --mcp reads them from their server";

/**
 * Settings that start no program, and let the host show all its tools at once. Without this variable the host hides some
 * of them.
 */
function withoutPrograms(text: string): string {
  const settings = redirect.settingsIn(text);
  const { hooks: _, ...copy } = settings;
  const env = { ...(copy["env"] as SettingsMembers | undefined), ENABLE_TOOL_SEARCH: "false" };
  return JSON.stringify({ ...copy, env });
}

/** More files of the machine's settings. */
function dropIns(): readonly string[] {
  const folder = join(managedFolder, "managed-settings.d");
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => (name.endsWith(".json") ? [join(folder, name)] : []));
}

/** The members that the copy keeps. Others may start programs, or send data elsewhere. */
const keptNames = [
  "allowManagedHooksOnly",
  "allowManagedPermissionRulesOnly",
  "disableAllHooks",
  "env",
  "hooks",
  "httpHookAllowedEnvVars",
  "model",
  "permissions",
];

function isHttpHook(hook: SettingsMembers): hook is { readonly url: string } {
  const { url } = hook;
  return typeof url === "string" && url.includes("/hooks/claude-code");
}

function redirectSettings(text: string, redirection: Redirection): string {
  const settings = redirect.settingsIn(text);
  const { env, hooks } = settings as { readonly env?: SettingsMembers; readonly hooks?: SettingsMembers };
  return JSON.stringify({
    ...redirect.keptIn(settings, keptNames),
    ...(env === undefined
      ? {}
      : { env: Object.fromEntries(Object.entries(env).filter(([name]) => !redirecting.test(name))) }),
    ...(hooks === undefined
      ? {}
      : { hooks: redirect.changedHooks(hooks, (hook) => redirectedHook(hook, redirection)) }),
  });
}

/** Variables that would send the host to another model, its data elsewhere, or the hook to the user's gate. */
const redirecting = /^(?:ANTHROPIC_|AWS_|CLAUDE_CODE_USE_|CLOUD_ML|GOOGLE_|OTEL_|SVC_|VERTEX_)|_PROXY$/i;

function redirectedHook(hook: SettingsMembers, redirection: Redirection): readonly SettingsMembers[] {
  const isCommand = redirect.isGateCommand(hook["command"], hook["args"]);
  if (!isCommand && !isHttpHook(hook)) return [hook];
  if (!redirection.keepsHook) return [];
  if (isHttpHook(hook)) {
    const { pathname, search } = new URL(hook.url);
    return [{ ...hook, url: `${redirection.gate.url}${pathname}${search}` }];
  }
  return [{ ...hook, command: redirect.redirectedCommand(String(hook["command"]), redirection, hook["args"]) }];
}

const install = "run `svc-gate hook install --agent claude-code`";
const managed = "run `svc-gate hook install --agent claude-code --scope managed` as an administrator";
const onFailure = `${install}; the hook needs "onFailure": "block", and Claude Code 2.1.295 or later`;
const remedies = {
  closed: onFailure,
  broken: onFailure,
  empty: `${install} without --no-grant, or with --form command`,
  "no-hook": `${install} without --no-grant and --keep-allow, once the gate enforces`,
};

const ownCases: readonly Case[] = [
  {
    name: "project-off",
    project: { disableAllHooks: true },
    closed: "a project that switches hooks off ran nothing",
    open: "a project's .claude/settings.json with `disableAllHooks` switched the hook off, and a call ran",
    remedy: managed,
  },
  {
    name: "project-allows",
    project: { disableAllHooks: true, permissions: { allow: ["Bash"], defaultMode: "bypassPermissions" } },
    closed: "a project that switches hooks off and allows commands ran nothing",
    open: "a project's .claude/settings.json switched the hook off and allowed commands, and a call ran",
    remedy: managed,
  },
  {
    name: "bare",
    words: ["--bare", "--allowedTools", "Bash"],
    closed: "the host's options --bare and --allowedTools ran nothing",
    open: "the host's options --bare and --allowedTools switched the hook off, and a call ran",
    remedy: managed,
  },
];
