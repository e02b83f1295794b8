import { quote } from "../../../core/src/wire/mod.ts";
import { doubt } from "./doubt.ts";
import { literal, optionsIn, subcommandIndex, type Arg } from "./words.ts";

/** Shells whose code the gate reads. */
export const shells: ReadonlySet<string> = new Set(["sh", "bash", "dash", "ash"]);

/** These run code in ways, or in shell languages, that the gate does not read. */
const neverKnown: ReadonlySet<string> = new Set(
  (
    "rbash ksh mksh zsh fish csh tcsh xonsh nu elvish rc pwsh powershell cmd cmd.exe powershell.exe parallel expect at batch nsenter " +
    "systemd-run start-stop-daemon proot firejail setpriv capsh gdb lldb tmux screen dtach abduco " +
    "socat entr bind complete compgen fc"
  ).split(" "),
);

/** The loader, `ld.so`, runs the program that its arguments name. */
export function isNeverKnown(name: string): boolean {
  return neverKnown.has(name) || /^ld(?:-linux.*|-musl.*)?\.so(?:\.\d+)?$/.test(name);
}

/** Options of `set` and `shopt` that do not change how the shell reads a text. */
const quietOptions = new Set(
  (
    "allexport errexit errtrace functrace noclobber noexec noglob nounset pipefail verbose xtrace monitor notify " +
    "nullglob failglob globstar nocaseglob inherit_errexit"
  ).split(" "),
);

export function isQuietOption(name: string): boolean {
  return quietOptions.has(name);
}

/**
 * Is it as harmless as `set -euo pipefail`? `set -k` makes `ls PATH=.` set a variable; `set -H` makes `!!` a command.
 */
function isQuietSet(args: readonly Arg[]): boolean {
  for (let at = 0; at < args.length; at += 1) {
    const { text, fixed } = args[at] ?? literal("");
    // A word that starts with a variable may be an option.
    if (!/^[-+]/.test(text)) return /^[\w./]/.test(fixed);
    if (text === "--") return true;
    if (!/^[-+][abefhmnuvxCETo]+$/.test(text)) return false;
    for (const _ of text.replace(/[^o]/g, "")) if (!isQuietOption(args[(at += 1)]?.text ?? "noglob")) return false;
  }
  return true;
}

/**
 * Does a builtin change the meaning of names, or run code later: `alias ls=rm`, `hash -p /tmp/x ls`, `enable -f x.so
 * x`?
 */
export function renames(name: string, args: readonly Arg[]): boolean {
  if (name === "set") return !isQuietSet(args);
  if (name === "shopt") return args.some(({ text }) => !/^-[supqo]+$/.test(text) && !quietOptions.has(text));
  if (name === "jobs") return args.some(({ text, known }) => !known || text.startsWith("-x"));
  if (name === "alias") return args.some(({ text, known }) => !known || text.includes("="));
  if (name === "mapfile" || name === "readarray") return args.some(({ text, known }) => !known || /^-.*C/.test(text));
  return (name === "hash" || name === "enable") && args.some(({ text, known }) => !known || text.startsWith("-"));
}

/** Options of programs whose value a shell runs. */
const runsValue: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    tar:
      "-I -F --checkpoint-action --to-command --use-compress-program --info-script --new-volume-script --rsh-command " +
      "--rmt-command",
    rsync: "-e --rsh --rsync-path",
    sort: "--compress-program",
    rg: "--pre --hostname-bin",
    man: "-P -H --pager --html",
    split: "--filter",
    zip: "--unzip-command",
    nc: "-e -c --exec --sh-exec",
    ncat: "-e -c --exec --sh-exec --lua-exec",
    make: "--eval",
    fd: "-x -X --exec --exec-batch",
    fdfind: "-x -X --exec --exec-batch",
    go: "--exec --toolexec --vettool",
    git: "--upload-pack --receive-pack --exec --extcmd --open-files-in-pager",
  }).map(([name, options]) => [name, options.split(" ")]),
);

/**
 * The code in options of programs that are not wrappers: `tar --to-command=CODE`.
 * @throws {EvaluationError} if an option may contain code that the gate does not read
 */
export function codeOptions(name: string, args: readonly Arg[]): readonly Arg[] {
  if (name === "git") checkGit(args);
  if (/^(?:ssh|scp|sftp)$/.test(name)) checkSsh(name, args);
  const first = args[0]?.text ?? "";
  if (name === "tar" && /^[A-Za-z]+$/.test(first) && /[IF]/.test(first))
    doubt("`tar` may run a program that is named later");
  if (name === "zip" && args.some(({ text }) => /^-[A-Za-z]*TT/.test(text))) doubt("`zip -TT` runs a program");
  const options = runsValue.get(name);
  if (options === undefined) return [];
  if (name !== "git") checkPatternOptions(name, args);
  return args.flatMap((arg, at) => {
    const text = name === "tar" && at === 0 && /^[A-Za-z]+$/.test(arg.text) ? `-${arg.text}` : arg.text;
    const attached = findAttachedValue(text, options);
    if (attached === undefined) return [];
    const value = attached === "" ? (args[at + 1] ?? literal("")) : { ...arg, text: attached };
    if (name === "tar" && value.text.includes("=") && !value.text.startsWith("exec=")) return [];
    // `tar --checkpoint-action=exec=CODE`, `fd -x=CODE`.
    return [{ ...value, text: value.text.replace(/^(?:exec)?=/, "") }];
  });
}

/** `tar cf x.tar *` reads a file with the name `--to-command=...` as an option. */
export function checkPatternOptions(name: string, args: readonly Arg[]): void {
  const end = args.findIndex(({ text }) => text === "--");
  const pattern = (end < 0 ? args : args.slice(0, end)).find(({ text, glob }) => glob && /^[*?[-]/.test(text));
  if (pattern !== undefined)
    doubt(`${quote(pattern.text)} may become options of ${quote(name)}; write ${quote(`./${pattern.text}`)}`);
}

/**
 * The attached value of an option that runs its value, empty if the value is the next word; undefined for other
 * options.
 */
function findAttachedValue(text: string, options: readonly string[]): string | undefined {
  if (text.startsWith("--")) {
    const [[name = "", value = ""] = []] = optionsIn(text);
    const isLong = name !== "--" && name !== "--checkpoint" && options.some((option) => option.startsWith(name));
    return isLong ? value : undefined;
  }
  // Long options of Go programs start with one dash or two.
  const [word = "", ...rest] = text.split("=");
  if (options.includes(`-${word}`) && options.every((option) => option.startsWith("--"))) return rest.join("=");
  if (!/^-[A-Za-z0-9]/.test(text)) return undefined;
  for (const [option, value = ""] of optionsIn(text)) if (options.includes(option)) return value;
  return undefined;
}

/** Settings of git that name no program; a dot at the end includes all settings below. */
const quietSettings = (
  "user.name user.email color. advice. log. core.quotepath core.autocrlf core.filemode core.ignorecase core.longpaths " +
  "core.abbrev commit.gpgsign tag.gpgsign init.defaultbranch http.version http.postbuffer http.lowspeedlimit " +
  "http.lowspeedtime pull.rebase pull.ff push.default merge.ff merge.conflictstyle rebase.autostash diff.renames " +
  "diff.algorithm safe.directory protocol.version gc.auto"
).split(" ");

function isQuiet(key: string): boolean {
  const lower = key.toLowerCase();
  return quietSettings.some((quiet) => (quiet.endsWith(".") ? lower.startsWith(quiet) : lower === quiet));
}

function checkGit(args: readonly Arg[]): void {
  const command = subcommandIndex("git", args);
  for (const [at, { text, known }] of args.entries()) {
    const next = args[at + 1];
    if (/^(?:ext::|[a-z+]*ssh:\/\/-)/.test(text)) doubt("git runs code in such an address");
    if (/^--(?:exec-path=|config-env)/.test(text)) doubt(`git with ${quote(text)} runs unknown code`);
    if (text === "-c" && at < command) {
      const [key = ""] = (next?.text ?? "").split("=");
      if (next?.known === false && !next.text.includes("=")) doubt("a setting of git is known only when it runs");
      if (!isQuiet(key)) doubt(`the setting ${quote(key)} of git may name a program`);
    }
    if (at === command && known) checkGitCommand(text, args.slice(at + 1));
  }
}

/** Subcommands of git that can run a command from their words. */
function checkGitCommand(command: string, args: readonly Arg[]): void {
  const texts = args.map(({ text }) => text);
  const runs =
    command === "filter-branch" ||
    (command === "bisect" && texts[0] === "run") ||
    (command === "submodule" && texts.includes("foreach")) ||
    (command === "rebase" && texts.some((text) => /^(?:-[^-]*x|--ex)/.test(text))) ||
    (command === "difftool" && texts.some((text) => /^(?:-[^-]*x|--ext)/.test(text))) ||
    (command === "grep" && texts.some((text) => /^-[^-]*O/.test(text))) ||
    (command === "clone" && texts.some((text) => /^(?:-[^-]*[uc]|--co|--up|--u$)/.test(text))) ||
    (command === "config" && texts.some((text) => /^--(?:ren|com)/.test(text)));
  if (runs) doubt(`\`git ${command}\` runs a command among its words`);
  const [key, value] = texts.filter((text) => !text.startsWith("-"));
  if (
    command === "config" &&
    key !== undefined &&
    value !== undefined &&
    !isQuiet(key) &&
    !/^(?:get|list|unset)$/.test(key)
  )
    doubt(`the setting ${quote(key)} of git may name a program`);
}

function checkSsh(name: string, args: readonly Arg[]): void {
  const files = name === "ssh" ? "FI" : "FSD";
  for (const [at, { text, known }] of args.entries()) {
    if (new RegExp(`^-[46AaCfGgKkMNnpqrsTtVvXxYy0-9]*[${files}]`).test(text))
      doubt("an option of ssh may name a program");
    const attached = /^-[46AaCfGgKkMNnqrsTtVvXxYy]*o([^]*)$/.exec(text)?.[1];
    if (attached === undefined) continue;
    const value = attached === "" ? args[at + 1] : { text: attached, known };
    if (value?.known !== true || /command|proxy|include|match|pkcs11|securitykeyprovider|xauth/i.test(value.text))
      doubt("an option of ssh may name a program");
  }
}

/**
 * Known options of `grep`: letters without a value, long names. After any other option no word counts as the pattern.
 */
const grepLetters = "EFGPivwxcnoqsabHhLlrRzZTU";
const grepWords =
  "color colour include exclude exclude-dir context max-count recursive ignore-case line-number count only-matching " +
  "word-regexp extended-regexp fixed-strings invert-match files-with-matches no-messages";
const grepOption = new RegExp(
  `^(?:-[${grepLetters}0-9]+|-[${grepLetters}]*[ABCm][0-9]+|--(?:${grepWords.replaceAll(" ", "|")})(?:=[^]*)?)$`,
);
const grepValue = new RegExp(`^-[${grepLetters}]*[ABCm]$`);

/** The arguments of a command that may name files: all except the pattern of `grep`. */
export function filesOf(name: string, args: readonly Arg[]): readonly string[] {
  const texts = args.map(({ text }) => text);
  const at = /^[ef]?grep$/.test(name) ? patternIndex(args) : undefined;
  return at === undefined ? texts : texts.toSpliced(at, 1);
}

/** The index of the pattern; undefined if an option may give it, before or after the words. */
function patternIndex(args: readonly Arg[]): number | undefined {
  let at = 0;
  for (let isEnd = false; at < args.length && !isEnd; at += 1) {
    const { text } = args[at] ?? literal("");
    if (text === "--") isEnd = true;
    else if (grepValue.test(text)) at += 1;
    else if (!grepOption.test(text)) break;
  }
  const [pattern, ...files] = args.slice(at);
  const isKnown = args.slice(0, at).every(({ known, glob }) => known && !glob);
  if (pattern === undefined || pattern.glob || !isKnown) return undefined;
  return [pattern, ...files].some(mayBeOption) ? undefined : at;
}

/** A glob may become `-e` if a file has that name. */
function mayBeOption({ text, known, glob }: Arg): boolean {
  return !known || (text.startsWith("-") && text !== "--") || (glob && /^[*?[]/.test(text));
}
