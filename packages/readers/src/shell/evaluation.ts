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
import { quote } from "../../../core/src/wire/mod.ts";
import { checkVariable, doubt } from "./doubt.ts";
import type { Shapes } from "./shapes.ts";
import { mark, readWord, type Arg } from "./words.ts";

/**
 * bash evaluates some texts again: as arithmetic, as an index, or as the name of a variable. There `a[$(command)]` runs the
 * command, even if a variable contains it. So such a text must be plain, and so must each value that its variables receive.
 */
export interface ShellVariables {
  readonly shapes: Shapes;
  readonly variables: Set<string>;
  /** The values that the text gives each variable; undefined for a value that is known only when it runs. */
  readonly values: Map<string, (string | undefined)[]>;
  /** Variables whose value is evaluated. */
  readonly evaluated: Set<string>;
  readonly functions: Set<string>;
  /** Variables that are arrays. */
  readonly arrays: Set<string>;
  /** Variables that a declaration sets to a value that is known only when it runs. */
  readonly declared: Set<string>;
  /** Variables whose value may become several words of a command that evaluates some of its words. */
  readonly split: Set<string>;
}

const plainName = /^[A-Za-z_]\w*$/;
/** Variables that the shell sets to numbers. bash evaluates a value that one of them is given. */
const numbers = /^(?:RANDOM|SRANDOM|SECONDS|EPOCHSECONDS|LINENO|UID|EUID|PPID|SHLVL|OPTIND|COLUMNS|LINES|HISTCMD)$/;
/** Variables that the shell sets to other texts, whatever value the text assigns. */
const texts =
  /^(?:_|REPLY|MAPFILE|OPTARG|BASH\w*|FUNCNAME|DIRSTACK|PWD|OLDPWD|COPROC\w*|COMP_\w+|COMPREPLY|READLINE_\w+|PIPESTATUS|HOST\w+)$/;

/**
 * Records an assignment. @throws {EvaluationError} if the variable decides which programs run, or its name is not plain
 */
export function noteName(reading: ShellVariables, name: string, value?: string): void {
  if (!plainName.test(name)) doubt(`${quote(name)} is not a plain variable name`);
  checkVariable(name, value);
  if (numbers.test(name)) reading.evaluated.add(name);
  reading.variables.add(name);
  const values = reading.values.get(name);
  if (values === undefined) reading.values.set(name, [value]);
  else values.push(value);
}

export function noteAssignment(reading: ShellVariables, { name, index, value, append }: Assignment): void {
  if (index !== undefined) evaluateWord(reading, index);
  if (index !== undefined || value.type !== "Word") reading.arrays.add(name);
  for (const word of value.type === "Word" ? [value] : value.elements) {
    // `a=([$(id)]=1)` evaluates the index of an element.
    if (value.type !== "Word" && word.text.startsWith("[")) doubt(`bash evaluates the index in ${quote(word.text)}`);
    const text = readKnownText(word);
    // `x+=z` joins two texts to one value.
    noteName(reading, name, append === true && !/^\d*$/.test(text ?? "x") ? undefined : text);
  }
  if (value.type !== "Word" && value.elements.length === 0) noteName(reading, name, "");
}

export function noteLoop(reading: ShellVariables, { name, wordlist }: For | Select): void {
  noteName(reading, name.value);
  if (wordlist === undefined) return;
  reading.values.get(name.value)?.pop();
  for (const word of wordlist) noteName(reading, name.value, readKnownText(word));
}

/** A word's text if it is known, and `0` for any number. */
function readKnownText(word: Word): string | undefined {
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

const counters = ["seq", "date", "nproc", "wc", "id"];

/** Substitutions that write numbers and nothing else. */
export function isCount(text: string): boolean {
  return /^\$\((?:seq [\d ]+|date \+%[sYmdHMS]|nproc|id -u|wc -[clw] < ?[\w./-]+|(?:[^;&|()$\x60<>\n]+\|)+ *wc -[clw] *)\)$/.test(
    text,
  );
}

export function noteArithmetic(reading: ShellVariables, node: SyntaxNode): void {
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

function noteTarget(reading: ShellVariables, target: ArithmeticExpression): void {
  if (target.type !== "ArithmeticWord") return doubt("arithmetic assigns to something that is not a plain name");
  noteName(reading, target.value.replace(/\[\w*\]$/, ""), "0");
}

function noteParameter(reading: ShellVariables, { parameter, prefix, index, operation }: ParameterExpansionPart): void {
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
  if (operation?.type === "Default" && operation.operator.includes("=")) {
    if (index !== undefined) reading.arrays.add(parameter);
    noteName(reading, parameter, readKnownText(operation.operand));
  }
}

export function noteTest(reading: ShellVariables, node: SyntaxNode): void {
  if (node.type === "TestUnary" && /^-[vR]$/.test(node.operator)) evaluateVariable(reading, readWord(node.operand));
  if (node.type !== "TestBinary" || !/^-(?:eq|ne|lt|le|gt|ge)$/.test(node.operator)) return;
  evaluateWord(reading, node.left);
  evaluateWord(reading, node.right);
}

/** A word that names a variable, or an element of an array: `a`, `a[1]`, `a[@]`. */
export function evaluateVariable(reading: ShellVariables, { text, known }: Arg): void {
  if (!known) doubt(`the variable that ${quote(text)} names is known only when it runs`);
  const [, name, index] = /^([A-Za-z_]\w*)(?:\[([^]*)\])?$/.exec(text) ?? [];
  if (name === undefined) doubt(`${quote(text)} is not a plain variable name`);
  if (index !== undefined && !/^[@*]$/.test(index)) evaluateText(reading, index);
}

function evaluateWord(reading: ShellVariables, word: Word): void {
  evaluateText(reading, readWord(word).fixed);
  for (const part of word.parts ?? []) evaluatePart(reading, part);
}

function evaluatePart(reading: ShellVariables, part: WordPart): void {
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

function evaluateName(reading: ShellVariables, name: string): void {
  if (/^[@*\d]/.test(name)) doubt("bash evaluates arguments such as `$1` and `$@` as arithmetic");
  if (plainName.test(name)) reading.evaluated.add(name);
}

export function evaluateText(reading: ShellVariables, text: string): void {
  if (!reading.shapes.indexes(text)) doubt(`bash evaluates ${quote(text)} as arithmetic, and it may contain code`);
  if (text.includes(mark) && /\w/.test(text)) doubt("arithmetic uses a name that is known only when it runs");
  for (const [name] of text.matchAll(/(?<!\w)[A-Za-z_]\w*/g)) reading.evaluated.add(name);
}

/** @throws {EvaluationError} if bash evaluates a variable whose value is not known, or may contain code */
export function checkEvaluations(reading: ShellVariables): void {
  for (const name of reading.evaluated) {
    const values = reading.values.get(name);
    if (texts.test(name) || (values === undefined && !numbers.test(name))) valueUnknown(name);
    for (const value of values ?? []) {
      if (value === undefined) return valueUnknown(name);
      // This may add the names in a value to the set. The loop then visits those too.
      evaluateText(reading, value);
    }
  }
  // `x=(); declare "x=$y"` evaluates the value of `y`.
  for (const name of reading.declared)
    if (reading.arrays.has(name) || texts.test(name))
      doubt(`the value of the array ${quote(name)} is known only when it runs`);
  if (reading.variables.has("IFS") && reading.functions.has("read")) doubt("a function takes the name of `read`");
  for (const name of counters)
    if (reading.functions.has(name)) doubt(`a function replaces ${quote(name)}, whose output counts as a number`);
  for (const name of reading.split) {
    if (texts.test(name)) valueUnknown(name);
    for (const value of reading.values.get(name) ?? [])
      if (value === undefined || !/^(?!-)[\w.:/@%+,-]*$/.test(value)) valueUnknown(name);
  }
}

function valueUnknown(name: string): never {
  return doubt(
    `bash evaluates ${quote(name)}, whose value is known only when it runs; put it in double quotes, or set it to a number`,
  );
}

/** A word that starts with a variable may be an option: `sh "$x"` with `x=-c`. The value must be known and plain. */
export function noteOption(reading: ShellVariables, { text, fixed, known }: Arg): void {
  if (known || !/^[^\w./~-]/.test(fixed)) return;
  const [, braced, bare] = /^\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))/.exec(text) ?? [];
  const name = braced ?? bare;
  if (name !== undefined) reading.split.add(name);
  else if (!/^\$[?#$!]/.test(text) && !isCount(text)) doubt(`${quote(text)} may be an option`);
}
