/**
 * The lines that a host runs as its hooks. An agent can often write to a folder of PATH, such as `node_modules/.bin`. A
 * program there could forge the gate's answer. So every program has its full path, except the shell's own commands:
 * `case`, `echo`, `exit`, `printf` and `unset`.
 */
import { constants } from "node:fs";
import { InputError } from "../bad-input.ts";
import { canAccess } from "../can-access.ts";
import { shellWord } from "../shell-word.ts";
import type { InstallOptions } from "./host.ts";

type HookInvocation = Pick<InstallOptions, "keyFile" | "program" | "url">;

/** Seconds for one call. The host's own deadline is later, because some hosts run the tool when it is over. */
const callSeconds = 15;
const waitSeconds = 600;

/** The words of the hook as text for a shell. `keyFile` is a word of a shell already. */
export function hookWords(agent: string, { url, keyFile, program }: HookInvocation, more: readonly string[]): string {
  const words = [process.execPath, program, "hook", "--agent", agent, "--url", url].map(shellWord);
  return [...ownEnvironment(), ...words, "--key-file", keyFile, ...more.map(shellWord)].join(" ");
}

/**
 * A project's file, such as `.env`, may set variables with which Node runs other code (`NODE_OPTIONS`). So the hook has
 * none, except the certificates of the user's own authority. Windows needs some of its variables for a connection.
 */
function ownEnvironment(): readonly string[] {
  return process.platform === "win32"
    ? []
    : ["/usr/bin/env -i", '${NODE_EXTRA_CA_CERTS:+"NODE_EXTRA_CA_CERTS=$NODE_EXTRA_CA_CERTS"}'];
}

/** How long the host must wait for the hook, in seconds. */
export function hostSeconds({ onEscalate }: InstallOptions): number {
  return (onEscalate === "wait" ? waitSeconds : 0) + callSeconds + 45;
}

/**
 * The hook before a call, for a host that runs the tool if the hook is missing, crashes, hangs or gives an unexpected
 * answer. The shell passes an output on only if it starts as expected, and if the hook ended with exit code 0 and in
 * time.
 *
 * It is one word for `/bin/sh`, because some hosts use the user's shell, which may have another syntax.
 *
 * @param prefixes what an output may start with
 * @param whole an output that has no more; by default there is none
 * @param refusal the shell's commands that refuse the call
 */
export function guardedCommand(
  words: string,
  { onEscalate }: InstallOptions,
  { prefixes, whole = [], refusal }: OutputGuard,
): string {
  const seconds = (onEscalate === "wait" ? waitSeconds : 0) + callSeconds;
  const patterns = [...prefixes.map((text) => `'0${text}'*`), ...whole.map((text) => `'0${text}'`)].join("|");
  const answer = `out=$(${deadline(seconds)} ${words})`;
  const script = `${ownBuiltins}; ${answer}; case "$?$out" in ${patterns}) printf '%s\\n' "$out";; *) ${refusal};; esac`;
  return `/bin/sh -c ${shellWord(script)}`;
}

/**
 * Where `/bin/sh` is bash, the environment can contain a function called `printf` or `echo`. `unset` itself cannot be
 * replaced, because it is a special builtin of POSIX.
 */
const ownBuiltins = "unset -f echo printf";

interface OutputGuard {
  readonly prefixes: readonly string[];
  readonly whole?: readonly string[];
  readonly refusal: string;
}

/** The hook after a call. Its failure must not hide the tool's result. */
export function reportingCommand(words: string): string {
  return `/bin/sh -c ${shellWord(`${deadline(callSeconds)} ${words} >/dev/null 2>&1; exit 0`)}`;
}

export const noVerdict = "Svc: the hook gave no verdict; the action is blocked.";

/** A refusal for hosts that read exit code 2 with a text. Without a text some of them run the tool. */
export const exit2: string = `echo ${shellWord(noVerdict)} >&2; exit 2`;

/** macOS has no `timeout`, but Perl. Perl gets no variables, because `PERL5OPT` makes it run other code. */
function deadline(seconds: number): string {
  return process.platform === "darwin"
    ? `/usr/bin/env -i ${systemProgram("perl")} -e 'alarm shift; exec @ARGV' ${seconds}`
    : `${systemProgram("timeout")} -k 1 ${seconds}`;
}

/** Only an administrator can write to these folders. The last one is that of NixOS. */
const systemFolders = ["/usr/bin", "/bin", "/run/current-system/sw/bin"];

/**
 * Finds a program of the operating system. It does not use PATH.
 *
 * @throws {InputError} if the system does not have it
 */
export function systemProgram(name: string, folders: readonly string[] = systemFolders): string {
  const program = folders.map((folder) => `${folder}/${name}`).find((file) => canAccess(file, constants.X_OK));
  if (program !== undefined) return program;
  throw new InputError(
    `the hook needs the program \`${name}\`, which is not in ${folders.join(", ")}: install it, and run this again`,
  );
}

/** True if settings have a line that an earlier version installed: it finds `timeout` through PATH. */
export function hasOlderLine(settings: string): boolean {
  return /out=\$\(timeout -k 1 \d/.test(settings);
}
