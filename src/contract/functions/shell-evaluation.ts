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
import { literal, readWord, type Arg } from "./shell-words.ts";

/**
 * bash evaluates some texts again: as arithmetic, as an index, or as the name of a variable. There `a[$(command)]` runs the
 * command, also where a variable holds it. So such a text is plain, and so is each value that its variables are given.
 */
export interface Evaluation {
  readonly shapes: Shapes;
  readonly variables: Set<string>;
  /** What the text gives each variable; undefined where that is known only when it runs. */
  readonly values: Map<string, (string | undefined)[]>;
  /** Variables whose value is evaluated. */
  readonly evaluated: Set<string>;
}

const plainName = /^[A-Za-z_]\w*$/;

/** A variable is set. @throws {EvaluationError} where that says what programs run, or where it has no plain name */
export function noteName(reading: Evaluation, name: string, value?: string): void {
  if (!plainName.test(name)) doubt(`${quote(name)} is not a plain name of a variable`);
  checkVariable(name);
  reading.variables.add(name);
  const values = reading.values.get(name);
  if (values === undefined) reading.values.set(name, [value]);
  else values.push(value);
}

export function noteAssignment(reading: Evaluation, { name, index, value }: Assignment): void {
  if (index !== undefined) evaluateWord(reading, index);
  for (const word of value.type === "Word" ? [value] : value.elements) noteName(reading, name, valueOf(word));
  if (value.type !== "Word" && value.elements.length === 0) noteName(reading, name, "");
}

export function noteLoop(reading: Evaluation, { name, wordlist }: For | Select): void {
  noteName(reading, name.value);
  if (wordlist === undefined) return;
  reading.values.get(name.value)?.pop();
  for (const word of wordlist) noteName(reading, name.value, valueOf(word));
}

/** A word's value where it is known, or is a number whatever it is. */
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
  return part.type === "ArithmeticExpansion" || /^\$(?:[#?$!]|\{#.*\})$/.test(part.text);
}

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
        if (/Quoted|LocaleString/.test(part.type)) doubt(`${quote(part.text)} stands in arithmetic`);
        evaluatePart(reading, part);
      }
      return;
    case "ArithmeticCommandExpansion":
      if (!isCount(node.text)) doubt("what a command writes is evaluated as arithmetic");
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
  if (target.type !== "ArithmeticWord") return doubt("arithmetic sets what is not a plain name");
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
    doubt(`an expansion with @${operation.operand.value} runs what a value holds`);
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
  if (!known) doubt(`which variable ${quote(text)} is, is known only when it runs`);
  const [, name, index] = /^([A-Za-z_]\w*)(?:\[([^]*)\])?$/.exec(text) ?? [];
  if (name === undefined) doubt(`${quote(text)} is not a plain name of a variable`);
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
      doubt(`${quote(part.text)} is evaluated as arithmetic`);
    evaluateName(reading, part.parameter);
  } else if (part.type === "CommandExpansion" && !isNumber(part))
    doubt("what a command writes is evaluated as arithmetic");
}

function evaluateName(reading: Evaluation, name: string): void {
  if (/^[@*\d]/.test(name)) doubt("words that the text is given are evaluated as arithmetic");
  if (plainName.test(name)) reading.evaluated.add(name);
}

function evaluateText(reading: Evaluation, text: string): void {
  if (!reading.shapes.indexes(text)) doubt(`${quote(text)} is evaluated as arithmetic, and may hold code`);
  for (const [name] of text.matchAll(/(?<!\w)[A-Za-z]\w*|(?<!\w)_\w+/g)) reading.evaluated.add(name);
}

/** @throws {EvaluationError} where a variable is evaluated and was given a value that may hold code */
export function checkEvaluations(reading: Evaluation): void {
  for (const name of reading.evaluated) {
    for (const value of reading.values.get(name) ?? []) {
      if (value === undefined)
        doubt(`the value of ${quote(name)}, which is evaluated as arithmetic, is known only when it runs`);
      // The names in a value are evaluated too: a set that grows is walked to its end.
      evaluateText(reading, value);
    }
  }
}

/** Builtins whose arguments are names of variables, with or without a value. */
const setters = new Set("read mapfile readarray unset declare typeset local export readonly".split(" "));
const declarers = new Set("declare typeset local export readonly".split(" "));

/** @throws {EvaluationError} where a builtin sets what is not known, or evaluates what may hold code */
export function readBuiltin(reading: Evaluation, name: string, args: readonly Arg[]): void {
  if (name === "let") for (const arg of args) readLet(reading, arg);
  if (setters.has(name)) readSetter(reading, name, args);
  if (name === "getopts" && args[1] !== undefined) setArgument(reading, name, args[1]);
  if (name === "wait" || name === "printf")
    for (const [at, { text }] of args.entries()) {
      const option = name === "wait" ? "-p" : "-v";
      if (text === option) setArgument(reading, name, args[at + 1] ?? literal(""));
      else if (text.startsWith(option))
        setArgument(reading, name, { ...(args[at] ?? literal("")), text: text.slice(2) });
    }
  if (name === "test" || name === "[")
    for (const [at, arg] of args.entries())
      if (/^-[vR]$/.test(args[at - 1]?.text ?? "") && arg.text !== "]") evaluateVariable(reading, arg);
}

function readLet(reading: Evaluation, { text, known }: Arg): void {
  if (!known) doubt("what `let` evaluates is known only when it runs");
  evaluateText(reading, text);
  const name = /^\s*(?:\+\+|--)?([A-Za-z_]\w*)\s*(?:\+\+|--|[-+*/%&|^]?=)/.exec(text)?.[1];
  if (name !== undefined) noteName(reading, name, "0");
}

function readSetter(reading: Evaluation, name: string, args: readonly Arg[]): void {
  for (const [at, arg] of args.entries()) {
    const { text, fixed } = arg;
    if (fixed.startsWith("-")) checkOption(name, text);
    // `read -p "Go on? [y/N] " answer`: the value of an option sets nothing.
    else if (name !== "read" || !/^-\w*[dinNptu]$/.test(args[at - 1]?.text ?? "")) setArgument(reading, name, arg);
  }
}

function checkOption(builtin: string, text: string): void {
  // `read -raPATH`: a name may be attached to an option.
  for (let at = 2; at < text.length; at += 1) checkVariable(text.slice(at));
  if (declarers.has(builtin) && (text.includes("i") || (text.includes("n") && builtin !== "export")))
    doubt(`${quote(`${builtin} ${text}`)} has values evaluated`);
}

function setArgument(reading: Evaluation, builtin: string, { text, fixed, known }: Arg): void {
  const [, name, index, value] = /^([A-Za-z_]\w*)(?:\[([^]*?)\])?(?:\+?=([^]*))?$/.exec(text) ?? [];
  const isNameKnown = known || (value !== undefined && fixed.startsWith(`${name ?? ""}=`));
  if (!isNameKnown) doubt(`which variable ${quote(builtin)} sets is known only when it runs`);
  if (name === undefined) return evaluateText(reading, text);
  if (index !== undefined) evaluateText(reading, index);
  if (declarers.has(builtin) && known && /^\s*\(/.test(value ?? "")) doubt(`${quote(text)} is evaluated as an array`);
  if (value === undefined && (declarers.has(builtin) || builtin === "unset")) checkVariable(name);
  else noteName(reading, name, known ? value : undefined);
}
