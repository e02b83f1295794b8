import { quote } from "../../../core/src/wire/mod.ts";
import { checkVariable, doubt } from "./doubt.ts";
import { evaluateText, evaluateVariable, isCount, noteName, noteOption, type ShellVariables } from "./evaluation.ts";
import { literal, type Arg } from "./words.ts";

/** Builtins whose arguments are names of variables, with or without a value. */
const setters = new Set("read mapfile readarray unset declare typeset local export readonly".split(" "));
const declarers = new Set("declare typeset local export readonly".split(" "));

/** @throws {EvaluationError} if a builtin sets an unknown variable, or evaluates a text that may contain code */
export function readBuiltin(reading: ShellVariables, name: string, args: readonly Arg[]): void {
  checkPatterns(name, args);
  if (name === "let") for (const arg of args) readLet(reading, arg);
  if (setters.has(name)) readSetter(reading, name, args);
  if (name === "getopts" && args[1] !== undefined) {
    setArgument(reading, name, args[1]);
    noteName(reading, "OPTARG");
  }
  if (name === "wait") readWait(reading, args);
  if (name === "printf") readPrintf(reading, args);
  if (name === "test" || name === "[") readTest(reading, name === "[" ? args.slice(0, -1) : args);
}

/** File names may be `-v` and `a[$(id)]`. */
function checkPatterns(name: string, args: readonly Arg[]): void {
  const isTest = name === "test" || name === "[";
  if (!isTest && !setters.has(name) && !/^(?:let|getopts|wait)$/.test(name)) return;
  for (const { text, glob } of args)
    if (glob && (!isTest || /^[-*?[]/.test(text)))
      doubt(`the pattern ${quote(text)} may match file names that read as options or variables`);
}

/** `wait -p NAME` sets a variable. */
function readWait(reading: ShellVariables, args: readonly Arg[]): void {
  for (const arg of args) {
    if (/^-.*p/.test(arg.fixed) || (arg.fixed.startsWith("-") && !arg.known)) doubt("`wait -p` sets a variable");
    noteOption(reading, arg);
    noteSplit(reading, arg);
  }
}

/** `printf -v NAME` sets a variable, and so does the conversion `n` in a format. */
function readPrintf(reading: ShellVariables, args: readonly Arg[]): void {
  let at = 0;
  for (; /^(?:-v|--$)/.test(args[at]?.fixed ?? ""); at += 1) {
    const option = args[at] ?? literal("");
    const attached = { ...option, text: option.text.slice(2), fixed: option.fixed.slice(2) };
    if (option.fixed === "-v") setArgument(reading, "printf", args[(at += 1)] ?? literal(""));
    else if (option.fixed !== "--") setArgument(reading, "printf", attached);
  }
  const format = args[at];
  if (format === undefined) return;
  if (!format.known || format.glob) doubt(`the format ${quote(format.text)} of \`printf\` is known only when it runs`);
  if (setsByFormat(format.text)) doubt(`the format ${quote(format.text)} of \`printf\` sets a variable`);
}

/** `%n` stores the number of characters in the variable that an argument names. */
function setsByFormat(format: string): boolean {
  // zsh reads `\45` and `\x25` as `%` before it reads the conversions.
  if (/\\(?:0*45|x25|u\{?0*25|U0*25)/i.test(format)) return true;
  for (const [, conversion] of format.matchAll(/%(?:%|[-#+ 0'*.$\d]*(?:\([^()]*\)T|[hjlLtzw]*(\w?)))/g))
    if (conversion === "n") return true;
  return false;
}

/** `test -v NAME` evaluates the name, at every position where `-v` may be read as an operator. */
function readTest(reading: ShellVariables, args: readonly Arg[]): void {
  for (const arg of args) noteSplit(reading, arg);
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

/** A word without quotes may become several words, some of which the command evaluates or runs. */
export function noteSplit(reading: ShellVariables, { text, known, single }: Arg): void {
  if (known || single) return;
  const [, name] = /^\$(?:\{(?=\w+\}))?([A-Za-z_]\w*)\}?$/.exec(text) ?? [];
  if (name !== undefined) reading.split.add(name);
  else if (!/^\$(?:[?#$!]|\{#\w+\}|\(\(.*\)\))$/s.test(text) && !isCount(text))
    doubt(`${quote(text)} may become several words; put it in double quotes`);
}

function readLet(reading: ShellVariables, { text, known }: Arg): void {
  if (!known) doubt("the text that `let` evaluates is known only when it runs");
  const [, before, name, after, value] = /^(\+\+|--)?([A-Za-z_]\w*)(?:(\+\+|--)|[-+*/%]?=(.*))?$/s.exec(text) ?? [];
  evaluateText(reading, name === undefined ? text : (value ?? ""));
  // All except `x=1` read the current value of the variable.
  if (name !== undefined && !text.startsWith(`${name}=`)) reading.evaluated.add(name);
  if (name !== undefined && (before ?? after ?? value) !== undefined) noteName(reading, name, "0");
}

function readSetter(reading: ShellVariables, name: string, args: readonly Arg[]): void {
  if (name === "read") return readRead(reading, args);
  const isArray = args.some(({ fixed }) => /^-\w*[aA]/.test(fixed));
  if (isArray && declarers.has(name) && args.some(({ known }) => !known))
    doubt("the value of an array is known only when it runs");
  for (const arg of args) {
    if (arg.fixed.startsWith("-")) checkOption(name, arg);
    else setArgument(reading, name, arg);
    if (isArray || name === "mapfile" || name === "readarray") reading.arrays.add(arg.text.replace(/[^\w][^]*$/, ""));
  }
}

/** The options of `read` are read letter by letter: `-raNAME`, `-p "Go on? " answer`, `-dn NAME`. */
function readRead(reading: ShellVariables, args: readonly Arg[]): void {
  let at = 0;
  for (; at < args.length; at += 1) {
    const { text, fixed, known, single } = args[at] ?? literal("");
    if (!single) doubt(`${quote(text)} may become several words; put it in double quotes`);
    if (!fixed.startsWith("-")) break;
    if (text === "--") {
      at += 1;
      break;
    }
    const [, letter = "", attached = ""] = /^-[ers]*(?:([adinNptu])([^]*))?$/.exec(known ? text : fixed) ?? [];
    if (letter === "" && !/^-[ers]+$/.test(text)) doubt(`\`read\` with ${quote(text)} is not known here`);
    const value = attached === "" && letter !== "" ? args[(at += 1)] : { ...literal(attached), known };
    if (value?.single === false) doubt(`${quote(value.text)} may become several words; put it in double quotes`);
    if (letter === "a" && value !== undefined) {
      setArgument(reading, "read", value);
      reading.arrays.add(value.text);
    }
  }
  for (const arg of args.slice(at)) setArgument(reading, "read", arg);
  if (at >= args.length) noteName(reading, "REPLY");
}

function checkOption(builtin: string, { text, known }: Arg): void {
  if (!known) doubt(`the option ${quote(text)} of ${quote(builtin)} is known only when it runs`);
  // A name may be attached to an option.
  for (let at = 2; at < text.length; at += 1) checkVariable(text.slice(at));
  // `-i` and `-n` evaluate values, `-u` and `-l` change them.
  if (declarers.has(builtin) && (/[^aAfFgnprx+-]/.test(text) || (text.includes("n") && builtin !== "export")))
    doubt(`${quote(`${builtin} ${text}`)} makes bash evaluate values`);
}

function setArgument(reading: ShellVariables, builtin: string, { text, fixed, known, glob }: Arg): void {
  const [, name, index, value] = /^([A-Za-z_]\w*)(?:\[([^]*?)\])?(?:\+?=([^]*))?$/.exec(text) ?? [];
  const isNameKnown = known || (value !== undefined && fixed.startsWith(`${name ?? ""}=`));
  if (!isNameKnown || glob) doubt(`the variable that ${quote(builtin)} sets is known only when it runs`);
  if (name === undefined) return evaluateText(reading, text);
  if (index !== undefined) {
    evaluateText(reading, index);
    reading.arrays.add(name);
  }
  if (declarers.has(builtin) && known && /^\s*\(/.test(value ?? "")) doubt(`bash evaluates ${quote(text)} as an array`);
  if (declarers.has(builtin) && !known) reading.declared.add(name);
  if (value === undefined && (declarers.has(builtin) || builtin === "unset")) checkVariable(name);
  else noteName(reading, name, known ? value : undefined);
}
