import type { SyntaxNode } from "unbash";
import { quote } from "../../../core/src/wire/mod.ts";
import { doubt } from "./doubt.ts";

/**
 * Spellings where a mistake would let a hidden command pass. Each function answers: does the reader understand this
 * spelling, and do bash and dash read it alike? A test replaces one of them and expects the differential test to fail.
 */
export interface Shapes {
  /** A text that bash evaluates as a name, an index or a number: `[[ -v TEXT ]]`, `${a[TEXT]}`, `read TEXT`. */
  readonly indexes: (text: string) => boolean;
  /** The word after `<<`. */
  readonly delimiters: (raw: string) => boolean;
  /** The text between the words of `[[ ... ]]`. */
  readonly tests: (between: string) => boolean;
  /** A whole `$'...'`. */
  readonly ansiC: (raw: string) => boolean;
  /** The unquoted letters of a word in which the parser sees no brace expansion. */
  readonly braces: (bare: string) => boolean;
  /** `2` in `2>file`, `{name}` in `{name}>file`. */
  readonly descriptors: (raw: string) => boolean;
}

/** A backslash may continue a line if the next one cannot join its last word or sign: `ls\` and `-l` below are `ls-l`. */
const continued = String.raw`(?:(?<=[ \t])\\\n|(?<=[;&|()])\\\n(?![;&|<>()]))`;
type Matcher = (raw: string) => boolean;

const blank = String.raw`(?:[ \t]|${continued})`;
const space = String.raw`(?:[ \t\n]|${continued}|(?<![^\s;&|()])#[^\n]*(?:\n|$))`;
/**
 * A `$` that does not start an expansion, in quotes and outside of them, even if a backslash continues the line after
 * it.
 */
const dollarInQuotes = String.raw`\$(?!(?:\\\n)*[\w@*#?$!({[-])`;
const dollar = String.raw`\$(?![\w@*#?$!({['"-]|\\\n)`;
const name = String.raw`[A-Za-z_]\w*`;
/** Printable ASCII. The meaning of other bytes depends on the locale, and NUL ends the text. */
const code = String.raw`x[2-6][0-9A-Fa-f]|x7[0-9A-Ea-e]|0?(?:4[0-7]|[56][0-7])|1(?:[0-6][0-7]|7[0-6])|u00[2-6][0-9A-Fa-f]|u007[0-9A-Ea-e]`;

export const understood: Shapes = {
  // `=` is excluded because `a[PATH=11]` sets PATH.
  indexes: (text) => /^[^$\x60[\](){};&|<>"'\\=]*$/.test(text) && !/\+\+|--/.test(text),
  delimiters: matcher(String.raw`[\w.-]+|'[\w. -]+'|"[\w. -]+"|\\[A-Za-z_][\w.-]*`),
  tests: matcher(`(?:${blank}|\\[\\[|\\]\\]|!|-[a-zA-Z]{1,2}|=~?)*`),
  ansiC: matcher(String.raw`\$'(?:[^'\\\n]|\n|\\(?:[abefnrtv\\"?]|${code}(?![0-9A-Fa-f{])))*'`),
  // bash 5.2 expands `a{},b}`. A pair without a comma or `..` inside is plain text.
  braces: (bare) => !/,|\.\./.test(between(bare, "{", "}")),
  // dash reads `12>file` as the word `12` and a redirection, and `{name}>file` as the word `{name}` and a redirection.
  descriptors: matcher(String.raw`\d`),
};

/**
 * The text that a node may have around its children, or as a whole if it has none. The reader refuses an unlisted node,
 * and text around children that does not match. So the reader checks every character of the source.
 */
const around: Readonly<Partial<Record<SyntaxNode["type"], Matcher>>> = {
  ...makeMatchers(`(?:${space}|[;&])*`, "Script", "CompoundList", "Statement"),
  ...makeMatchers(`(?:${space}|&&|\\|\\|)*`, "AndOr"),
  ...makeMatchers(`(?:${space}|\\|&?)*`, "Pipeline"),
  ...makeMatchers(`${blank}*`, "Command", "Redirected"),
  ...makeMatchers(`(?:${space}|;|if|then|else|fi)*`, "If"),
  ...makeMatchers(`(?:${space}|;|elif|then)*`, "Elif"),
  ...makeMatchers(`(?:${space}|[;&]|while|until|do|done)*`, "While"),
  ...makeMatchers(`(?:${space}|[;&]|for|select|in|do|done)*`, "For", "Select"),
  ...makeMatchers(`(?:${space}|[;&]|for|\\(\\(|\\)\\)|do|done)*`, "ArithmeticFor"),
  ...makeMatchers(`(?:${space}|case|in|esac)*`, "Case"),
  ...makeMatchers(`(?:${space}|[()|]|;&?)*`, "CaseItem"),
  ...makeMatchers(`(?:${space}|function|[()])*`, "Function"),
  ...makeMatchers(`(?:${blank}|coproc)*`, "Coproc"),
  ...makeMatchers(`(?:${space}|[;&()])*`, "Subshell"),
  ...makeMatchers(`(?:${space}|[;&{}])*`, "BraceGroup"),
  ...makeMatchers(`time(?:${blank}+-p)?(?:${blank}+--)?`, "Time"),
  ...makeMatchers("!", "Negation"),
  ...makeMatchers(`(?:\\$\\(|\x60|\\)|${space}|[;&])*`, "CommandExpansion", "ArithmeticCommandExpansion"),
  ...makeMatchers(`(?:[<>]\\(|\\)|${space}|[;&])*`, "ProcessSubstitution"),
  ...makeMatchers("", "Word"),
  ...makeMatchers("'[^']*'", "SingleQuoted"),
  ...makeMatchers('"?', "DoubleQuoted"),
  ...makeMatchers('\\$?"?', "LocaleString"),
  ...makeMatchers(`\\$(?:${name}|[0-9@*#?$!-])`, "SimpleExpansion"),
  ...makeMatchers(`(?:\\$\\{[!#]?(?:${name}|[0-9]+|[@*#?$!-]))?[[\\]]?\\}?`, "ParameterExpansion"),
  ...makeMatchers("(?::?[-=?+])?", "Default"),
  ...makeMatchers("(?:##?|%%?)?", "Remove"),
  ...makeMatchers("(?://?[#%]?)?", "Replace"),
  ...makeMatchers(":?", "Slice"),
  ...makeMatchers("(?:\\^\\^?|,,?)?", "CaseModification"),
  ...makeMatchers("@?", "Transform"),
  ...makeMatchers("[@*]?", "Names"),
  ...makeMatchers(`(?:\\$\\(\\(|\\)\\)|[ \\t])*`, "ArithmeticExpansion"),
  ...makeMatchers(`(?:\\(\\(|\\)\\)|[ \\t])*`, "ArithmeticCommand"),
  ...makeMatchers(`[ \\t]*(?:[-+*/%<>=!&|^,]{1,3}[ \\t]*)?`, "ArithmeticBinary"),
  ...makeMatchers(`[ \\t]*(?:(?:\\+\\+|--|[-+!~])[ \\t]*)?`, "ArithmeticUnary"),
  ...makeMatchers(`[ \\t]*(?:[?:][ \\t]*)?`, "ArithmeticTernary"),
  ...makeMatchers(`[ \\t]*(?:[()][ \\t]*)?`, "ArithmeticGroup"),
  ...makeMatchers(`[\\w#]*|${name}\\[\\w*\\]`, "ArithmeticWord"),
  ...makeMatchers(String.raw`[^$\x60"'\\;&|<>() \t\n]*`, "Glob", "BraceExpansion"),
  ...makeMatchers(`(?:${name})?\\[?\\]?(?:\\+?=)?`, "Assignment"),
  ...makeMatchers(`(?:${space}|[()])*`, "ArrayValue"),
  ...makeMatchers(`(?:(?:>>?|>\\||<>?|[<>]&|&>>?)${blank}*)?`, "Redirect"),
  ...makeMatchers(`(?:<<<${blank}*)?`, "HereString"),
  ...makeMatchers(`(?:<<-?${blank}*)?`, "HereDoc"),
  // A document with a quoted delimiter is plain text. The letters of any other document are checked when it is read.
  ...makeMatchers("[^]*", "HereDocBody"),
};

/**
 * The context of plain text: outside of quotes, in double quotes, in a here-document, or after the operator of
 * `${x:-...}`.
 */
export type Context = "bare" | "quoted" | "document" | "operand" | "quotedOperand";

const letters: Readonly<Record<Context, (raw: string) => boolean>> = {
  bare: matcher(String.raw`(?:[^ \t\n;&|<>()$\x60"'\\*?]|\\[^\n]|${dollar})*`),
  quoted: matcher(String.raw`(?:[^"$\x60\\]|\\[^]|${dollarInQuotes})*`),
  document: matcher(String.raw`(?:[^$\x60\\]|\\[^]|${dollarInQuotes})*`),
  operand: matcher(String.raw`[^$\x60"'\\{}()<>&|;\n]*`),
  quotedOperand: matcher(String.raw`[^$\x60"'\\{}\n]*`),
};

/** Are these the letters of a here-document, without an expansion? */
export const isDocument: (raw: string) => boolean = letters.document;

const quotes = new Set<SyntaxNode["type"]>(["SingleQuoted", "DoubleQuoted", "AnsiCQuoted", "LocaleString"]);
const tests = new Set<SyntaxNode["type"]>([
  "TestCommand",
  "TestLogical",
  "TestNot",
  "TestGroup",
  "TestUnary",
  "TestBinary",
]);
const operations = new Set<SyntaxNode["type"]>([
  "Default",
  "Remove",
  "Replace",
  "Slice",
  "CaseModification",
  "Transform",
]);

/** The context of a node's children. */
export function contextBelow(node: SyntaxNode, context: Context): Context {
  if (node.type === "DoubleQuoted" || node.type === "LocaleString") return "quoted";
  if (node.type === "HereDocBody") return "document";
  if (node.type === "Script") return "bare";
  if (node.type === "ParameterExpansion" || operations.has(node.type))
    return context === "bare" || context === "operand" ? "operand" : "quotedOperand";
  return context;
}

export interface Spelling {
  readonly shapes: Shapes;
  readonly context: Context;
  /** The text that the positions of the node refer to, with blanks instead of here-documents. */
  readonly source: string;
}

/**
 * Checks the text of a node that does not belong to its children.
 *
 * @throws {EvaluationError} for a spelling that this parser, bash and dash may read differently
 */
export function checkShape(node: SyntaxNode, children: readonly SyntaxNode[], spelling: Spelling): void {
  const { source, context } = spelling;
  if ((node.type === "Word" || node.type === "Assignment") && source.charAt(node.end) === "#")
    doubt("a `#` follows a word, where some parsers read a comment");
  if (expands(node) && source.slice(node.pos, node.end).includes("\\\n"))
    doubt("a backslash continues a line in a text with expansions");
  if (quotes.has(node.type) && context === "quotedOperand") doubt("an expansion in quotes contains quotes");
  const isLetters = node.type === "Literal" || (node.type === "Word" && node.parts === undefined);
  const isUnderstood = isLetters ? letters[context] : spellingOf(node, spelling);
  let at = node.pos;
  for (const child of children) {
    // The text of a here-document is after its line.
    if (child.type === "HereDocBody") continue;
    if (child.pos < at || child.end > node.end) doubt("its parts overlap");
    check(source.slice(at, child.pos), isUnderstood);
    at = child.end;
  }
  check(source.slice(at, node.end), isUnderstood);
}

/** Is it a quoted text or a here-document with an expansion? dash reads `"$na\` and `me"` below it as `$name`. */
function expands(node: SyntaxNode): boolean {
  return (
    ((node.type === "DoubleQuoted" || node.type === "LocaleString") &&
      node.parts.some(({ type }) => type !== "Literal")) ||
    (node.type === "HereDocBody" && node.parts !== undefined)
  );
}

function check(raw: string, isUnderstood: (raw: string) => boolean): void {
  if (!isUnderstood(raw)) doubt(`${quote(raw.trim())} is not a spelling that the gate knows`);
}

function spellingOf(node: SyntaxNode, { shapes, source }: Spelling): (raw: string) => boolean {
  if (tests.has(node.type)) return shapes.tests;
  if (node.type === "AnsiCQuoted") return shapes.ansiC;
  if (node.type === "HereDocDelimiter") return shapes.delimiters;
  if (node.type === "FileDescriptor" || node.type === "FileDescriptorVariable") return shapes.descriptors;
  if (isDecoded(node)) return escapedBackticks;
  return around[node.type] ?? doubt(`${quote(source.slice(node.pos, node.end))} is not a spelling that the gate knows`);
}

/** Is it code in backticks that contains backslashes? The parser removes these, so positions refer to another text. */
export function isDecoded(node: SyntaxNode): boolean {
  return node.type === "CommandExpansion" && node.script?.source !== undefined;
}

const escapedBackticks = matcher(String.raw`\x60(?:[^\x60\\]|\\\x60)*\x60`);

/** The text between the first opening and the last closing character; empty if there is none. */
function between(text: string, opening: string, closing: string): string {
  const [from, to] = [text.indexOf(opening), text.lastIndexOf(closing)];
  return from < 0 || to < from ? "" : text.slice(from + 1, to);
}

/** Patterns must be linear: no two ways to read one text, and nothing that is searched again from each position. */
function matcher(pattern: string): (raw: string) => boolean {
  const whole = new RegExp(`^(?:${pattern})$`);
  return (raw) => whole.test(raw);
}

function makeMatchers(
  pattern: string,
  ...types: readonly SyntaxNode["type"][]
): Partial<Record<SyntaxNode["type"], Matcher>> {
  const matches = matcher(pattern);
  return Object.fromEntries(types.map((type) => [type, matches]));
}
