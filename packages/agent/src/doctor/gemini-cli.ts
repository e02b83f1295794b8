import { dirname, join } from "node:path";
import { geminiCli as installed } from "../install/gemini-cli.ts";
import type { SettingsMembers } from "../install/host.ts";
import { commonCases, usualCalls, type Case } from "./cases.ts";
import type { DoctorHost, SettingsFile } from "./host.ts";
import * as redirect from "./redirect.ts";
import type { Redirection } from "./redirect.ts";

const install = "run `svc-gate hook install --agent gemini-cli`";
const managed = "run `svc-gate hook install --agent gemini-cli --scope managed` as an administrator";
const trust = "start the host only in projects whose .gemini/settings.json you have read";

export const geminiCli: DoctorHost = {
  product: "Gemini CLI",
  program: "gemini",
  files: () => [installed.userFile(), installed.managedFile()],
  projectFiles: (project) => [join(project, ".gemini", "settings.json")],
  machineFolder: dirname(installed.managedFile()),
  commandsIn: (text) => {
    const settings = redirect.settingsIn(text);
    return [...redirect.hookLines(settings["hooks"]), ...redirect.leftLines(settings, keptNames)];
  },
  gateHookIn: (text) => (gateHooks(text).length > 0 ? "command" : undefined),
  isGrantMode: () => false, // a hook of Gemini CLI can only deny
  redirect: redirectSettings,
  cases: (files) => [
    ...commonCases({ install, remedies: { "no-hook": managed }, hasWrite: true }),
    ...ownCases(listGateHooks(files)),
  ],
  calls: (file) => usualCalls(file, "run_shell_command", ["write_file", { file_path: file, content: "written" }]),
  start: ({ home, workspace, model, user, project }, prompt) => {
    const settings = redirect.settingsIn(user[0]?.text ?? "{}");
    const own = project === undefined ? [] : [{ path: join(workspace, ".gemini", "settings.json"), text: project }];
    return {
      // Without a named model the host asks another one first, which must answer in JSON.
      words: ["--yolo", "-p", prompt, "--output-format", "json", "-m", "gemini-2.5-pro"],
      files: [
        {
          path: join(home, ".gemini", "settings.json"),
          text: JSON.stringify({ ...settings, security: { auth: { selectedType: "gemini-api-key" } } }),
        },
        ...own,
      ],
      env: {
        GOOGLE_GEMINI_BASE_URL: model,
        GEMINI_API_KEY: "of-the-doctor",
        GEMINI_CLI_TRUST_WORKSPACE: "true",
      },
    };
  },
};

/** The members that the copy keeps. Others may start programs, or send data elsewhere. */
const keptNames = ["hooks", "hooksConfig"];

function gateHooks(text: string): readonly SettingsMembers[] {
  const found = redirect.hooksOf(redirect.settingsIn(text)["hooks"]);
  return found
    .filter(({ event, hook }) => event === "BeforeTool" && redirect.isGateCommand(hook["command"]))
    .map(({ hook }) => hook);
}

function listGateHooks(files: readonly SettingsFile[]): readonly string[] {
  return files.flatMap(({ text }) => gateHooks(text).map(({ name, command }) => String(name ?? command)));
}

function redirectSettings(text: string, redirection: Redirection): string {
  const settings = redirect.settingsIn(text);
  return JSON.stringify({
    ...redirect.keptIn(settings, keptNames),
    ...redirect.redirectedHooks(settings, redirection),
  });
}

function ownCases(names: readonly string[]): readonly Case[] {
  return [
    {
      name: "project-off",
      project: { hooksConfig: { enabled: false } },
      closed: "a project that switches hooks off ran nothing",
      open: "a trusted project's .gemini/settings.json with `hooksConfig.enabled` switched the hook off, and a call ran",
      remedy: managed,
    },
    {
      name: "project-names",
      project: { hooksConfig: { disabled: names } },
      closed: "a project that knows the hook's name ran nothing",
      open: "a trusted project's .gemini/settings.json named the hook in `hooksConfig.disabled`, and a call ran",
      remedy: trust,
    },
  ];
}
