/**
 * `svc-gate hook install`: write or print the safest configuration of an agent host, show the changes first, and undo
 * them.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { saysYes } from "../ask.ts";
import { InputError } from "../bad-input.ts";
import { approverFiles } from "./approver-files.ts";
import { shellWord } from "../shell-word.ts";
import { lineDifference } from "./difference.ts";
import { keyFileFor, makeKey } from "./host-key.ts";
import { objectIn, type Host, type InstallOptions } from "./host.ts";
import { hosts } from "./hosts.ts";
import { hasOlderLine } from "./shell.ts";

const usage = `usage: svc-gate hook install --agent NAME [options]

Set up the gate in an agent host: show the changes to its settings, ask, and write them.

  --agent NAME            the host: claude-code, codex, gemini-cli or copilot-cli
  --scope user|managed    your own settings (the default), or those of the machine, which nothing else can switch off
  --form command|http     start a command before each call (the default), or let Claude Code ask the gate itself
  --url URL               the gate, by default http://127.0.0.1:8787
  --key-file FILE         the API key, by default ~/.config/svc-gate/AGENT.key
  --admin-key-file FILE   make a host key with this key of an administrator, if --key-file does not exist
  --name NAME             the name of the new key, by default the agent's
  --on-escalate WAY       deny (the default), wait, or for claude-code defer
  --no-grant              keep the host's own permissions; without this, only calls that the gate allows run
  --keep-allow            for claude-code, keep the permissions that the settings already allow
  --print                 print the settings, and write nothing
  --yes                   write without asking
  --undo                  restore your earlier settings

After an update, run it again for each host: it replaces a line that an earlier version installed.
`;

const options = {
  agent: { type: "string", default: "" },
  scope: { type: "string", default: "user" },
  form: { type: "string", default: "command" },
  url: { type: "string", default: process.env["SVC_URL"] ?? "http://127.0.0.1:8787" },
  "key-file": { type: "string" },
  "admin-key-file": { type: "string" },
  name: { type: "string" },
  "on-escalate": { type: "string", default: "deny" },
  "no-grant": { type: "boolean", default: false },
  "keep-allow": { type: "boolean", default: false },
  print: { type: "boolean", default: false },
  yes: { type: "boolean", default: false },
  undo: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

type InstallFlags = ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];

/** Runs the command. */
export async function installCommand(words: readonly string[]): Promise<number> {
  const values = read(words);
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const host = hosts[values.agent] as Host;
  const file = values.scope === "managed" ? host.managedFile() : host.userFile();
  if (values.undo) return undo(file, values);
  const wanted = await makeInstallOptions(values, host);
  const before = readText(file);
  const settings = host.settings(before, wanted);
  if (values.print) {
    process.stdout.write(settings.text);
    return 0;
  }
  show(file, before ?? "", settings.text);
  if (wanted.form === "http") say(`start the host with the key in its environment: SVC_KEY="$(cat ${wanted.keyFile})"`);
  for (const warning of [...settings.warnings, ...approverFiles(values.url)]) say(`warning: ${warning}`);
  if (before !== undefined && hasOlderLine(before)) say(olderLine);
  if (settings.text === before) {
    say(`${file} has these settings already`);
    return 0;
  }
  if (!(await mayWrite(`Write ${file}?`, values))) return 1;
  const first = recordOf(file, values);
  // A second installation does not forget the settings from before the first one.
  const original = first !== undefined && first.after === before ? first.before : before;
  write(record(file, values), JSON.stringify({ before: original, after: settings.text }), 0o600);
  write(file, settings.text, permissionBitsOf(values));
  const scope = wanted.isManaged ? " --scope managed" : "";
  say(`wrote ${file}; \`svc-gate hook install --agent ${values.agent}${scope} --undo\` restores your earlier settings`);
  say(`Next: svc-gate doctor --agent ${values.agent}`);
  return 0;
}

function read(words: readonly string[]): InstallFlags {
  try {
    const { values } = parseArgs({ args: [...words], options });
    if (values.help) return values;
    oneOf("--agent", values.agent, Object.keys(hosts));
    oneOf("--scope", values.scope, ["user", "managed"]);
    const hasMore = hosts[values.agent]?.hasMoreOptions === true;
    oneOf("--form", values.form, hasMore ? ["command", "http"] : ["command"]);
    oneOf("--on-escalate", values["on-escalate"], hasMore ? ["deny", "wait", "defer"] : ["deny", "wait"]);
    if (values["keep-allow"] && !hasMore) throw new InputError("--keep-allow is for claude-code");
    if (process.platform === "win32" && !hasMore)
      throw new InputError("the hooks of this host need a POSIX shell: use the host in WSL");
    if (!/^https?:\/\/[^/?#@\s"'\\]+(?:\/[^?#\s"'\\]*)?$/i.test(values.url))
      throw new InputError("--url must be http:// or https://, a host, and no user, query or fragment");
    return values;
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`${(error as Error).message} (run svc-gate hook install --help for its options)`);
  }
}

function oneOf(name: string, value: string, known: readonly string[]): void {
  if (!known.includes(value))
    throw new InputError(`${name} must be ${known.join(" or ")}, not ${JSON.stringify(value)}`);
}

async function makeInstallOptions(values: InstallFlags, { canGrant }: Host): Promise<InstallOptions> {
  const isGrant = canGrant && !values["no-grant"];
  const mode = await gateMode(values.url);
  if (isGrant && mode === "observe") {
    const sentence = `the gate at ${values.url} observes, so it grants nothing, and the host would run no tool`;
    throw new InputError(`${sentence}: use --no-grant while it observes, and run this again when it enforces`);
  }
  const isManaged = values.scope === "managed";
  const named = values["key-file"];
  const keyFile = resolve(named ?? keyFileFor(values.agent));
  if (named !== undefined) refuseProject(keyFile);
  // In the settings of the machine, the default path is in each user's home folder.
  const isOfEachUser = isManaged && named === undefined;
  if (!isOfEachUser && !existsSync(keyFile)) {
    const admin = values["admin-key-file"];
    const { name = values.agent } = values;
    if (admin === undefined) throw new InputError(howToMakeKey(name, keyFile));
    await makeKey({ url: values.url, adminKeyFile: resolve(admin), name, keyFile });
    say(`made the host key \`${name}\` and wrote it to ${keyFile}`);
  }
  if (!isOfEachUser) refuseShared(keyFile);
  return {
    url: values.url.replace(/\/+$/, ""),
    keyFile: isOfEachUser ? `"$HOME"/${relative(homedir(), keyFile)}` : shellWord(keyFile),
    program: realpathSync(process.argv[1] ?? "svc-gate"),
    form: values.form as InstallOptions["form"],
    onEscalate: values["on-escalate"] as InstallOptions["onEscalate"],
    isGrant,
    keepsAllow: values["keep-allow"],
    isManaged,
  };
}

/** A key in a project's folder could get into its repository. */
function refuseProject(keyFile: string): void {
  const home = homedir();
  for (let folder = dirname(keyFile); folder !== home && folder !== dirname(folder); folder = dirname(folder))
    if ([".git", ".claude"].some((name) => existsSync(join(folder, name))))
      throw new InputError(`${keyFile} is in the project ${folder}: name a --key-file outside of all projects`);
}

const olderLine =
  "the installed line is older: a program in a folder of PATH could forge the gate's answer. The new line replaces it";

/** The hook refuses such a key, so every call would be refused. */
function refuseShared(keyFile: string): void {
  if (process.platform !== "win32" && (statSync(keyFile).mode & 0o077) !== 0)
    throw new InputError(`other users can read ${keyFile}: run chmod 600 on it`);
}

function howToMakeKey(name: string, keyFile: string): string {
  return (
    `${keyFile} does not exist. On the gate's machine, run \`svc-gate keys create ${name} --kind host\`. ` +
    "Write the key to that file and run `chmod 600` on it, or name an administrator's key with --admin-key-file"
  );
}

/** The gate's mode. A gate that does not answer would refuse every call, so nothing is written. */
async function gateMode(url: string): Promise<string> {
  try {
    const response = await fetch(`${url.replace(/\/+$/, "")}/health`, {
      redirect: "manual",
      signal: AbortSignal.timeout(5000),
    });
    const { mode } = (await response.json()) as { readonly mode?: unknown };
    if (mode === "observe" || mode === "assist" || mode === "enforce") return mode;
  } catch {
    // Reported below.
  }
  throw new InputError(`the gate at ${url} does not answer GET /health: start it, or name it with --url`);
}

async function undo(file: string, values: InstallFlags): Promise<number> {
  const kept = recordOf(file, values);
  if (kept === undefined) throw new InputError(`this command has not written ${file}, so there is nothing to undo`);
  const { before, after } = kept;
  const now = readText(file) ?? "";
  show(file, now, before ?? "");
  if (now !== after) say(`warning: somebody changed ${file} since the installation; these changes would be lost too`);
  if (!(await mayWrite(before === undefined ? `Remove ${file}?` : `Write ${file}?`, values))) return 1;
  if (before === undefined) rmSync(file, { force: true });
  else write(file, before, permissionBitsOf(values));
  rmSync(record(file, values));
  say(before === undefined ? `removed ${file}, which did not exist before` : `${file} is as it was before`);
  return 0;
}

/** A new file's mode. All users read the machine's settings; those of a user may have secrets. */
function permissionBitsOf({ scope }: InstallFlags): number {
  return scope === "managed" ? 0o644 : 0o600;
}

/** The file that keeps the earlier settings of one file: a variable may name another at the next start. */
function record(file: string, { agent }: InstallFlags): string {
  const name = createHash("sha256").update(file).digest("hex").slice(0, 16);
  return join(homedir(), ".config", "svc-gate", `${agent}.${name}.install.json`);
}

/** The earlier settings, and those that this command wrote; undefined if it wrote none. */
function recordOf(
  file: string,
  values: InstallFlags,
): { readonly before?: string; readonly after: string } | undefined {
  const text = readText(record(file, values));
  const problem = `${record(file, values)} is damaged: restore your settings by hand, and remove it`;
  return text === undefined ? undefined : (objectIn(text, problem) as { before?: string; after: string });
}

function show(file: string, before: string, after: string): void {
  if (before === after) return;
  process.stdout.write(`${file}\n${lineDifference(before, after)}\n`);
}

/** Returns false if the person says no. */
async function mayWrite(question: string, { yes }: InstallFlags): Promise<boolean> {
  const nobody = new InputError("nobody can answer here: use --yes to write, or --print to look");
  const isAgreed = yes || (await saysYes(question, nobody));
  if (!isAgreed) say("nothing was written");
  return isAgreed;
}

function write(file: string, text: string, mode: number): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { mode });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "error";
    throw new InputError(`${file} cannot be written (${code}): run this as its owner, or copy what --print shows`);
  }
}

function readText(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
