import type { Assignment, Command, HereDoc, HereString, ParsedScript, Redirect, Redirection, SyntaxNode } from "unbash";
import { quote } from "../../wire/mod.ts";
import { checkCharacters, checkEvaluated, checkIndex, checkValue, checkVariable, doubt } from "./shell-doubt.ts";
import { givenCode, interpreterOf } from "./shell-interpreters.ts";
import { codeOptions, neverKnown, renames, shells } from "./shell-programs.ts";
import { flagsOf, literal, putIn, readWord, unknownIn, wordsOf, type Arg } from "./shell-words.ts";
import { runners, unwrap, wrappers } from "./shell-wrappers.ts";

/** A command that would run, wherever it stands in the text. */
export interface Run {
  /** What it is known by: `git` for `/usr/bin/git`, and the path as written for any other. */
  readonly name: string;
  /** As written, without quotes. */
  readonly program: string;
  /** The name of the command that runs it; empty where the shell does. */
  readonly wrapper: string;
  readonly args: readonly string[];
  readonly words: readonly string[];
  readonly flags: readonly string[];
  readonly unknown: readonly string[];
  readonly globs: readonly string[];
  readonly variables: readonly string[];
}

/** What is read of a text so far. */
export interface Reading {
  readonly parse: (text: string) => ParsedScript;
  readonly forEachChild: (node: SyntaxNode, callback: (child: SyntaxNode) => void) => void;
  readonly commands: Run[];
  readonly writes: Set<string>;
  readonly reads: Set<string>;
  readonly unknown: Set<string>;
  readonly variables: Set<string>;
  readonly functions: Set<string>;
  readonly scripts: { readonly language: string; readonly text: string }[];
  background: boolean;
  /** Characters read, with each text within a text once more. */
  units: number;
}

export const textMax = 32_768;
export const commandsMax = 500;
const unitsMax = 4 * textMax;
/** `sudo env sh -c "sh -c ..."` */
const callsDeep = 16;
/** Nodes above a node: about forty substitutions, one in the other. */
const nodesDeep = 240;

/** Where a node stands. */
interface Place {
  readonly wrapper: string;
  readonly calls: number;
  readonly nodes: number;
  /** What the positions of nodes count in. */
  readonly source: string;
  /** In a pattern of `case` or `[[`, which runs nothing and is no argument. */
  readonly isPattern: boolean;
  /** In double quotes, a here-document or an expansion, where brackets and `<` are letters. */
  readonly isQuoted: boolean;
}

/** Reads code to the bottom. @throws {EvaluationError} on anything that is not understood */
export function readCode(reading: Reading, text: string, { wrapper, calls }: { wrapper: string; calls: number }): void {
  reading.units += text.length;
  if (text.length > textMax || reading.units > unitsMax) doubt(`it is over ${textMax} characters long`);
  checkCharacters(text);
  walk(reading, reading.parse(text), { wrapper, calls, nodes: 0, source: text, isPattern: false, isQuoted: false });
}

function walk(reading: Reading, node: SyntaxNode, place: Place): void {
  if (place.nodes > nodesDeep) doubt("it is nested too deeply");
  for (const text of unknownIn(node)) reading.unknown.add(text);
  switch (node.type) {
    case "Script":
      if (node.errors !== undefined && node.errors.length > 0) doubt(node.errors[0]?.message ?? "it cannot be read");
      break;
    case "Command":
      readCommand(reading, node, place);
      break;
    case "Redirect":
      readRedirect(reading, node);
      break;
    case "HereDoc":
      if (node.closing === undefined) doubt("a here-document is not closed");
      break;
    case "Function":
      reading.functions.add(readWord(node.name).text);
      return walk(reading, node.body, deeper(place));
    case "Coproc":
      reading.background = true;
      break;
    case "Statement":
      if (node.background === true) reading.background = true;
      break;
    case "For":
    case "Select":
      setVariable(reading, node.name.value);
      break;
    case "Assignment":
      readAssignment(reading, node);
      break;
    default:
      checkNode(node, place);
  }
  checkRest(node, place);
  const isPattern = node.type === "TestCommand" || (place.isPattern && node.type !== "Script");
  const source = node.type === "Script" ? (node.source ?? place.source) : place.source;
  const isQuoted = quoting.has(node.type) || (place.isQuoted && node.type !== "Script");
  const below = { ...deeper(place), source, isPattern, isQuoted };
  if (node.type === "CaseItem") {
    for (const word of node.pattern) walk(reading, word, { ...below, isPattern: true });
    walk(reading, node.body, below);
  } else reading.forEachChild(node, (child) => walk(reading, child, below));
}

const quoting = new Set<SyntaxNode["type"]>(["DoubleQuoted", "LocaleString", "HereDocBody", "ParameterExpansion"]);

/**
 * What the parser takes for letters holds no code, and what it takes for the end of a word is one: it reads `a=(b $(c))d`
 * as letters, and a comment in `<(a)#b`.
 * @throws {EvaluationError}
 */
function checkRest(node: SyntaxNode, { source, isPattern, isQuoted }: Place): void {
  if ((node.type === "Word" || node.type === "Assignment") && source.charAt(node.end) === "#")
    doubt("a word goes on with `#`, which others take for a comment");
  if (node.type !== "Literal" && (node.type !== "Word" || node.parts !== undefined)) return;
  const bare = node.text.replace(/\\./gs, "");
  if (/`|\$[({[]/.test(bare) || (!isPattern && !isQuoted && /[()<>;&|]/.test(bare)))
    doubt(`${quote(node.text)} may hold code`);
}

function deeper(place: Place): Place {
  return { ...place, nodes: place.nodes + 1 };
}

/** Nodes that need no more than that their children are read. */
const plain: ReadonlySet<SyntaxNode["type"]> = new Set<SyntaxNode["type"]>([
  ...([
    "CompoundList",
    "Elif",
    "Pipeline",
    "Time",
    "Negation",
    "AndOr",
    "Redirected",
    "If",
    "While",
    "Subshell",
  ] as const),
  ...([
    "BraceGroup",
    "Case",
    "CaseItem",
    "ArithmeticFor",
    "TestCommand",
    "Word",
    "Literal",
    "Glob",
    "SingleQuoted",
  ] as const),
  ...(["DoubleQuoted", "LocaleString", "SimpleExpansion", "BraceExpansion", "ArrayValue", "HereString"] as const),
  ...(["FileDescriptor", "HereDocDelimiter", "HereDocBody", "ArithmeticBinary", "ArithmeticUnary"] as const),
  ...(["ArithmeticTernary", "ArithmeticGroup", "TestLogical", "TestNot", "TestGroup"] as const),
  ...(["Default", "Remove", "Replace", "CaseModification", "Names"] as const),
]);

/** @throws {EvaluationError} on a node that is new here, or that shells read differently */
function checkNode(node: SyntaxNode, { isPattern }: Place): void {
  switch (node.type) {
    case "CommandExpansion":
    case "ProcessSubstitution":
    case "ArithmeticCommandExpansion":
      if (node.script === undefined) doubt(`${quote(node.text)} cannot be read`);
      return;
    case "ArithmeticExpansion":
      if (node.expression === undefined) doubt(`${quote(node.text)} cannot be read`);
      return;
    case "ArithmeticCommand":
      // A shell without `((` runs what stands in it.
      if (
        node.expression === undefined ||
        /^\s*[\w./-]+\s+(?!(?:[<>=!]=|[<>&|^%*+/?-]|&&|\|\|)\s)[^=<>\s]/.test(node.body)
      )
        doubt(`${quote(`((${node.body}))`)} reads as a command in some shells`);
      return;
    case "ArithmeticWord":
      return checkIndex(node.value);
    case "ParameterExpansion":
      if (!/^(?:[A-Za-z_]\w*|\d+|[@*#?$!-])$/.test(node.parameter)) doubt(`${quote(node.text)} cannot be read`);
      if (node.index !== undefined) checkIndex(readWord(node.index).fixed);
      return;
    case "Transform":
      // `${x@P}` runs the substitutions in the value (CVE-2025-66032).
      if (!/^[QEAKakuUL]$/.test(node.operand.value))
        doubt(`an expansion with @${node.operand.value} runs what a value holds`);
      return;
    case "AnsiCQuoted":
      if (node.text.includes("\\'")) doubt(`${quote(node.text)} ends elsewhere in some shells`);
      return;
    case "ExtendedGlob":
      if (!isPattern) doubt(`${quote(node.text)} is a pattern in some shells and a command in others`);
      return;
    case "FileDescriptorVariable":
      return;
    case "TestUnary":
      return checkIndex(readWord(node.operand).fixed);
    case "TestBinary":
      if (!/^-(?:eq|ne|lt|le|gt|ge)$/.test(node.operator)) return;
      checkIndex(readWord(node.left).fixed);
      return checkIndex(readWord(node.right).fixed);
    case "Slice":
      checkIndex(readWord(node.offset).fixed);
      if (node.length !== undefined) checkIndex(readWord(node.length).fixed);
      return;
    default:
      if (!plain.has(node.type)) doubt(`a part of it (${node.type}) is not known here`);
  }
}

function readAssignment(reading: Reading, node: Assignment): void {
  setVariable(reading, node.name);
  if (node.index !== undefined) checkIndex(readWord(node.index).fixed);
  if (node.value.type === "Word") {
    const { fixed } = readWord(node.value);
    checkIndex(fixed);
    checkValue(fixed);
  } else for (const word of node.value.elements) checkIndex(readWord(word).fixed);
}

function setVariable(reading: Reading, name: string): void {
  checkVariable(name);
  reading.variables.add(name);
}

const nowhere = new Set(["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"]);

function readRedirect(reading: Reading, { operator, target }: Redirect): void {
  if (target === undefined) doubt("a redirection goes nowhere");
  const { text, known, glob } = readWord(target);
  if (/^[<>]&$/.test(operator) && /^(?:\d+-?|-)$/.test(text)) return;
  if (!known || glob) reading.unknown.add(text);
  if (nowhere.has(text)) return;
  if (operator.startsWith("<")) reading.reads.add(text);
  if (operator.includes(">")) reading.writes.add(text);
}

/** What a command reads: a text that stands in the code, or something else. */
type Input = { readonly text: string; readonly known: boolean } | "elsewhere";

/** A command's words, however it came to be run. */
interface Call {
  readonly words: readonly Arg[];
  readonly input: Input;
  readonly variables: readonly string[];
  readonly wrapper: string;
  readonly calls: number;
}

function readCommand(reading: Reading, node: Command, { wrapper, calls }: Place): void {
  if (node.name === undefined) return;
  const args = node.args.map((arg) => (arg.type === "Word" ? readWord(arg) : readAssigned(arg)));
  const variables = node.prefix.flatMap((part) => (part.type === "Assignment" ? [part.name] : []));
  readCall(reading, {
    words: [readWord(node.name), ...args],
    input: inputOf(node.redirects),
    variables,
    wrapper,
    calls,
  });
}

/** `of=file`, which is an argument like others to most commands, and an assignment to `export`. */
function readAssigned({ text, name, append, index, value }: Assignment): Arg {
  if (value.type !== "Word" || index !== undefined) return { ...literal(text), known: false };
  const arg = readWord(value);
  return { ...arg, text: `${name}${append === true ? "+" : ""}=${arg.text}` };
}

function inputOf(redirects: readonly Redirection[]): Input {
  const given = redirects.filter(feeds);
  const [only] = given;
  if (only === undefined || given.length > 1 || only.type === "Redirect") return "elsewhere";
  if (only.type === "HereString") {
    if (only.target === undefined) return "elsewhere";
    const { text, known } = readWord(only.target);
    return { text, known };
  }
  const { parts, text } = only.body;
  if (only.delimiter?.quoted === true) return { text, known: true };
  if (parts === undefined)
    return { text: text.replace(/\\([\\$`]|\n)/g, (_, next: string) => next.trim()), known: true };
  const word = readWord({ type: "Word", text: "", value: text, pos: 0, end: 0, parts });
  return { text: word.text, known: word.known };
}

function feeds(redirect: Redirection): redirect is HereDoc | HereString | Redirect {
  return redirect.type !== "Redirect" || redirect.operator.startsWith("<");
}

/** Lists a command and reads what it runs in turn. */
function readCall(reading: Reading, call: Call): void {
  const [first = literal(""), ...args] = call.words;
  if (call.calls > callsDeep) doubt("what it runs lies too deep in what runs it");
  if (!first.known || first.glob || first.text === "")
    doubt(`the command ${quote(first.text)} is known only when it runs`);
  const name = nameOf(first.text);
  const unknown = args.filter((arg) => !arg.known).map(({ text }) => text);
  for (const text of unknown) reading.unknown.add(text);
  for (const variable of call.variables) setVariable(reading, variable);
  if (
    reading.commands.push({
      name,
      program: first.text,
      wrapper: call.wrapper,
      args: args.map(({ text }) => text),
      words: wordsOf(name, args),
      flags: flagsOf(args),
      unknown,
      globs: args.filter(({ glob }) => glob).map(({ text }) => text),
      variables: call.variables,
    }) > commandsMax
  )
    doubt(`it has over ${commandsMax} commands`);
  readInner(reading, name, args, call);
}

/** A program in one of the usual folders is known by its name, and no other: `./ls` is not `ls`. */
function nameOf(program: string): string {
  if (program === ".") return "source";
  return /^\/+(?:usr\/+(?:local\/+)?|opt\/homebrew\/+)?s?bin\/+([^/]+)$/.exec(program)?.[1] ?? program;
}

/** What a command with this name runs by itself: code, or another command. */
function readInner(reading: Reading, name: string, args: readonly Arg[], call: Call): void {
  const base = name.split("/").at(-1) ?? name;
  if (neverKnown.has(base) || renames(base, args)) doubt(`what ${quote(name)} runs is not known here`);
  checkEvaluated(base, args);
  for (const value of codeOptions(base, args)) readArg(reading, value, base, call);
  const wrapper = wrappers.get(base);
  if (wrapper !== undefined) return readWrapped(reading, base, wrapper, args, call);
  if (base === "eval") return readJoined(reading, base, args[0]?.text === "--" ? args.slice(1) : args, call);
  if (base === "source") return checkSourced(args[0]);
  if (base === "trap") return readTrap(reading, args, call);
  if (base === "find") return readFind(reading, args, call);
  if (shells.has(base)) return readShell(reading, base, args, call);
  const interpreter = interpreterOf(base);
  if (interpreter !== undefined) return readScript(reading, base, interpreter, args, call);
  const dashes = args.findIndex(({ text }) => text === "--");
  if (
    /^(?:kubectl|oc)$/.test(base) &&
    args.some(({ text }) => text === "exec") &&
    dashes >= 0 &&
    dashes + 1 < args.length
  )
    return readCall(reading, {
      ...call,
      words: args.slice(dashes + 1),
      wrapper: base,
      variables: [],
      input: "elsewhere",
    });
  const verbs = runners.get(base);
  if (verbs?.includes(args[0]?.text ?? "") === true && args.length > 1) {
    if (args[1]?.text.startsWith("-") === true)
      doubt(`${quote(name)} with ${quote(args[1]?.text ?? "")} is not known here`);
    readCall(reading, { ...call, words: args.slice(1), wrapper: base, variables: [], calls: call.calls + 1 });
  }
}

function readWrapped(
  reading: Reading,
  name: string,
  wrapper: NonNullable<ReturnType<typeof wrappers.get>>,
  args: readonly Arg[],
  call: Call,
): void {
  const { codes, command, isQuery, variables, operands, placeholder } = unwrap(name, wrapper, args);
  for (const code of codes) readArg(reading, code, name, call);
  if (isQuery) return;
  if (codes.length > 0 && command.length > 0) doubt(`${quote(name)} is given code and a command`);
  for (const variable of variables) setVariable(reading, variable);
  if (command.length === 0) {
    const isStarted = operands.length === (wrapper.operands ?? 0) || wrapper.dash === true;
    if (wrapper.shell === true && codes.length === 0 && isStarted) readInput(reading, name, call);
    return;
  }
  if (wrapper.joined === true) return readJoined(reading, name, command, call);
  const words =
    wrapper.places === undefined
      ? command
      : placeholder === undefined
        ? [...command, putIn("{}")]
        : command.map((arg) => placed(arg, placeholder));
  // `xargs` and what it runs read another input.
  const input = wrapper.places === undefined ? call.input : "elsewhere";
  readCall(reading, { words, input, variables, wrapper: name, calls: call.calls + 1 });
}

function placed(arg: Arg, placeholder: string): Arg {
  return arg.text.includes(placeholder) ? { ...arg, known: false } : arg;
}

/** The words are put together again, and a shell reads them. */
function readJoined(reading: Reading, name: string, words: readonly Arg[], call: Call): void {
  const text = words.map((word) => word.text).join(" ");
  readArg(reading, { ...literal(text), known: words.every(({ known, glob }) => known && !glob) }, name, call);
}

function readArg(reading: Reading, { text, known }: Arg, wrapper: string, { calls }: Call): void {
  if (!known) doubt(`the code that ${quote(wrapper)} runs is known only when it runs`);
  readCode(reading, text, { wrapper, calls: calls + 1 });
}

function checkSourced(file: Arg | undefined): void {
  if (file === undefined || !file.single || file.process || /^\/(?:dev|proc)\//.test(file.text))
    doubt("what is read by `source` is known only when it runs");
}

function readTrap(reading: Reading, args: readonly Arg[], call: Call): void {
  const [code, ...rest] = args[0]?.text === "--" ? args.slice(1) : args;
  if (code === undefined || /^-[lpP]?$/.test(code.text) || (rest.length === 0 && code.known)) return;
  readArg(reading, code, "trap", call);
}

function readFind(reading: Reading, args: readonly Arg[], call: Call): void {
  for (let at = 0; at < args.length; at += 1) {
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(args[at]?.text ?? "")) continue;
    const rest = args.slice(at + 1);
    const end = rest.findIndex(({ text }, index) => text === ";" || (text === "+" && rest[index - 1]?.text === "{}"));
    const words = (end < 0 ? rest : rest.slice(0, end)).map((arg) => placed(arg, "{}"));
    if (words.length === 0) doubt("`find` is told to run nothing");
    readCall(reading, { ...call, words, input: "elsewhere", variables: [], wrapper: "find", calls: call.calls + 1 });
    at += words.length;
  }
}

function readShell(reading: Reading, name: string, args: readonly Arg[], call: Call): void {
  let at = 0;
  let isCode = false;
  let isInput = false;
  for (; at < args.length; at += 1) {
    const { text, known, single } = args[at] ?? literal("");
    if (!single) doubt(`what ${quote(name)} runs depends on what is put in for ${quote(text)}`);
    if (text === "--" || text === "-") {
      at += 1;
      break;
    }
    if (!/^[-+]/.test(text)) break;
    if (/^--(?:version|help)$/.test(text) && args.length === 1) return;
    if (/^--(?:login|norc|noprofile|posix|restricted|verbose)$/.test(text)) continue;
    if (!known || !/^[-+][abefhiklmnprstuvxcBCEHPToO]+$/.test(text))
      doubt(`${quote(name)} with ${quote(text)} is not known here`);
    isCode ||= text.startsWith("-") && text.includes("c");
    isInput ||= text.startsWith("-") && text.includes("s");
    at += text.replace(/[^oO]/g, "").length;
  }
  const operand = args[at];
  if (isCode) return readArg(reading, operand ?? literal(""), name, call);
  if (operand === undefined || isInput) return readInput(reading, name, call);
  if (operand.process || /^\/(?:dev|proc)\//.test(operand.text))
    doubt(`what ${quote(name)} runs is known only when it runs`);
}

/** A shell that is given no code reads it from its input. */
function readInput(reading: Reading, name: string, { input, calls }: Call): void {
  if (input === "elsewhere" || !input.known) doubt(`the code that ${quote(name)} reads is known only when it runs`);
  readCode(reading, input.text, { wrapper: name, calls: calls + 1 });
}

/** These take values into their code by habit, and what they can do is judged by who calls them. */
const filters = new Set(["sed", "awk", "sql"]);

function readScript(
  reading: Reading,
  name: string,
  interpreter: NonNullable<ReturnType<typeof interpreterOf>>,
  args: readonly Arg[],
  { input }: Call,
): void {
  const { language } = interpreter;
  const { codes, isElsewhere } = givenCode(name, interpreter, args);
  for (const { text, known } of codes) {
    if (!known && !filters.has(language)) doubt(`the code that ${quote(name)} runs is known only when it runs`);
    reading.scripts.push({ language, text });
  }
  if (codes.length > 0 || isElsewhere) return;
  if (input === "elsewhere" || !input.known) doubt(`the code that ${quote(name)} reads is known only when it runs`);
  reading.scripts.push({ language, text: input.text });
}
