import { homedir } from "node:os";
import { join } from "node:path";
import { commonCases, usualCalls, type Case } from "./cases.ts";
import type { DoctorHost } from "./host.ts";
import * as redirect from "./redirect.ts";
import type { Redirection } from "./redirect.ts";

const install = "set up the plugin as docs/hosts/opencode.md says";
const managed = "put the permission and the plugin into the machine's /etc/opencode/opencode.json";

/** The gate's hook is a plugin in the host's settings, with the gate's address and the key's file as its options. */
export const opencode: DoctorHost = {
  product: "opencode",
  program: "opencode",
  files: () => [
    join(process.env["XDG_CONFIG_HOME"] ?? join(homedir(), ".config"), "opencode", "opencode.json"),
    "/etc/opencode/opencode.json",
  ],
  projectFiles: (project) => [join(project, "opencode.json")],
  machineFolder: "/etc/opencode",
  commandsIn: (text) => [...pluginsIn(text).map(lineOf), ...redirect.leftLines(redirect.settingsIn(text), keptNames)],
  gateHookIn: (text) => (pluginsIn(text).some(isOurs) ? "plugin" : undefined),
  isGrantMode: (text) => {
    const { permission } = redirect.settingsIn(text);
    return permission === "deny" || (permission as { readonly "*"?: unknown } | undefined)?.["*"] === "deny";
  },
  redirect: redirectSettings,
  cases: () => [...commonCases({ install, remedies: { "no-hook": denyAll }, hasWrite: true }), ...ownCases],
  calls: (file) => usualCalls(file, "bash", ["write", { filePath: file, content: "written" }]),
  start: ({ home, workspace, model, version, user, project }, prompt) => {
    const folder = join(home, ".config", "opencode");
    const own = project === undefined ? [] : [{ path: join(workspace, "opencode.json"), text: project }];
    const text = JSON.stringify({ ...redirect.settingsIn(user[0]?.text ?? "{}"), ...modelOf(model) });
    return {
      words: ["run", prompt, "--format", "json"],
      files: [{ path: join(folder, "opencode.json"), text }, ...skippedInstall(folder, version), ...own],
      env: {
        XDG_CONFIG_HOME: join(home, ".config"),
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
      },
    };
  },
};

/** The members that the copy keeps. Others may start programs, or send data elsewhere. */
const keptNames = ["$schema", "permission", "plugin"];

function pluginsIn(text: string): readonly unknown[] {
  const { plugin } = redirect.settingsIn(text);
  return Array.isArray(plugin) ? plugin : [];
}

function lineOf(plugin: unknown): string {
  return `plugin ${Array.isArray(plugin) ? String(plugin[0]) : String(plugin)}`;
}

function isOurs(plugin: unknown): plugin is readonly [string, object] {
  if (!Array.isArray(plugin)) return false;
  const [file, options]: readonly unknown[] = plugin;
  return /\/adapters\/opencode(?:\.mjs)?$/.test(String(file)) && typeof options === "object" && options !== null;
}

function redirectSettings(text: string, { gate, keyFile, keepsHook }: Redirection): string {
  const settings = redirect.settingsIn(text);
  const plugin = pluginsIn(text).flatMap((each) => {
    if (!isOurs(each)) return [each];
    const [file, options] = each;
    return keepsHook ? [[file, { ...options, url: gate.url, keyFile }]] : [];
  });
  return JSON.stringify({
    ...redirect.keptIn(settings, keptNames),
    ...(settings["plugin"] === undefined ? {} : { plugin }),
    ...(settings["permission"] === undefined ? {} : { permission: withOneTool(settings["permission"]) }),
  });
}

/** The scripted model answers a request without tools with a title. So one harmless tool is always allowed. */
function withOneTool(permission: unknown): unknown {
  if (permission === "deny") return { "*": "deny", todowrite: "allow" };
  return typeof permission === "object" && permission !== null ? { ...permission, todowrite: "allow" } : permission;
}

function modelOf(model: string): object {
  return {
    model: "doctor/model",
    small_model: "doctor/model",
    autoupdate: false,
    share: "disabled",
    provider: {
      doctor: {
        npm: "@ai-sdk/openai-compatible",
        options: { baseURL: `${model}/v1`, apiKey: "of-the-doctor" },
        models: { model: { name: "model", tool_call: true } },
      },
    },
  };
}

/** If there is a plugin, the host installs the types for plugins, which needs the network. These files make it skip that. */
function skippedInstall(folder: string, version: string): ReturnType<DoctorHost["start"]>["files"] {
  const dependencies = { "@opencode-ai/plugin": version };
  const lock = { lockfileVersion: 3, packages: { "": { dependencies } } };
  return [
    { path: join(folder, "package.json"), text: JSON.stringify({ dependencies }) },
    { path: join(folder, "package-lock.json"), text: JSON.stringify(lock) },
    { path: join(folder, "node_modules", "@opencode-ai", "plugin", "package.json"), text: "{}" },
  ];
}

const denyAll = 'set "permission": { "*": "deny" } in opencode.json, and let the plugin grant';

const ownCases: readonly Case[] = [
  {
    name: "pure",
    words: ["--pure"],
    closed: "the host's option --pure ran nothing",
    open: "the host's option --pure switched the plugin off, and a call ran",
    remedy: denyAll,
  },
  {
    name: "project-allows",
    project: { permission: "allow", plugin: [] },
    closed: "a project that allows every tool ran nothing",
    open: "a project's opencode.json with `permission` let a blocked call run",
    remedy: managed,
  },
  {
    name: "project-allows-pure",
    project: { permission: "allow" },
    words: ["--pure"],
    closed: "a project that allows every tool ran nothing with the host's option --pure",
    open: "a project's opencode.json with `permission`, and the host's option --pure, let a call run",
    remedy: managed,
  },
];
