import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { delimiter, join } from "node:path";
import { BadInput } from "../bad-input.ts";
import { managedFile, userFile } from "../install/claude-code.ts";
import type { StandIn } from "./stand-in.ts";

type Members = Readonly<Record<string, unknown>>;

/** A file of settings that the host reads. */
export interface SettingsFile {
  readonly path: string;
  readonly settings: Members;
}

/** The installed host. */
export interface Host {
  readonly program: string;
  readonly version: string;
}

/** Finds Claude Code: the given program, or `claude` in PATH. */
export function findHost(named: string | undefined): Host {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  const program = named ?? folders.map((folder) => join(folder, "claude")).find((file) => existsSync(file));
  if (program === undefined) throw new BadInput("Claude Code is not in PATH: name its program with --host");
  const { status, stdout } = spawnSync(program, ["--version"], { encoding: "utf8", timeout: 30_000 });
  const version = /\d+\.\d+\.\d+/.exec(stdout ?? "")?.[0];
  if (status !== 0 || version === undefined)
    throw new BadInput(`${program} --version does not name a version of Claude Code`);
  return { program, version };
}

/** The settings of the user and of the machine, and of a project if one is given. */
export function readSettingsFiles(project: string | undefined): readonly SettingsFile[] {
  const inProject =
    project === undefined ? [] : ["settings.json", "settings.local.json"].map((name) => join(project, ".claude", name));
  return [userFile(), managedFile(), ...inProject].flatMap((path) => {
    if (!existsSync(path)) return [];
    try {
      return [{ path, settings: JSON.parse(readFileSync(path, "utf8")) as Members }];
    } catch {
      throw new BadInput(`${path} is not JSON: repair it, because the host does not read it either`);
    }
  });
}

/** Every command that the host would start because of the settings, with the member that names it. */
export function commandsIn({ settings }: SettingsFile): readonly string[] {
  const hooks = groupsOf(settings).flatMap(({ event, hook }) => {
    const { type, command, url } = hook as {
      readonly type?: unknown;
      readonly command?: unknown;
      readonly url?: unknown;
    };
    if (type === "command") return [`hook ${event}: ${String(command)}`];
    return type === "http" ? [`hook ${event}: POST ${String(url)}`] : [`hook ${event}: a ${String(type)} hook`];
  });
  const helpers = helperNames.flatMap((name) => (settings[name] === undefined ? [] : [`${name}, replaced by nothing`]));
  return [...hooks, ...helpers];
}

/** Members that start programs, or send data elsewhere: the doctor leaves them out. */
const helperNames = [
  "apiKeyHelper",
  "awsAuthRefresh",
  "awsCredentialExport",
  "enabledPlugins",
  "extraKnownMarketplaces",
  "gcpAuthRefresh",
  "otelHeadersHelper",
  "statusLine",
];

interface FoundHook {
  readonly event: string;
  readonly hook: unknown;
}

function groupsOf(settings: Members): readonly FoundHook[] {
  const hooks = settings["hooks"];
  if (typeof hooks !== "object" || hooks === null) return [];
  return Object.entries(hooks).flatMap(([event, groups]) =>
    (Array.isArray(groups) ? groups : []).flatMap((group: { readonly hooks?: unknown }) =>
      (Array.isArray(group?.hooks) ? group.hooks : []).map((hook: unknown) => ({ event, hook })),
    ),
  );
}

/** The form of the gate's hook in the settings; undefined if they have none. */
export function gateHookIn({ settings }: SettingsFile): "command" | "http" | undefined {
  const hooks = groupsOf(settings).filter(({ event }) => event === "PreToolUse");
  if (hooks.some(({ hook }) => isCommandHook(hook))) return "command";
  return hooks.some(({ hook }) => isHttpHook(hook)) ? "http" : undefined;
}

function isCommandHook(hook: unknown): hook is { readonly command: string } {
  const { command } = hook as { readonly command?: unknown };
  return typeof command === "string" && /svc-gate(?:\.mjs)?['"]? hook /.test(command) && command.includes("--url");
}

function isHttpHook(hook: unknown): hook is { readonly url: string } {
  const { url } = hook as { readonly url?: unknown };
  return typeof url === "string" && url.includes("/hooks/claude-code");
}

/** True if the host starts with nothing allowed, so that only the gate's ALLOW lets a call run. */
export function isGrantMode({ settings }: SettingsFile): boolean {
  const { permissions } = settings as { readonly permissions?: { readonly defaultMode?: unknown } };
  return permissions?.defaultMode === "dontAsk";
}

/** Where the gate's hook leads in the copy. */
export interface Redirection {
  readonly gate: StandIn;
  readonly keyFile: string;
  /** False removes the hook, as if it had never been installed. */
  readonly keepsHook: boolean;
}

/** A copy of settings whose hooks ask the doctor's gate with the doctor's key. */
export function redirected(settings: Members, redirection: Redirection): Members {
  const kept = Object.fromEntries(Object.entries(settings).filter(([name]) => !helperNames.includes(name)));
  const { env, hooks } = settings as { readonly env?: Members; readonly hooks?: Members };
  return {
    ...kept,
    ...(env === undefined
      ? {}
      : { env: Object.fromEntries(Object.entries(env).filter(([name]) => !redirecting.test(name))) }),
    ...(hooks === undefined ? {} : { hooks: redirectedHooks(hooks, redirection) }),
  };
}

/** Variables that would lead the host to another model, or its data elsewhere. */
const redirecting = /^(?:ANTHROPIC_|AWS_|CLAUDE_CODE_USE_|CLOUD_ML|GOOGLE_|OTEL_|VERTEX_)|_PROXY$/i;

function redirectedHooks(hooks: Members, redirection: Redirection): Members {
  const entries = Object.entries(hooks).map(([event, groups]) => {
    const list = (Array.isArray(groups) ? groups : []) as readonly { readonly hooks?: readonly unknown[] }[];
    const next = list.map((group) => ({
      ...group,
      hooks: (group.hooks ?? []).flatMap((hook) => redirectedHook(hook, redirection)),
    }));
    return [event, next.filter((group) => group.hooks.length > 0)] as const;
  });
  return Object.fromEntries(entries);
}

function redirectedHook(hook: unknown, { gate, keyFile, keepsHook }: Redirection): readonly unknown[] {
  if (!isCommandHook(hook) && !isHttpHook(hook)) return [hook];
  if (!keepsHook) return [];
  if (isHttpHook(hook)) {
    const { pathname, search } = new URL(hook.url);
    return [{ ...hook, url: `${gate.url}${pathname}${search}` }];
  }
  const word = String.raw`(?:'[^']*'|"[^"]*"|[^\s'"])+`;
  const command = hook.command
    .replace(new RegExp(`--url ${word}`), () => `--url ${gate.url}`)
    .replace(new RegExp(`--key-file ${word}`), () => `--key-file ${keyFile}`);
  return [{ ...hook, command }];
}

/** One start of the host. */
export interface Run {
  readonly host: Host;
  readonly model: string;
  readonly gate: StandIn;
  /** The doctor's folder. The host gets a home and a workspace in it. */
  readonly folder: string;
  /** The script that the model follows. */
  readonly script: string;
  readonly user: Members;
  /** The settings of the workspace's own files; undefined if it has none. */
  readonly project: Members | undefined;
  readonly words: readonly string[];
}

const runMs = 60_000;

/** Starts the host with a home of its own, and waits for its end. */
export async function runHost(run: Run): Promise<{ readonly code: number | null; readonly output: string }> {
  const { host, model, gate, folder, script, user, project, words } = run;
  const [home, workspace] = [join(folder, "home"), join(folder, "workspace")];
  const config = join(home, ".claude");
  const temporary = join(folder, "tmp");
  for (const each of [config, temporary, join(workspace, ".claude")]) mkdirSync(each, { recursive: true });
  // As after the host's first question about a project.
  const trust = { projects: { [workspace]: { hasTrustDialogAccepted: true } }, hasCompletedOnboarding: true };
  writeFileSync(join(config, ".claude.json"), JSON.stringify(trust));
  writeFileSync(join(config, "settings.json"), JSON.stringify(user));
  writeFileSync(join(workspace, ".claude", "settings.json"), JSON.stringify(project ?? {}));
  const nowhere = "http://127.0.0.1:9";
  const child = spawn(host.program, ["-p", `[[${script}]]`, "--output-format", "json", ...words], {
    cwd: workspace,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: runMs,
    killSignal: "SIGKILL",
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      CLAUDE_CONFIG_DIR: config,
      CLAUDE_CODE_TMPDIR: temporary,
      TMPDIR: temporary,
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: "sk-of-the-doctor",
      SVC_KEY: gate.key,
      HTTP_PROXY: nowhere,
      HTTPS_PROXY: nowhere,
      NO_PROXY: "127.0.0.1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
    },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (output += String(piece)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}
