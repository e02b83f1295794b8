import type {
  ArithmeticExpression,
  Assignment,
  For,
  ParameterExpansionPart,
  Select,
  SyntaxNode,
  Word,
  WordPart,
} from "unbash";
import { quote } from "../../wire/mod.ts";
import { checkVariable, doubt } from "./shell-doubt.ts";
import type { Shapes } from "./shell-shapes.ts";
import { literal, mark, readWord, type Arg } from "./shell-words.ts";

/**
 * bash evaluates some texts again: as arithmetic, as an index, or as the name of a variable. There `a[$(command)]` runs the
 * command, even if a variable holds it. So such a text must be plain, and so must each value that its variables receive.
 */
export interface Evaluation {
  readonly shapes: Shapes;
  readonly variables: Set<string>;
  /** The values that the text gives each variable; undefined for a value that is known only when it runs. */
  readonly values: Map<string, (string | undefined)[]>;
  /** Variables whose value is evaluated. */
  readonly evaluated: Set<string>;
  readonly functions: Set<string>;
  /** Variables that hold arrays. */
  readonly arrays: Set<string>;
  /** Variables that a declaration sets to a value that is known only when it runs. */
  readonly declared: Set<string>;
  /** Variables whose value may become several words of a command that evaluates some of its words. */
  readonly split: Set<string>;
}

const plainName = /^[A-Za-z_]\w*$/;
/** Variables that the shell sets to numbers. */
const numbers = /^(?:RANDOM|SRANDOM|SECONDS|EPOCHSECONDS|LINENO|UID|EUID|PPID|SHLVL|OPTIND|COLUMNS|LINES)$/;

/** Records a variable that is set. @throws {EvaluationError} if it decides which programs run, or its name is not plain */
export function noteName(reading: Evaluation, name: string, value?: string): void {
  if (!plainName.test(name)) doubt(`${quote(name)} is not a plain variable name`);
  checkVariable(name);
  reading.variables.add(name);
  const values = reading.values.get(name);
  if (values === undefined) reading.values.set(name, [value]);
  else values.push(value);
}

export function noteAssignment(reading: Evaluation, { name, index, value }: Assignment): void {
  if (index !== undefined) evaluateWord(reading, index);
  if (index !== undefined || value.type !== "Word") reading.arrays.add(name);
  for (const word of value.type === "Word" ? [value] : value.elements) {
    // `a=([$(id)]=1)` evaluates the index of an element.
    if (value.type !== "Word" && word.text.startsWith("[")) doubt(`bash evaluates the index in ${quote(word.text)}`);
    noteName(reading, name, valueOf(word));
  }
  if (value.type !== "Word" && value.elements.length === 0) noteName(reading, name, "");
}

export function noteLoop(reading: Evaluation, { name, wordlist }: For | Select): void {
  noteName(reading, name.value);
  if (wordlist === undefined) return;
  reading.values.get(name.value)?.pop();
  for (const word of wordlist) noteName(reading, name.value, valueOf(word));
}

/** A word's text if it is known, and `0` for any number. */
function valueOf(word: Word): string | undefined {
  const { text, known, glob } = readWord(word);
  if (known && !glob) return text;
  const [part, ...rest] = word.parts ?? [];
  return part !== undefined && rest.length === 0 && isNumber(part) ? "0" : undefined;
}

function isNumber(part: WordPart): boolean {
  if (part.type === "DoubleQuoted") return part.parts.length === 1 && part.parts.every(isNumber);
  if (part.type === "BraceExpansion") return /^\{\d+\.\.\d+\}$/.test(part.text);
  if (part.type === "CommandExpansion") return isCount(part.text);
  return part.type === "ArithmeticExpansion" || /^\$(?:[#?$!]|\{#(?:\w+|[@*])(?:\[[@*\w]+\])?\})$/.test(part.text);
}

const counters = ["seq", "date", "nproc", "wc"];

/** Substitutions that write numbers and nothing else. */
function isCount(text: string): boolean {
  return /^\$\((?:seq [\d ]+|date \+%[sYmdHMS]|nproc|wc -[clw] < ?[\w./-]+)\)$/.test(text);
}

export function noteArithmetic(reading: Evaluation, node: SyntaxNode): void {
  switch (node.type) {
    case "ArithmeticWord":
      if (node.parts === undefined) return evaluateText(reading, node.value.replace(/\[(\w*)\]$/, " $1"));
      for (const part of node.parts) {
        // Quotes do not quote here: `$(('$(id)'))` runs `id`.
        if (/Quoted|LocaleString/.test(part.type)) doubt(`arithmetic ignores the quotes of ${quote(part.text)}`);
        evaluatePart(reading, part);
      }
      return;
    case "ArithmeticCommandExpansion":
      if (!isCount(node.text)) doubt("bash evaluates the output of a command as arithmetic");
      return;
    case "ArithmeticBinary":
      if (/^(?:[-+*/%&|^]|<<|>>)?=$/.test(node.operator)) noteTarget(reading, node.left);
      return;
    case "ArithmeticUnary":
      if (node.operator === "++" || node.operator === "--") noteTarget(reading, node.operand);
      return;
    case "ArithmeticExpansion":
      if (node.expression === undefined && node.text !== "$(())") doubt(`${quote(node.text)} cannot be read`);
      return;
    case "ParameterExpansion":
      return noteParameter(reading, node);
  }
}

function noteTarget(reading: Evaluation, target: ArithmeticExpression): void {
  if (target.type !== "ArithmeticWord") return doubt("arithmetic assigns to something that is not a plain name");
  noteName(reading, target.value.replace(/\[\w*\]$/, ""), "0");
}

function noteParameter(reading: Evaluation, { parameter, prefix, index, operation }: ParameterExpansionPart): void {
  const isList = index !== undefined && /^[@*]$/.test(index.text);
  if (index !== undefined && !isList) evaluateWord(reading, index);
  // The value of `x` in `${!x}` is a name, or an element of an array with its index.
  if (prefix === "!" && operation?.type !== "Names" && !isList) evaluateName(reading, parameter);
  if (operation?.type === "Slice") {
    evaluateWord(reading, operation.offset);
    if (operation.length !== undefined) evaluateWord(reading, operation.length);
  }
  // `${x@P}` runs the substitutions in the value (CVE-2025-66032).
  if (operation?.type === "Transform" && !/^[QEAKakuUL]$/.test(operation.operand.value))
    doubt(`an expansion with @${operation.operand.value} runs the code in a value`);
  if (operation?.type === "Default" && operation.operator.includes("="))
    noteName(reading, parameter, valueOf(operation.operand));
}

export function noteTest(reading: Evaluation, node: SyntaxNode): void {
  if (node.type === "TestUnary" && /^-[vR]$/.test(node.operator)) evaluateVariable(reading, readWord(node.operand));
  if (node.type !== "TestBinary" || !/^-(?:eq|ne|lt|le|gt|ge)$/.test(node.operator)) return;
  evaluateWord(reading, node.left);
  evaluateWord(reading, node.right);
}

/** A word that names a variable, or an element of an array: `a`, `a[1]`, `a[@]`. */
function evaluateVariable(reading: Evaluation, { text, known }: Arg): void {
  if (!known) doubt(`the variable that ${quote(text)} names is known only when it runs`);
  const [, name, index] = /^([A-Za-z_]\w*)(?:\[([^]*)\])?$/.exec(text) ?? [];
  if (name === undefined) doubt(`${quote(text)} is not a plain variable name`);
  if (index !== undefined && !/^[@*]$/.test(index)) evaluateText(reading, index);
}

function evaluateWord(reading: Evaluation, word: Word): void {
  evaluateText(reading, readWord(word).fixed);
  for (const part of word.parts ?? []) evaluatePart(reading, part);
}

function evaluatePart(reading: Evaluation, part: WordPart): void {
  if (part.type === "DoubleQuoted") for (const inner of part.parts) evaluatePart(reading, inner);
  else if (part.type === "SimpleExpansion") evaluateName(reading, part.text.slice(1));
  else if (part.type === "ParameterExpansion") {
    if (part.prefix === "#") return;
    if (part.prefix !== undefined || part.operation !== undefined)
      doubt(`bash evaluates ${quote(part.text)} as arithmetic`);
    evaluateName(reading, part.parameter);
  } else if (part.type === "CommandExpansion" && !isNumber(part))
    doubt("bash evaluates the output of a command as arithmetic");
}

function evaluateName(reading: Evaluation, name: string): void {
  if (/^[@*\d]/.test(name)) doubt("bash evaluates arguments such as `$1` and `$@` as arithmetic");
  if (plainName.test(name)) reading.evaluated.add(name);
}

function evaluateText(reading: Evaluation, text: string): void {
  if (!reading.shapes.indexes(text)) doubt(`bash evaluates ${quote(text)} as arithmetic, and it may hold code`);
  if (text.includes(mark) && /\w/.test(text)) doubt("arithmetic uses a name that is known only when it runs");
  for (const [name] of text.matchAll(/(?<!\w)[A-Za-z_]\w*/g)) reading.evaluated.add(name);
}

/** @throws {EvaluationError} if bash evaluates a variable whose value is not known, or may hold code */
export function checkEvaluations(reading: Evaluation): void {
  for (const name of reading.evaluated) {
    const values = reading.values.get(name);
    if (values === undefined && !numbers.test(name)) valueUnknown(name);
    for (const value of values ?? []) {
      if (value === undefined) return valueUnknown(name);
      // This may add the names in a value to the set. The loop then visits those too.
      evaluateText(reading, value);
    }
  }
  // `x=(); declare "x=$y"` evaluates the value of `y`.
  for (const name of reading.declared)
    if (reading.arrays.has(name)) doubt(`the value of the array ${quote(name)} is known only when it runs`);
  for (const name of counters)
    if (reading.functions.has(name))
      doubt(`a function replaces ${quote(name)}, whose output counts as a number`);
  for (const name of reading.split) {
    for (const value of reading.values.get(name) ?? [])
      if (value === undefined || !/^(?!-)[\w.:/@%+,-]*$/.test(value)) valueUnknown(name);
  }
}

function valueUnknown(name: string): never {
  return doubt(
    `bash evaluates ${quote(name)}, whose value is known only when it runs; put it in double quotes, or set it to a number`,
  );
}

/** Builtins whose arguments are names of variables, with or without a value. */
const setters = new Set("read mapfile readarray unset declare typeset local export readonly".split(" "));
const declarers = new Set("declare typeset local export readonly".split(" "));

/** @throws {EvaluationError} if a builtin sets an unknown variable, or evaluates a text that may hold code */
export function readBuiltin(reading: Evaluation, name: string, args: readonly Arg[]): void {
  checkPatterns(name, args);
  if (name === "let") for (const arg of args) readLet(reading, arg);
  if (setters.has(name)) readSetter(reading, name, args);
  if (name === "read" && !args.some(({ fixed }) => plainName.test(fixed))) noteName(reading, "REPLY");
  if (name === "getopts" && args[1] !== undefined) {
    setArgument(reading, name, args[1]);
    noteName(reading, "OPTARG");
  }
  if (name === "wait") readWait(reading, args);
  if (name === "printf") readPrintf(reading, args);
  if (name === "test" || name === "[") readTest(reading, name === "[" ? args.slice(0, -1) : args);
}

/** Files may have names such as `-v` and `a[$(id)]`. */
function checkPatterns(name: string, args: readonly Arg[]): void {
  const isTest = name === "test" || name === "[";
  if (!isTest && !setters.has(name) && !/^(?:let|getopts|wait|printf)$/.test(name)) return;
  for (const [at, { text, glob }] of args.entries())
    if (glob && (isTest ? /^[-*?[]/.test(text) : name !== "printf" || at === 0))
      doubt(`the pattern ${quote(text)} may match file names that read as options or variables`);
}

/** `wait -p NAME` sets a variable. */
function readWait(reading: Evaluation, args: readonly Arg[]): void {
  for (const arg of args) {
    if (/^-.*p/.test(arg.fixed)) doubt("`wait -p` sets a variable");
    noteSplit(reading, arg);
  }
}

/** `printf -v NAME` sets a variable. */
function readPrintf(reading: Evaluation, args: readonly Arg[]): void {
  const [first, second] = args;
  if (first === undefined) return;
  if (first.fixed.startsWith("-v"))
    setArgument(
      reading,
      "printf",
      first.fixed === "-v"
        ? (second ?? literal(""))
        : { ...first, text: first.text.slice(2), fixed: first.fixed.slice(2) },
    );
  else if (first.fixed.startsWith(mark) && (second !== undefined || !first.single))
    doubt("the first word of `printf` may be an option");
}

/** `test -v NAME` evaluates the name, wherever `-v` may be read as an operator. */
function readTest(reading: Evaluation, args: readonly Arg[]): void {
  for (const arg of args) if (!arg.single && !arg.glob) noteSplit(reading, arg);
  // `-a` and `-o` join tests. The operator of each test must be known.
  const joints = args.flatMap(({ text }, at) => (/^-[ao]$/.test(text) ? [at] : []));
  for (const [index, end] of [...joints, args.length].entries()) {
    const start = index === 0 ? 0 : (joints[index - 1] ?? 0) + 1;
    checkTest(args.slice(start, end).filter(({ text }, at) => !(text === "!" && at === 0)));
  }
  for (const [at, arg] of args.entries())
    if (/^-[vR]$/.test(args[at - 1]?.text ?? "") && !(at > 1 && isBinary(arg))) evaluateVariable(reading, arg);
}

function checkTest(args: readonly Arg[]): void {
  const isUnderstood =
    args.length < 2 ||
    (args.length === 2 && args[0]?.known === true) ||
    (args.length === 3 && args[1] !== undefined && isBinary(args[1]));
  if (!isUnderstood && args.some(({ known }) => !known)) doubt("the operator of a test is known only when it runs");
}

function isBinary({ text, known }: Arg): boolean {
  return known && /^(?:==?|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))$/.test(text);
}

/** A word without quotes may become several words. */
function noteSplit(reading: Evaluation, { text, known, single }: Arg): void {
  if (known || single) return;
  const [, name] = /^\$(?:\{(?=\w+\}))?([A-Za-z_]\w*)\}?$/.exec(text) ?? [];
  if (name !== undefined) reading.split.add(name);
  else if (!/^\$(?:[?#$!]|\{#\w+\})$/.test(text) && !isCount(text))
    doubt(`${quote(text)} may become several words; put it in double quotes`);
}

function readLet(reading: Evaluation, { text, known }: Arg): void {
  if (!known) doubt("the text that `let` evaluates is known only when it runs");
  const [, before, name, after, value] = /^(\+\+|--)?([A-Za-z_]\w*)(?:(\+\+|--)|[-+*/%]?=(.*))?$/s.exec(text) ?? [];
  evaluateText(reading, name === undefined ? text : (value ?? ""));
  // All except `x=1` read the current value of the variable.
  if (name !== undefined && !text.startsWith(`${name}=`)) reading.evaluated.add(name);
  if (name !== undefined && (before ?? after ?? value) !== undefined) noteName(reading, name, "0");
}

function readSetter(reading: Evaluation, name: string, args: readonly Arg[]): void {
  const isArray = args.some(({ fixed }) => /^-\w*[aA]/.test(fixed));
  if (isArray && declarers.has(name) && args.some(({ known }) => !known))
    doubt("the value of an array is known only when it runs");
  for (const [at, arg] of args.entries()) {
    const { text, fixed } = arg;
    if (fixed.startsWith("-")) checkOption(name, text);
    // `read -p "Go on? [y/N] " answer`: the value of an option does not name a variable.
    else if (name !== "read" || !/^-\w*[dinNptu]$/.test(args[at - 1]?.text ?? "")) setArgument(reading, name, arg);
  }
}

function checkOption(builtin: string, text: string): void {
  // `read -raPATH`: a name may be attached to an option.
  for (let at = 2; at < text.length; at += 1) checkVariable(text.slice(at));
  if (declarers.has(builtin) && (text.includes("i") || (text.includes("n") && builtin !== "export")))
    doubt(`${quote(`${builtin} ${text}`)} makes bash evaluate values`);
}

function setArgument(reading: Evaluation, builtin: string, { text, fixed, known }: Arg): void {
  const [, name, index, value] = /^([A-Za-z_]\w*)(?:\[([^]*?)\])?(?:\+?=([^]*))?$/.exec(text) ?? [];
  const isNameKnown = known || (value !== undefined && fixed.startsWith(`${name ?? ""}=`));
  if (!isNameKnown) doubt(`the variable that ${quote(builtin)} sets is known only when it runs`);
  if (name === undefined) return evaluateText(reading, text);
  if (index !== undefined) evaluateText(reading, index);
  if (declarers.has(builtin) && known && /^\s*\(/.test(value ?? "")) doubt(`bash evaluates ${quote(text)} as an array`);
  if (declarers.has(builtin) && !known) reading.declared.add(name);
  if (value === undefined && (declarers.has(builtin) || builtin === "unset")) checkVariable(name);
  else noteName(reading, name, known ? value : undefined);
}
