import type { Assignment, Command, ParsedScript, Pipeline, Redirect, Redirection, SyntaxNode, Word } from "unbash";
import { quote } from "../../../core/src/wire/mod.ts";
import { unknownFolder } from "../path/folder.ts";
import {
  checkArithmeticCommand,
  checkAssignment,
  checkBackground,
  checkHereDoc,
  checkProgramWord,
  checkRedirectTarget,
} from "./dialects.ts";
import { textMax } from "./bounds.ts";
import { checkCharacters, checkValue, doubt } from "./doubt.ts";
import { checkEvaluations, noteArithmetic, noteAssignment, noteLoop, noteName, noteTest } from "./evaluation.ts";
import { checkMoves, isDevice } from "./folders.ts";
import { foldersOfScript, type Folders } from "./folder-states.ts";
import { readCall, type CommandUse, type Input, type ShellReading } from "./run.ts";
import { checkShape, contextBelow, isDecoded, type Context } from "./shapes.ts";
import { literal, putIn, readWord, unknownIn, type Arg } from "./words.ts";

const unitsMax = 4 * textMax;
const bracesMax = 64;
/** Ancestors of a node: about forty nested substitutions. */
const nodesDeep = 240;

/** The two functions of the parser. */
export interface ShellParser {
  readonly parse: (text: string) => ParsedScript;
  readonly forEachChild: (node: SyntaxNode, callback: (child: SyntaxNode) => void) => void;
}

/** Where a node is in the text. */
interface ShellPosition {
  readonly wrapper: string;
  readonly calls: number;
  readonly nodes: number;
  /** The text that the positions of nodes refer to. */
  readonly text: string;
  /** The same text with blanks instead of here-documents. */
  readonly source: string;
  /** The position in `source` where the innermost script ends. */
  readonly end: number;
  readonly context: Context;
  /** Is it a part of the whole text, in no code, substitution or here-document? */
  readonly isOuter: boolean;
  readonly isTimed: boolean;
  /** Does it belong to the command `read`? */
  readonly isRead: boolean;
  /** The folders of each command and redirection of the script. */
  readonly states: ReadonlyMap<SyntaxNode, Folders>;
  /** The variables of the loops around it. */
  readonly loops: ReadonlySet<string>;
  readonly pipeline: Pipeline | undefined;
  /** The commands of the script that were read. */
  readonly uses: Map<SyntaxNode, CommandUse>;
}

/** Reads a whole text and all code in it. @throws {EvaluationError} for anything that is not understood */
export function readText(reading: ShellReading, text: string, folder: string): void {
  reading.readCode(text, { wrapper: "", calls: 0, folders: [folder], loops: new Set() });
  checkEvaluations(reading);
  checkMoves(reading.moves, reading.relativePrograms);
}

/** The function that reads code, and the code in it. @throws {EvaluationError} for anything that is not understood */
export function readerOfCode(reading: ShellReading, parser: ShellParser): ShellReading["readCode"] {
  return (text, { wrapper, calls, folders, loops }) => {
    reading.units += text.length;
    if (text.length > textMax || reading.units > unitsMax) doubt(`it is over ${textMax} characters long`);
    checkCharacters(text);
    // The parser looks for the end of each such brace up to the end of the text.
    if (text.split("$${").length > bracesMax) doubt(`it has over ${bracesMax} times \`$\${\``);
    const script = parser.parse(text);
    const position = {
      wrapper,
      calls,
      nodes: 0,
      end: text.length,
      context: "bare",
      isOuter: calls === 0,
      isTimed: false,
      isRead: false,
      states: foldersOfScript(script, folders, parser.forEachChild),
      loops,
      pipeline: undefined,
      uses: new Map<SyntaxNode, CommandUse>(),
    } as const;
    walk(reading, parser, script, { ...position, text, source: blankHereDocs(parser, script, text) });
  };
}

/** The text with blanks instead of here-documents. These are between other nodes and belong to none of them. */
function blankHereDocs({ forEachChild }: ShellParser, script: SyntaxNode, text: string): string {
  if (!text.includes("<<")) return text;
  let source = text;
  const visit = (node: SyntaxNode): void => {
    if (node.type === "HereDoc") {
      const { body, closing } = node;
      const end = closing?.end ?? body.end;
      source = source.slice(0, body.pos) + " ".repeat(end - body.pos) + source.slice(end);
    }
    if (!isDecoded(node)) forEachChild(node, visit);
  };
  visit(script);
  return source;
}

function walk(reading: ShellReading, parser: ShellParser, node: SyntaxNode, above: ShellPosition): void {
  const position = findPosition(node, above);
  if (position.nodes > nodesDeep) doubt("it is nested too deeply");
  if (node.type === "Script" && node.errors !== undefined && node.errors.length > 0)
    doubt(node.errors[0]?.message ?? "it cannot be read");
  const children: SyntaxNode[] = [];
  parser.forEachChild(node, (child) => children.push(child));
  const { source, context } = position;
  checkShape(node, isDecoded(node) ? [] : children, { shapes: reading.shapes, context, source });
  for (const text of unknownIn(node)) {
    reading.unknown.add(text);
    reading.beside.add(text);
  }
  readNode(reading, node, position);
  const below = { ...position, nodes: position.nodes + 1, context: contextBelow(node, context) };
  for (const child of children) walk(reading, parser, child, below);
}

/** The position of a node, from the position of its parent. */
function findPosition(node: SyntaxNode, position: ShellPosition): ShellPosition {
  switch (node.type) {
    case "Script":
      if (node.source === undefined) return position;
      if (node.source.includes("<<")) doubt("a here-document is inside backticks");
      return { ...position, text: node.source, source: node.source, end: node.source.length, isOuter: false };
    case "CommandExpansion":
    case "ProcessSubstitution":
    case "ArithmeticCommandExpansion":
      return { ...position, end: node.end, isOuter: false };
    case "HereDocBody":
      return { ...position, source: position.text, isOuter: false };
    case "Command":
      return { ...position, isRead: node.name?.text === "read" };
    case "For":
    case "Select":
      return { ...position, loops: new Set([...position.loops, node.name.value]) };
    case "Pipeline":
      return { ...position, pipeline: node, isTimed: node.prefixes.some(({ type }) => type === "Time") };
    default:
      return position;
  }
}

/** Reads a node without its children. @throws {EvaluationError} for a spelling that shells read differently */
function readNode(reading: ShellReading, node: SyntaxNode, position: ShellPosition): void {
  switch (node.type) {
    case "Command":
      return readCommand(reading, node, position);
    case "Redirect":
      checkRedirectTarget(node);
      return readRedirect(reading, node, position);
    case "HereDoc":
      return checkHereDoc(node, position);
    case "Function":
      return void reading.functions.add(readWord(node.name).text);
    case "Coproc":
      noteName(reading, node.name?.value ?? "COPROC");
      reading.arrays.add(node.name?.value ?? "COPROC");
      reading.background = true;
      return;
    case "Statement":
      if (node.background === true) reading.background = true;
      return;
    case "For":
    case "Select":
      if (node.type === "Select") noteName(reading, "REPLY");
      noteLoopWords(reading, node.name.value, node.wordlist);
      return noteLoop(reading, node);
    case "Assignment":
      checkAssignment(node);
      // `IFS= read -r line`: the setting only applies to `read`.
      if (node.name === "IFS" && position.isRead) return void reading.variables.add("IFS");
      if (node.value.type === "Word") checkValue(readWord(node.value).fixed);
      return noteAssignment(reading, node);
    case "ArithmeticCommand":
      checkArithmeticCommand(node);
      return;
    case "CommandExpansion":
    case "ProcessSubstitution":
    case "ArithmeticCommandExpansion":
      if (node.script === undefined || node.text.startsWith("$((")) doubt(`${quote(node.text)} cannot be read`);
      return noteArithmetic(reading, node);
    default:
      noteArithmetic(reading, node);
      noteTest(reading, node);
      for (const file of testedFiles(node)) reading.reads.add(file);
  }
}

function noteLoopWords(reading: ShellReading, name: string, words: readonly Word[] | undefined): void {
  const known = reading.loopWords.get(name) ?? [];
  reading.loopWords.set(name, [
    ...known,
    ...(words === undefined ? [putIn("$@")] : words.map((word) => readWord(word))),
  ]);
}

function testedFiles(node: SyntaxNode): readonly string[] {
  if (node.type === "TestUnary" && /^-[abcdefghkprsuwxGLNOS]$/.test(node.operator))
    return [readWord(node.operand).text];
  if (node.type !== "TestBinary" || !/^-(?:nt|ot|ef)$/.test(node.operator)) return [];
  return [readWord(node.left).text, readWord(node.right).text];
}

const nowhere = new Set(["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"]);

function readRedirect(reading: ShellReading, node: Redirect, { states, loops }: ShellPosition): void {
  const { operator, target } = node;
  if (target === undefined) doubt("a redirection goes nowhere");
  const file = readWord(target, reading.shapes);
  const { text, known, glob } = file;
  if (/^[<>]&$/.test(operator) && /^(?:\d+-?|-)$/.test(text)) return;
  if (!known || glob) reading.unknown.add(text);
  if (nowhere.has(text)) return;
  const where = { file, folders: states.get(node) ?? [unknownFolder], loops };
  if (operator.startsWith("<")) reading.redirects.push({ ...where, role: "reads" });
  if (operator.includes(">")) reading.redirects.push({ ...where, role: "writes" });
  if (operator.startsWith("<")) reading.reads.add(text);
  if (operator.includes(">")) reading.writes.add(text);
}

/** `> file` writes nothing, so the file is empty then. */
function noteEmptied({ emptied }: ShellReading, { redirects }: Command): void {
  for (const redirect of redirects) {
    const name = redirect.type === "Redirect" && /^(?:&?>|>\|)$/.test(redirect.operator) && redirect.target?.value;
    if (typeof name === "string" && !nowhere.has(name)) emptied.add(name);
  }
}

function readCommand(reading: ShellReading, node: Command, position: ShellPosition): void {
  const { wrapper, calls, isOuter, isTimed, loops, states, pipeline, text, uses } = position;
  if (checkBackground(node)) reading.background = true;
  const printsNothing =
    /^(?::|true|false)$/.test(node.name?.value ?? ":") || (node.name?.value === "exec" && node.args.length === 0);
  if (printsNothing) noteEmptied(reading, node);
  if (node.name === undefined) return;
  checkProgramWord(node);
  // dash does not know the word `time`, so it runs the program of that name, which takes options.
  if (isTimed && node.name.text.startsWith("-"))
    doubt("dash runs the program `time`, which takes options that bash does not know");
  const { shapes } = reading;
  const readArgument = (word: Word): Arg => {
    const arg = readWord(word, shapes);
    const isThere = isOuter && text.slice(word.pos, word.end) === word.text;
    return isThere ? { ...arg, span: { from: word.pos, to: word.end } } : arg;
  };
  const args = node.args.map((arg) => (arg.type === "Word" ? readArgument(arg) : readAssigned(arg)));
  const variables = node.prefix.flatMap((part) => (part.type === "Assignment" ? [part.name] : []));
  const words = [readWord(node.name, shapes), ...args];
  const at = pipeline?.commands.indexOf(node) ?? -1;
  const before = pipeline?.operators[at - 1] === "|" ? pipeline.commands[at - 1] : undefined;
  const hasOwnInput = node.redirects.some((redirect) => descriptorOf(redirect) === 0);
  const isPiped = before?.type === "Command" && keepsOutput(before) && !hasOwnInput;
  const previous = isPiped ? uses.get(before) : undefined;
  const folders = states.get(node) ?? [unknownFolder];
  const input = inputOf(node.redirects);
  uses.set(node, readCall(reading, { words, input, variables, wrapper, calls, folders, loops, previous }));
}

/** Is the whole output of the command its own, without messages? */
function keepsOutput({ redirects }: Command): boolean {
  return redirects.every(
    (redirect) =>
      redirect.type === "Redirect" &&
      redirect.operator === ">" &&
      redirect.target?.value === "/dev/null" &&
      descriptorOf(redirect) === 2,
  );
}

/** `of=file`: an ordinary argument of most commands, and an assignment for `export`. */
function readAssigned({ text, name, append, index, value }: Assignment): Arg {
  if (value.type !== "Word" || index !== undefined) return { ...literal(text), known: false };
  const arg = readWord(value);
  const before = `${name}${append === true ? "+" : ""}=`;
  return { ...arg, text: before + arg.text, fixed: before + arg.fixed };
}

function inputOf(redirects: readonly Redirection[]): Input {
  const given = redirects.filter((redirect) => descriptorOf(redirect) === 0);
  const [only] = given;
  if (only === undefined || given.length > 1) return "elsewhere";
  if (only.type === "Redirect") {
    const file = only.operator === "<" && only.target !== undefined ? readWord(only.target) : undefined;
    const isFile = file?.known === true && !file.glob && !file.process && !isDevice(file.text);
    return isFile ? { file: file.text } : "elsewhere";
  }
  if (only.type === "HereString") {
    if (only.target === undefined) return "elsewhere";
    const { text, known } = readWord(only.target);
    return { text, known };
  }
  const { parts, text: written } = only.body;
  // `<<-` removes the tabs at the start of each line.
  const text = only.operator === "<<-" ? written.replace(/^\t+/gm, "") : written;
  if (only.delimiter?.quoted === true) return { text, known: true };
  if (parts === undefined)
    return { text: text.replace(/\\([\\$`]|\n)/g, (_, next: string) => next.trim()), known: true };
  const word = readWord({ type: "Word", text: "", value: text, pos: 0, end: 0, parts });
  return { text: only.operator === "<<-" ? word.text.replace(/^\t+/gm, "") : word.text, known: word.known };
}

/** The descriptor that a redirection sets: the written number, or else standard input or output. */
function descriptorOf(redirect: Redirection): number {
  if (redirect.descriptor?.type === "FileDescriptor") return redirect.descriptor.value;
  return redirect.type !== "Redirect" || redirect.operator.startsWith("<") ? 0 : 1;
}
