import type { Effects } from "./runner.ts";

/** A command in the record of `shell()`: the members that decide here. */
export interface ShellCommand {
  readonly name: string;
  readonly args: readonly string[];
  readonly flags: readonly string[];
  readonly unknown: readonly string[];
  readonly globs: readonly string[];
  readonly variables: readonly string[];
}

/** The record of `shell()`, as JSON. */
export interface ShellRecord {
  readonly commands: readonly ShellCommand[];
  readonly writes: readonly string[];
  readonly reads: readonly string[];
  readonly unknown: readonly string[];
  readonly variables: readonly string[];
  readonly functions: readonly string[];
  readonly scripts: readonly unknown[];
  readonly background: boolean;
}

/** Programs that read, and start no other program. The others only let more syntax count: they change nothing alone. */
const allowed = "ls cat head tail wc grep cut diff stat pwd echo".split(" ");
const quiet = [...allowed, ..."[ : false printf test true".split(" ")];
/** Programs that a contract may list, because the record still lists all that they run or write. */
const known = [
  ...quiet,
  ..."alias break builtin cd command continue declare enable eval exec exit export".split(" "),
  ..."getopts hash let local mapfile read return set shift".split(" "),
  ..."trap type typeset umask unalias unset wait sh bash dash env xargs find nohup timeout nice".split(" "),
];
/** The programs of `quiet` that never open a file which an argument names. */
const openNothing = new Set("[ : false printf test true echo pwd".split(" "));

/** These may print the environment. */
const printers = new Set("declare env export local readonly set typeset".split(" "));

/** The secrets of contracts/packs/places.yaml that the working folder has. */
const secrets = [".env", ".ssh"];
/** These patterns match no name that starts with a dot. */
const safeGlob = /^(?:(?:[A-Za-z0-9_*][A-Za-z0-9_.*-]*\/)*[A-Za-z0-9_*][A-Za-z0-9_.*-]*[.][A-Za-z0-9]+)$/;

/** Files that a text may change, if the record lists them in `writes`. */
export const scratchFiles: readonly string[] = ["written", "scratch.txt"];

/**
 * The promise about a text.
 *
 * - `allowed`: contracts/shell.yaml answers ALLOW, and the text only reads. No effect at all may follow.
 * - `reads`: the record shows only commands that read. No effect at all may follow.
 * - `lists`: the record lists commands and files that are all known to be harmless, and some words are known only at
 *   run time. No other command may run, and no other file may change.
 */
export type Promised = "allowed" | "reads" | "lists";

/** @returns undefined when the record alone says that the text may do harm */
export function promisedBy(record: ShellRecord): Promised | undefined {
  if (isRead(record)) return "reads";
  return isListed(record) ? "lists" : undefined;
}

/** Every command only reads, below the working folder, and no secret. */
function isRead(record: ShellRecord): boolean {
  return (
    // Every command is one that only reads, and its patterns match no hidden file.
    record.commands.every(({ name, globs }) => quiet.includes(name) && globs.every((glob) => safeGlob.test(glob))) &&
    // Nothing is written, set or defined, and nothing is known only at run time.
    [record.writes, record.unknown, record.variables, record.functions, record.scripts].every(isEmpty) &&
    !record.background &&
    !reachesFurther(record) &&
    staysInside(argsOf(record), [...record.reads, ...record.writes])
  );
}

function argsOf({ commands }: ShellRecord): readonly string[] {
  return commands.flatMap(({ args }) => args);
}

/** No name of a file leads outside the working folder or to a secret. */
function staysInside(args: readonly string[], files: readonly string[]): boolean {
  const leadsOut =
    args.some((word) => word.startsWith("/") || word.includes("..") || (word.startsWith("-") && word.includes("/"))) ||
    files.some((file) => file.startsWith("/") || file.includes(".."));
  const namesSecret = secrets.some(
    (secret) =>
      [...args, ...files].some((word) => `/${word.toLowerCase()}`.includes(`/${secret}`)) ||
      args.some((word) => word.toLowerCase().includes(`=${secret}`) || (word.startsWith("-") && word.includes(secret))),
  );
  return !leadsOut && !namesSecret;
}

/** `diff -l` starts `pr`, `wc --files0-from` reads the files that a file names, and `find -fprint` writes one. */
function reachesFurther({ commands }: ShellRecord): boolean {
  return commands.some(
    ({ name, flags, args }) =>
      (name === "find" && args.some((word) => /^-(?:fprint|fls|delete|files0)/.test(word))) ||
      (name === "diff" && flags.some((flag) => flag === "-l" || "--paginate".startsWith(flag))) ||
      (name === "wc" && flags.some((flag) => "--files0-from".startsWith(flag))),
  );
}

function isListed(record: ShellRecord): boolean {
  const { commands, writes, functions, variables, unknown } = record;
  const isKnown = (word: string): boolean => !unknown.includes(word);
  return (
    // Every command is listed, or it is a function whose body the record lists too.
    commands.every(({ name }) => known.includes(name) || functions.includes(name)) &&
    // A function may have the name of a listed command, but not the name of a canary.
    functions.every((name) => /^\w+$/.test(name) && !name.includes("pwn")) &&
    // A value of `PATH` and of other variables that shells obey would be a doubt, so none of these may be set.
    variables.every((name) => !/^(?:PATH|IFS|ENV|BASH_ENV|CDPATH|HOME|TMPDIR)$/.test(name)) &&
    // Each written file has a known name, and a command is allowed to change it.
    // The record lists the commands of `>(...)`, and no file is written there.
    writes.every((file) => (scratchFiles.includes(file) ? isKnown(file) : file.startsWith(">("))) &&
    // `cd` goes to a folder below; `cd` alone goes to the home folder.
    commands.every(({ name, args }) => name !== "cd" || /^[\w.]/.test(args[0] ?? "")) &&
    record.scripts.length === 0 &&
    !reachesFurther(record) &&
    // A word that is known only at run time may name any file: see `isSureOfReads`.
    staysInside(argsOf(record).filter(isKnown), record.reads.filter(isKnown))
  );
}

function isEmpty(list: readonly unknown[]): boolean {
  return list.length === 0;
}

/** @returns the effects that break the promise, one line each */
export function brokenPromises(promised: Promised, record: ShellRecord, effects: Effects): readonly string[] {
  const mayChange = promised === "lists" ? record.writes : [];
  // After a `cd`, which goes to a folder below, a path in the record starts there.
  const moves = record.commands.some(({ name }) => name === "cd");
  const isListedAs = (file: string, path: string): boolean => path === file || (moves && path.endsWith(`/${file}`));
  const changed = effects.changed.filter(
    (path) => !mayChange.some((file) => isListedAs(file, path.replace(/^[^/]*\//, ""))),
  );
  const isSure = (promised !== "lists" || isSureOfReads(record)) && !readsFolders(record);
  const shown = isSure ? effects.shown : [];
  return [
    ...effects.ran.map((program) => `ran ${program}`),
    ...changed.map((path) => `changed ${path}`),
    ...shown.map((secret) => `printed ${secret}`),
  ];
}

/** Whether the output may contain a secret from a file that the record does not name. */
function isSureOfReads({ commands, unknown, functions, variables }: ShellRecord): boolean {
  return (
    // A word such as `$KEY` prints the environment, and `$x` is whatever the text has set.
    [unknown, functions, variables].every(isEmpty) &&
    commands.every(
      ({ name, globs }) =>
        // `export` alone prints the environment.
        !printers.has(name) && (openNothing.has(name) || globs.every((glob) => safeGlob.test(glob))),
    )
  );
}

/**
 * `grep -r` and `diff -r` read the files of a folder without naming them. docs/contracts/shell.md names this limit; it
 * is not a limit of `shell()`.
 */
function readsFolders({ commands }: ShellRecord): boolean {
  const isRecursive = (flag: string): boolean => /^-(?:[rRdN]|-rec|-deref|-dir|-new|-un)/.test(flag);
  return commands.some(({ name, flags }) => ["grep", "diff"].includes(name) && flags.some(isRecursive));
}
