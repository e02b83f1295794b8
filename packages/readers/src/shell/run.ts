import { quote } from "../../../core/src/wire/mod.ts";
import { commandsMax } from "./bounds.ts";
import { doubt } from "./doubt.ts";
import { noteSplit, readBuiltin } from "./builtins.ts";
import { noteName, noteOption, type ShellVariables } from "./evaluation.ts";
import { joinPath, unknownFolder } from "../path/folder.ts";
import { escapePattern } from "../path/name-pattern.ts";
import { isDevice, isRelative, moveOf, resolveProgramName } from "./folders.ts";
import { findCode, interpreterOf } from "./interpreters.ts";
import { checkPatternOptions, codeOptions, filesOf, isNeverKnown, isQuietOption, renames, shells } from "./programs.ts";
import type { Folders } from "./folder-states.ts";
import { flagsOf, literal, putIn, wordsOf, type Arg } from "./words.ts";
import { runners, unwrap, wrappers, type Wrapper } from "./wrappers.ts";

/** A command that would run, anywhere in the text. */
export interface ShellCommand {
  /** Its name: `git` for `/usr/bin/git`, and the path as written for any other program. */
  readonly name: string;
  /** As written, without quotes. */
  readonly program: string;
  /** The name of the command that runs it; empty if the shell runs it. */
  readonly wrapper: string;
  readonly args: readonly string[];
  /** The arguments that may name files. */
  readonly files: readonly string[];
  readonly words: readonly string[];
  readonly flags: readonly string[];
  readonly unknown: readonly string[];
  readonly globs: readonly string[];
  readonly variables: readonly string[];
}

/** A command with its words as they are known, and where it may run. */
export interface CommandUse {
  readonly name: string;
  readonly program: string;
  readonly wrapper: string;
  readonly args: readonly Arg[];
  readonly folders: Folders;
  /** The loop variables around it. */
  readonly loops: ReadonlySet<string>;
  /** The command before it in a pipe, if its output is the whole input. */
  readonly previous: CommandUse | undefined;
  /** Is its input a text in the code itself? */
  readonly hasText: boolean;
  /** The command whose output names the files for `{}`: `find` with `-exec`, or the one before `xargs`. */
  readonly feeder: CommandUse | undefined;
}

/** A redirection to or from a file. */
export interface FileRedirect {
  readonly file: Arg;
  readonly folders: Folders;
  readonly loops: ReadonlySet<string>;
  readonly role: "reads" | "writes";
}

/** The command that runs a text: its name, empty for the shell, the number of nested commands above it, and where it runs. */
export interface Runner {
  readonly wrapper: string;
  readonly calls: number;
  readonly folders: Folders;
  readonly loops: ReadonlySet<string>;
}

/** Everything that was read from a text so far. */
export interface ShellReading extends ShellVariables {
  /** Reads the code of a command. @throws {EvaluationError} for anything that is not understood */
  readonly readCode: (text: string, runner: Runner) => void;
  readonly commands: ShellCommand[];
  readonly uses: CommandUse[];
  /** The uses with commands among their words. */
  readonly runners: Set<CommandUse>;
  /** The uses with code of an interpreter in the text. */
  readonly withCode: Set<CommandUse>;
  readonly redirects: FileRedirect[];
  /** Sentences about code that a program reads from a file as its input: `node < a.js`. */
  readonly unread: Set<string>;
  /** Files of a redirection that writes nothing to them: `> file`. */
  readonly emptied: Set<string>;
  /** The words of all loops over a variable, by its name. */
  readonly loopWords: Map<string, Arg[]>;
  readonly writes: Set<string>;
  readonly reads: Set<string>;
  readonly unknown: Set<string>;
  /** Those of the unknown texts that are neither words of a command nor files. */
  readonly beside: Set<string>;
  readonly scripts: { readonly language: string; readonly text: string }[];
  /** Folders that the text changes to; undefined for a folder that is known only when it runs. */
  readonly moves: (string | undefined)[];
  /** Programs with a relative path. */
  readonly relativePrograms: string[];
  background: boolean;
  /** Characters read; a text within a text counts again. */
  units: number;
}

/** `sudo env sh -c "sh -c ..."` */
const callsDeep = 16;

/** The input of a command: a text in the code itself, a file, or something else. */
export type Input = { readonly text: string; readonly known: boolean } | { readonly file: string } | "elsewhere";

/** The words of a command, whether the shell or another command runs it. */
export interface CommandInvocation extends Runner {
  readonly words: readonly Arg[];
  readonly input: Input;
  readonly variables: readonly string[];
  /** The command before it in a pipe. */
  readonly previous?: CommandUse | undefined;
  readonly feeder?: CommandUse | undefined;
  /** The command itself, once it is recorded. */
  readonly use?: CommandUse;
}

/** Records a command, and reads the code that it runs. */
export function readCall(reading: ShellReading, call: CommandInvocation): CommandUse {
  const [first = literal(""), ...args] = call.words;
  if (call.calls > callsDeep) doubt(`over ${callsDeep} commands run each other`);
  if (!first.known || first.glob || first.text === "")
    doubt(`the command ${quote(first.text)} is known only when it runs`);
  if (/^-./.test(first.text)) doubt(`${quote(first.text)} reads as an option, and not as a command`);
  const name = resolveProgramName(first.text);
  const unknown = args.filter((arg) => !arg.known).map(({ text }) => text);
  for (const text of unknown) reading.unknown.add(text);
  // Assignments in the text itself are recorded elsewhere, with their values (`noteAssignment`).
  if (call.wrapper !== "") for (const variable of call.variables) noteName(reading, variable);
  reading.moves.push(...moveOf(name, args));
  if (isRelative(first.text)) reading.relativePrograms.push(first.text);
  if (
    reading.commands.push({
      name,
      program: first.text,
      wrapper: call.wrapper,
      args: args.map(({ text }) => text),
      files: filesOf(name, args),
      words: wordsOf(name, args),
      flags: flagsOf(args),
      unknown,
      globs: args.filter(({ glob }) => glob).map(({ text }) => text),
      variables: call.variables,
    }) > commandsMax
  )
    doubt(`it has over ${commandsMax} commands`);
  const { wrapper, folders, loops, feeder } = call;
  const { previous, input } = call;
  const hasText = input !== "elsewhere" && "text" in input;
  const use = { name, program: first.text, wrapper, args, folders, loops, previous, hasText, feeder };
  const count = reading.uses.push(use);
  readInner(reading, use, call);
  if (reading.uses.length > count) reading.runners.add(use);
  return use;
}

/** Reads the code or the command that a command with this name runs. */
function readInner(reading: ShellReading, use: CommandUse, outer: CommandInvocation): void {
  const { name, args } = use;
  const call = { ...outer, folders: foldersInside(use), feeder: undefined, use };
  const base = name.split("/").at(-1) ?? name;
  if (isNeverKnown(base) || renames(base, args)) doubt(`${quote(name)} may run code that the gate does not read`);
  readBuiltin(reading, base, args);
  for (const value of codeOptions(base, args)) readArg(reading, value, base, call);
  const wrapper = wrappers.get(base);
  if (wrapper !== undefined) return readWrapped(reading, { name: base, wrapper, args }, call);
  if (base === "eval") return readJoined(reading, base, args[0]?.text === "--" ? args.slice(1) : args, call);
  if (base === "source") return checkSourced(args[0]);
  if (base === "trap") return readTrap(reading, args, call);
  if (base === "find") return readFind(reading, args, { ...call, feeder: use });
  if (shells.has(base)) return readShell(reading, base, args, call);
  const interpreter = interpreterOf(base);
  if (interpreter !== undefined) return readScript(reading, { name: base, interpreter, args }, call);
  const dashes = args.findIndex(({ text }) => text === "--");
  if (/^(?:kubectl|oc)$/.test(base) && args.some(({ text }) => text === "exec") && dashes >= 0)
    return readInside(reading, base, args.slice(dashes + 1), { ...call, input: "elsewhere" });
  const runner = runners.get(base);
  const [first, ...rest] = args;
  if (runner === undefined || first === undefined || !args.some(({ text }) => text === runner.verb)) return;
  if (first.text.startsWith("-")) doubt(`${quote(name)} with ${quote(first.text)} is not known here`);
  if (first.text !== runner.verb) return;
  const { command } = unwrap(base, runner.options ?? {}, rest);
  // `uv run -m pytest` is `python -m pytest`.
  const isModule = rest.slice(0, rest.length - command.length).some(({ text }) => /^(?:-[qv]*m|--module)$/.test(text));
  readInside(reading, base, isModule ? [literal("python"), literal("-m"), ...command] : command, call);
}

/** The folders of a command that another one runs: `env -C folder`. */
function foldersInside({ name, args, folders }: CommandUse): Folders {
  const move = wrappers.has(name) ? moveOf(name, args).at(-1) : undefined;
  if (move !== undefined) return folders.map((folder) => joinPath(folder, escapePattern(move)));
  return wrappers.has(name) && moveOf(name, args).length > 0 ? [unknownFolder] : folders;
}

/** Reads the command, if there is one, that another command runs with the same input. */
function readInside(reading: ShellReading, wrapper: string, words: readonly Arg[], call: CommandInvocation): void {
  if (words.length > 0) readCall(reading, { ...call, words, wrapper, variables: [], calls: call.calls + 1 });
}

interface WrapperCall {
  readonly name: string;
  readonly wrapper: Wrapper;
  readonly args: readonly Arg[];
}

function readWrapped(reading: ShellReading, { name, wrapper, args }: WrapperCall, call: CommandInvocation): void {
  const { codes, command, isQuery, variables, operands, placeholder } = unwrap(name, wrapper, args);
  for (const code of codes) {
    // `env -S` has its own escapes and variables.
    if (name === "env" && /[\\$#]/.test(code.text)) doubt(`the text after \`env -S\` is not known here`);
    readArg(reading, code, name, call);
  }
  if (isQuery) return;
  for (const operand of operands) noteOption(reading, operand);
  checkWrapped(name, wrapper, args.slice(0, args.length - command.length), { command, placeholder });
  if (codes.length > 0 && command.length > 0) doubt(`${quote(name)} has both code and a command`);
  for (const variable of variables) noteName(reading, variable);
  if (command.length === 0) {
    const isStarted = operands.length === (wrapper.operands ?? 0) || wrapper.dash === true;
    if (wrapper.shell === true && codes.length === 0 && isStarted) readInput(reading, name, call);
    return;
  }
  if (wrapper.joined === true) return readJoined(reading, name, command, call);
  const words =
    wrapper.placeholderOptions === undefined
      ? command
      : placeholder === undefined
        ? [...command, { ...putIn("{}"), pieces: [{ variable: "{}", isQuoted: false }] }]
        : command.map((arg) => markPlaceholder(arg, placeholder, true));
  // The command that `xargs` runs reads another input.
  const isFed = wrapper.placeholderOptions !== undefined;
  const input = isFed ? "elsewhere" : call.input;
  const feeder = isFed ? call.previous : undefined;
  const previous = isFed ? undefined : call.previous;
  readCall(reading, { ...call, words, input, variables, wrapper: name, calls: call.calls + 1, feeder, previous });
}

/** @throws {EvaluationError} if the wrapper may run another command than the words show */
function checkWrapped(
  name: string,
  wrapper: Wrapper,
  options: readonly Arg[],
  { command, placeholder }: { command: readonly Arg[]; placeholder: string | undefined },
): void {
  // The last of `-I` and `-n` decides how `xargs` adds words.
  if (placeholder !== undefined && options.some(({ text }) => /^-[A-Za-z0-9]*[nLl]|^--max-(?:args|lines)/.test(text)))
    doubt("`xargs` has two options that say how it adds words");
  // These also read options that follow their operands.
  if (/^(?:su|runuser)$/.test(name) && command.some(({ text }) => text.startsWith("-")))
    doubt(`an option follows the operands of ${quote(name)}`);
  if (wrapper.joined === true && command[0]?.text.includes("=") === true && name === "watch")
    doubt("`watch -x` runs a word with `=` as a program");
}

/** @param isQuoted is the placeholder replaced by one word? */
function markPlaceholder(arg: Arg, placeholder: string, isQuoted: boolean): Arg {
  if (!arg.text.includes(placeholder)) return arg;
  return { ...arg, known: false, pieces: arg.text === placeholder ? [{ variable: "{}", isQuoted }] : undefined };
}

/** The words are joined, and a shell reads the result. */
function readJoined(reading: ShellReading, name: string, words: readonly Arg[], call: CommandInvocation): void {
  const text = words.map((word) => word.text).join(" ");
  const known = words.every((word) => word.known && !word.glob);
  const pieces = words.some((word) => word.known && word.pieces === undefined) ? undefined : literal(text).pieces;
  readArg(reading, { ...literal(text), known, pieces }, name, call);
}

function readArg(reading: ShellReading, { text, known, pieces }: Arg, wrapper: string, call: CommandInvocation): void {
  if (known && pieces === undefined) doubt(`dash reads the code ${quote(text)} in another way than bash`);
  if (!known) doubt(`the code that ${quote(wrapper)} runs is known only when it runs`);
  reading.readCode(text, insideOf(call, wrapper));
}

/** The runner of code inside a command. The code does not know the loop variables of the text around it. */
function insideOf({ calls, folders }: CommandInvocation, wrapper: string): Runner {
  return { wrapper, calls: calls + 1, folders: wrapper === "trap" ? [unknownFolder] : folders, loops: new Set() };
}

function checkSourced(file: Arg | undefined): void {
  if (file === undefined || !file.single || file.process || isDevice(file.text))
    doubt("the code that `source` reads is known only when it runs");
}

function readTrap(reading: ShellReading, args: readonly Arg[], call: CommandInvocation): void {
  const [code, ...rest] = args[0]?.text === "--" ? args.slice(1) : args;
  if (code === undefined || /^-[lpP]?$/.test(code.text) || (rest.length === 0 && code.known && !code.glob)) return;
  readArg(reading, { ...code, known: code.known && !code.glob }, "trap", call);
}

function readFind(reading: ShellReading, args: readonly Arg[], call: CommandInvocation): void {
  checkPatternOptions("find", args);
  // A word that becomes several may contain `-exec`.
  for (const arg of args) noteSplit(reading, arg);
  const ends = args.filter(({ text }) => text === ";" || text === "+").length;
  const commands = args.filter(({ text }) => /^-(?:exec|execdir|ok|okdir)$/.test(text)).length;
  if (ends > commands) for (const arg of args) noteOption(reading, arg);
  for (let at = 0; at < args.length; at += 1) {
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(args[at]?.text ?? "")) continue;
    const rest = args.slice(at + 1);
    const end = rest.findIndex(({ text }, index) => text === ";" || (text === "+" && rest[index - 1]?.text === "{}"));
    const isOne = rest[end]?.text !== "+";
    const inner = (end < 0 ? rest : rest.slice(0, end)).map((arg) => markPlaceholder(arg, "{}", isOne));
    // `xargs -I{}` has replaced them already.
    const isReplaced = call.wrapper === "xargs" || call.wrapper === "find";
    const words = isReplaced ? inner.map((arg) => (arg.known ? arg : { ...arg, pieces: undefined })) : inner;
    if (words.length === 0) doubt("`find` has an `-exec` without a command");
    const isMoved = args[at]?.text.endsWith("dir") === true;
    if (isMoved) reading.moves.push(undefined);
    const folders = isMoved ? [unknownFolder] : call.folders;
    readInside(reading, "find", words, { ...call, folders, input: "elsewhere" });
    at += words.length;
  }
}

function readShell(reading: ShellReading, name: string, args: readonly Arg[], call: CommandInvocation): void {
  let at = 0;
  let isCode = false;
  let isInput = false;
  for (; at < args.length; at += 1) {
    const { text, known, single } = args[at] ?? literal("");
    if (!single) doubt(`the code that ${quote(name)} runs depends on the value of ${quote(text)}`);
    if (text === "--" || text === "-") {
      at += 1;
      break;
    }
    if (!/^[-+]/.test(text)) break;
    if (/^--(?:version|help)$/.test(text) && args.length === 1) return;
    if (/^--(?:login|norc|noprofile|posix|restricted|verbose)$/.test(text)) continue;
    const values = args.slice(at + 1, at + 1 + text.replace(/[^oO]/g, "").length);
    if (!known || !/^[-+][abefhlmnprsuvxcBCEToO]+$/.test(text) || !values.every((value) => isQuietOption(value.text)))
      doubt(`${quote(name)} with ${quote(text)} is not known here`);
    isCode ||= text.startsWith("-") && text.includes("c");
    isInput ||= text.startsWith("-") && text.includes("s");
    at += values.length;
  }
  const operand = args[at];
  if (isCode) return readArg(reading, operand ?? literal(""), name, call);
  if (operand === undefined || isInput) return readInput(reading, name, call);
  noteOption(reading, operand);
  if (operand.process || isDevice(operand.text)) doubt(`the code that ${quote(name)} runs is known only when it runs`);
}

/** A shell without code in its arguments reads it from its input. */
function readInput(reading: ShellReading, name: string, call: CommandInvocation): void {
  const input = readableInput(reading, name, call);
  if (input !== undefined) reading.readCode(input, insideOf(call, name));
}

/** The code in the input, if it is in the text. Code in a file is noted; what a pipe or a person brings is refused. */
function readableInput(reading: ShellReading, name: string, { input }: CommandInvocation): string | undefined {
  if (input === "elsewhere" || ("text" in input && !input.known))
    doubt(`the code that ${quote(name)} reads is known only when it runs`);
  if ("text" in input) return input.text;
  reading.unread.add(`${quote(name)} runs the code in ${quote(input.file)}, which may delete or send anything`);
  return undefined;
}

/** People often put variables into the code of these. The contract that calls `shell` judges that code. */
const filters = new Set(["sed", "awk", "sql"]);

interface InterpreterCall {
  readonly name: string;
  readonly interpreter: NonNullable<ReturnType<typeof interpreterOf>>;
  readonly args: readonly Arg[];
}

function readScript(reading: ShellReading, run: InterpreterCall, call: CommandInvocation): void {
  const count = reading.scripts.length;
  readCodes(reading, run, call);
  const { use } = call;
  if (use !== undefined && reading.scripts.length > count) reading.withCode.add(use);
}

function readCodes(reading: ShellReading, run: InterpreterCall, call: CommandInvocation): void {
  const { name, interpreter, args } = run;
  const { language } = interpreter;
  // `awk` reads no options after its code.
  if (language !== "awk") checkPatternOptions(name, args);
  const { codes, isElsewhere } = findCode(name, interpreter, args);
  for (const { text, known } of codes) {
    if (!known && !filters.has(language)) doubt(`the code that ${quote(name)} runs is known only when it runs`);
    reading.scripts.push({ language, text });
  }
  if (codes.length > 0 || isElsewhere) return;
  const input = readableInput(reading, name, call);
  if (input !== undefined) reading.scripts.push({ language, text: input });
}
