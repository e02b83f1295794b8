import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { copilotCli as installed } from "../install/copilot-cli.ts";
import { commonCases, usualCalls, type Case } from "./cases.ts";
import type { DoctorHost } from "./host.ts";
import * as redirect from "./redirect.ts";
import type { Redirection } from "./redirect.ts";

const install = "run `svc-gate hook install --agent copilot-cli`";
const managed = "run `svc-gate hook install --agent copilot-cli --scope managed` as an administrator";

/** The host is started without allowed tools: then the gate's ALLOW is the only permission. */
export const copilotCli: DoctorHost = {
  product: "Copilot CLI",
  program: "copilot",
  files: () => [dirname(installed.userFile()), dirname(installed.managedFile())].flatMap(jsonFiles),
  projectFiles: (project) => jsonFiles(join(project, ".github", "hooks")),
  machineFolder: dirname(installed.managedFile()),
  commandsIn: (text) => redirect.hookLines(redirect.settingsIn(text)["hooks"]),
  gateHookIn: (text) => {
    const found = redirect.hooksOf(redirect.settingsIn(text)["hooks"]);
    return found.some(({ event, hook }) => event === "preToolUse" && redirect.isGateCommand(hook["bash"]))
      ? "command"
      : undefined;
  },
  isGrantMode: () => true,
  redirect: redirectSettings,
  cases: () => [...commonCases({ install, hasWrite: true }), ...ownCases],
  calls: (file) => usualCalls(file, "bash", ["create", { path: file, file_text: "written" }]),
  start: ({ home, workspace, model, user, project }, prompt) => {
    const folder = join(home, ".copilot");
    const settings = join(workspace, ".github", "copilot", "settings.json");
    return {
      words: ["-p", prompt, "--no-color"],
      files: [
        ...user.map(({ path, text }) => ({ path: join(folder, "hooks", basename(path)), text })),
        ...(project === undefined ? [] : [{ path: settings, text: project }]),
      ],
      env: {
        COPILOT_HOME: folder,
        COPILOT_PROVIDER_BASE_URL: `${model}/v1`,
        COPILOT_PROVIDER_TYPE: "openai",
        COPILOT_PROVIDER_API_KEY: "of-the-doctor",
        COPILOT_MODEL: "gpt-5",
        COPILOT_OFFLINE: "true",
      },
    };
  },
  note: () =>
    "Start Copilot without --allow-all-tools, --allow-tool and --yolo, as the doctor does in all cases except `allow-all`.",
};

function jsonFiles(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => (name.endsWith(".json") ? [join(folder, name)] : []));
}

function redirectSettings(text: string, redirection: Redirection): string {
  const settings = redirect.settingsIn(text);
  return JSON.stringify({ ...settings, ...redirect.redirectedHooks(settings, redirection, "bash") });
}

const ownCases: readonly Case[] = [
  {
    name: "allow-all",
    words: ["--allow-all-tools"],
    closed: "with the host's option --allow-all-tools, a blocked call did not run",
    open: "with the host's option --allow-all-tools, a call ran although the gate answered BLOCK",
    remedy: install,
  },
  {
    name: "project-off",
    project: { disableAllHooks: true },
    words: ["--trust-folder"],
    closed: "a project that switches hooks off ran nothing",
    open: "a trusted project with `disableAllHooks` switched the hook off, and a call ran",
    remedy: managed,
  },
  {
    name: "project-allows",
    project: { disableAllHooks: true },
    words: ["--trust-folder", "--allow-all-tools"],
    closed: "a project that switches hooks off ran nothing, although the host was started with --allow-all-tools",
    open: "a trusted project with `disableAllHooks` switched the hook off, and --allow-all-tools let a call run",
    remedy: managed,
  },
];
