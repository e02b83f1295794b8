import { dirname, join } from "node:path";
import { codex as installed } from "../install/codex.ts";
import { shellWord } from "../shell-word.ts";
import { commonCases, type Case } from "./cases.ts";
import type { OfferedTool } from "../model/protocol.ts";
import type { DoctorHost } from "./host.ts";
import * as redirect from "./redirect.ts";
import type { Redirection } from "./redirect.ts";

const install = "run `svc-gate hook install --agent codex`";
const managed = "run `svc-gate hook install --agent codex --scope managed` as an administrator";
const machineFolder = dirname(installed.managedFile());

/** The user's `config.toml` is left out, because it may start programs. The doctor's copy trusts the hooks that it has. */
export const codex: DoctorHost = {
  product: "Codex CLI",
  program: "codex",
  files: () => [installed.userFile(), installed.managedFile()],
  projectFiles: (project) => [join(project, ".codex", "hooks.json")],
  machineFolder,
  commandsIn: (text) =>
    isToml(text) ? tomlCommands(text).map((command) => `hook: ${command}`) : redirect.hookLines(hooksIn(text)),
  gateHookIn: (text) => (commandsOf(text).some((command) => redirect.isGateCommand(command)) ? "command" : undefined),
  isGrantMode: () => false, // a hook of Codex can only deny
  check: (file) => {
    if (!isToml(file.text)) redirect.checkJson(file);
  },
  redirect: (text, redirection) =>
    isToml(text)
      ? redirectedToml(text, redirection)
      : JSON.stringify(redirect.redirectedHooks(redirect.settingsIn(text), redirection)),
  merged: (_, added) => (typeof added === "string" ? added : ""),
  cases: () => [...commonCases({ install, remedies: { "no-hook": managed }, hasWrite: false }), ...ownCases],
  calls: (file) => ({
    shell: { tool: "exec_command", arguments: JSON.stringify({ cmd: `touch ${shellWord(file)}` }) },
  }),
  start: ({ home, workspace, model, user, project }, prompt) => {
    const config = join(home, ".codex");
    const own = project === undefined ? [] : [{ path: join(workspace, ".codex", "config.toml"), text: project }];
    return {
      words: optionsOf(prompt),
      files: [
        { path: join(config, "config.toml"), text: configOf(model, workspace) },
        { path: join(config, "hooks.json"), text: user[0]?.text ?? "{}" },
        ...own,
      ],
      env: { CODEX_HOME: config, DOCTOR_KEY: "of-the-doctor" },
    };
  },
  note: () =>
    "The doctor trusts the hooks of its copy. Codex skips a hook that you have not trusted: look at /hooks in Codex. " +
    "No hook sees `write_stdin`: run `codex features disable unified_exec_tty`.",
  atGate,
};

/** The hook has another name for the shell, and one member for a command and for a patch. */
function atGate(tool: OfferedTool): OfferedTool | string {
  if (unasked.includes(tool.name)) return "the gate is not asked about them";
  const name = tool.name === "exec_command" ? "Bash" : tool.name;
  return name === "Bash" || name === "apply_patch" ? { ...tool, name, schema: ofCommand } : tool;
}

const unasked = ["tool_search", "web_search", "write_stdin"];
const ofCommand = {
  type: "object",
  properties: { command: { type: "string" } },
  required: ["command"],
  additionalProperties: false,
};

function optionsOf(prompt: string): readonly string[] {
  const trusting = ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"];
  const offline = ["--disable", "plugins", "--disable", "apps"];
  return ["exec", prompt, "--json", "--skip-git-repo-check", ...trusting, ...offline];
}

function configOf(model: string, workspace: string): string {
  return `model = "gpt-5.5"
model_provider = "doctor"

[model_providers.doctor]
name = "doctor"
base_url = "${model}/v1"
wire_api = "responses"
env_key = "DOCTOR_KEY"

[projects.${JSON.stringify(workspace)}]
trust_level = "trusted"
`;
}

function isToml(text: string): boolean {
  return !text.trimStart().startsWith("{");
}

function hooksIn(text: string): unknown {
  return redirect.settingsIn(text)["hooks"];
}

function commandsOf(text: string): readonly unknown[] {
  return isToml(text) ? tomlCommands(text) : redirect.hooksOf(hooksIn(text)).map(({ hook }) => hook["command"]);
}

/** A line with a command in basic quotes, whose escapes are those of JSON. Commands in other quotes stay as they are. */
const commandLine = /^command = ("(?:[^"\\]|\\.)*")$/gm;

function tomlCommands(text: string): readonly string[] {
  return Array.from(text.matchAll(commandLine), ([, quoted = '""']) => JSON.parse(quoted) as string);
}

function redirectedToml(text: string, redirection: Redirection): string {
  if (!redirection.keepsHook) return text.replace(/^\[\[hooks\.[^]*/m, "");
  return text.replaceAll(commandLine, (line, quoted: string) => {
    const command = JSON.parse(quoted) as string;
    if (!redirect.isGateCommand(command)) return line;
    return `command = ${JSON.stringify(redirect.redirectedCommand(command, redirection))}`;
  });
}

const ownCases: readonly Case[] = [
  {
    name: "project-off",
    project: "[features]\nhooks = false\n",
    closed: "a project that switches hooks off ran nothing",
    open: "a trusted project's .codex/config.toml with `hooks = false` switched the hook off, and a call ran",
    remedy: managed,
  },
  {
    name: "option-off",
    words: ["--disable", "hooks"],
    closed: "the host's option --disable hooks ran nothing",
    open: "the host's option --disable hooks switched the hook off, and a call ran",
    remedy: managed,
  },
];
