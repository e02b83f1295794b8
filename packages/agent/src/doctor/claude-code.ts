import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { delimiter, dirname, join } from "node:path";
import { BadInput } from "../bad-input.ts";
import { managedFile, userFile } from "../install/claude-code.ts";
import { shellWord } from "../shell-word.ts";
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
  return [userFile(), managedFile(), ...dropIns(), ...inProject].flatMap((path) => {
    if (!existsSync(path)) return [];
    return [{ path, settings: objectIn(path) }];
  });
}

/** More files of the machine's settings. */
function dropIns(): readonly string[] {
  const folder = join(managedFolder, "managed-settings.d");
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => (name.endsWith(".json") ? [join(folder, name)] : []));
}

/** The folder of the machine's settings. It may also name MCP servers, which the doctor leaves out. */
export const managedFolder: string = dirname(managedFile());

export function isOfMachine({ path }: Pick<SettingsFile, "path">): boolean {
  return path.startsWith(managedFolder);
}

function objectIn(path: string): Members {
  try {
    const settings: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof settings === "object" && settings !== null && !Array.isArray(settings)) return settings as Members;
  } catch {
    // Reported below.
  }
  throw new BadInput(`${path} is not JSON: repair it, because the host does not read it either`);
}

/** Every command that the host would start because of the settings, with the member that names it. */
export function commandsIn({ settings }: SettingsFile): readonly string[] {
  const hooks = groupsOf(settings).flatMap(({ event, hook }) => {
    const { type, command, args, url } = hook;
    const more = Array.isArray(args) ? args.map((word) => ` ${JSON.stringify(word)}`).join("") : "";
    if (type === "command") return [`hook ${event}: ${String(command)}${more}`];
    return type === "http" ? [`hook ${event}: POST ${String(url)}`] : [`hook ${event}: a ${String(type)} hook`];
  });
  const left = Object.keys(settings).filter((name) => !keptNames.includes(name));
  return [...hooks, ...left.map((name) => `${name}, replaced by nothing`)];
}

/** The members of which the host gets a copy. Others may start programs, or send data elsewhere. */
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

interface FoundHook {
  readonly event: string;
  readonly hook: Members;
}

function groupsOf(settings: Members): readonly FoundHook[] {
  const hooks = settings["hooks"];
  if (typeof hooks !== "object" || hooks === null) return [];
  return Object.entries(hooks).flatMap(([event, groups]) =>
    (Array.isArray(groups) ? groups : []).flatMap((group: { readonly hooks?: unknown }) =>
      hooksIn(group).map((hook) => ({ event, hook })),
    ),
  );
}

function hooksIn(group: { readonly hooks?: unknown } | null): readonly Members[] {
  const hooks: readonly unknown[] = Array.isArray(group?.hooks) ? group.hooks : [];
  return hooks.filter((hook): hook is Members => typeof hook === "object" && hook !== null);
}

/** The form of the gate's hook in the settings; undefined if they have none. */
export function gateHookIn({ settings }: SettingsFile): "command" | "http" | undefined {
  const hooks = groupsOf(settings).filter(({ event }) => event === "PreToolUse");
  if (hooks.some(({ hook }) => isCommandHook(hook))) return "command";
  return hooks.some(({ hook }) => isHttpHook(hook)) ? "http" : undefined;
}

function isCommandHook(hook: Members): hook is { readonly command: string } {
  const { command, args } = hook;
  const words = [command, ...(Array.isArray(args) ? args : [])].map(String).join(" ");
  return typeof command === "string" && /svc-gate(?:\.mjs)?['"]?\s+['"]?hook\b/.test(words);
}

function isHttpHook(hook: Members): hook is { readonly url: string } {
  const { url } = hook;
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
  const kept = Object.fromEntries(Object.entries(settings).filter(([name]) => keptNames.includes(name)));
  const { env, hooks } = settings as { readonly env?: Members; readonly hooks?: Members };
  return {
    ...kept,
    ...(env === undefined
      ? {}
      : { env: Object.fromEntries(Object.entries(env).filter(([name]) => !redirecting.test(name))) }),
    ...(hooks === undefined ? {} : { hooks: redirectedHooks(hooks, redirection) }),
  };
}

/** Variables that would lead the host to another model, its data elsewhere, or the hook to the user's gate. */
const redirecting = /^(?:ANTHROPIC_|AWS_|CLAUDE_CODE_USE_|CLOUD_ML|GOOGLE_|OTEL_|SVC_|VERTEX_)|_PROXY$/i;

function redirectedHooks(hooks: Members, redirection: Redirection): Members {
  const entries = Object.entries(hooks).map(([event, groups]) => {
    const list: readonly (Members | null)[] = Array.isArray(groups) ? groups : [];
    const next = list.map((group) => ({
      ...group,
      hooks: hooksIn(group).flatMap((hook) => redirectedHook(hook, redirection)),
    }));
    return [event, next.filter((group) => group.hooks.length > 0)] as const;
  });
  return Object.fromEntries(entries);
}

function redirectedHook(hook: Members, { gate, keyFile, keepsHook }: Redirection): readonly Members[] {
  if (!isCommandHook(hook) && !isHttpHook(hook)) return [hook];
  if (!keepsHook) return [];
  if (isHttpHook(hook)) {
    const { pathname, search } = new URL(hook.url);
    return [{ ...hook, url: `${gate.url}${pathname}${search}` }];
  }
  return [{ ...hook, command: redirectedCommand(hook, `--url ${gate.url} --key-file ${shellWord(keyFile)}`) }];
}

/** The command with the doctor's gate and key in place of its own. One that cannot be changed surely is refused. */
function redirectedCommand({ command, args }: Members, ours: string): string {
  const text = String(command);
  const without = text.replace(new RegExp(String.raw`\s--(?:url|key-file)(?:=|\s+)${word}`, "g"), "");
  const start = /svc-gate(?:\.mjs)?['"]?\s+hook\b/;
  if (args !== undefined || !start.test(without) || /--url|--key-file|SVC_/.test(without))
    throw new BadInput(`the doctor cannot lead this hook to its own gate: ${text}`);
  return without.replace(start, (found) => `${found} ${ours}`);
}

/** One word of a shell's command line. */
const word = String.raw`(?:'[^']*'|"(?:\\[^]|[^"\\])*"|\\[^]|[^\s'"\\])+`;

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
  /** Starts a session with a terminal of the command `script` (Linux), and ends it as soon as this is true. */
  readonly inTerminal?: () => boolean;
}

const runMs = 60_000;
const sessionMs = 15_000;

const apiKey = "sk-of-the-doctor";

/** Starts the host with a home of its own, and waits for its end. */
export async function runHost(run: Run): Promise<{ readonly code: number | null; readonly output: string }> {
  const { host, model, gate, folder, script, user, project, words, inTerminal } = run;
  const [home, workspace] = [join(folder, "home"), join(folder, "workspace")];
  const config = join(home, ".claude");
  const temporary = join(folder, "tmp");
  for (const each of [config, temporary, join(workspace, ".claude")]) mkdirSync(each, { recursive: true });
  // As after the host's first question about a project.
  const trust = {
    projects: { [workspace]: { hasTrustDialogAccepted: true } },
    hasCompletedOnboarding: true,
    customApiKeyResponses: { approved: [apiKey], rejected: [] },
  };
  writeFileSync(join(config, ".claude.json"), JSON.stringify(trust));
  writeFileSync(join(config, "settings.json"), JSON.stringify(user));
  writeFileSync(join(workspace, ".claude", "settings.json"), JSON.stringify(project ?? {}));
  const nowhere = "http://127.0.0.1:9";
  const session = join(folder, "session");
  const started = [host.program, `[[${script}]]`, ...words].map(shellWord).join(" ");
  const inShell = `stty rows 40 cols 120; echo $$ > ${shellWord(session)}; exec ${started}`;
  const [program, ...all] =
    inTerminal === undefined
      ? [host.program, "-p", `[[${script}]]`, "--output-format", "json", ...words]
      : ["script", "-qfec", inShell, "/dev/null"];
  const child = spawn(program, all, {
    cwd: workspace,
    stdio: [inTerminal === undefined ? "ignore" : "pipe", "pipe", "pipe"], // without input, `script` ends
    detached: true, // a group of its own, with everything that it starts
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      CLAUDE_CONFIG_DIR: config,
      CLAUDE_CODE_TMPDIR: temporary,
      TMPDIR: temporary,
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: apiKey,
      ...(inTerminal === undefined ? {} : { TERM: "xterm-256color" }),
      SVC_KEY: gate.key,
      HTTP_PROXY: nowhere,
      HTTPS_PROXY: nowhere,
      NO_PROXY: "127.0.0.1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
    },
  });
  const end = (): void => {
    endGroup(child.pid);
    if (existsSync(session)) endGroup(Number(readFileSync(session, "utf8"))); // `script` starts another group
  };
  const timer = setTimeout(end, inTerminal === undefined ? runMs : sessionMs);
  const watching = setInterval(() => inTerminal?.() === true && end(), 100);
  child.once("error", end);
  child.once("exit", end); // A program that the host left behind would keep its output open.
  process.once("exit", end);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece) => (output += String(piece)));
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(timer);
  clearInterval(watching);
  process.off("exit", end);
  return { code, output };
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined && pid > 0) process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}
