import { quote, parseNumber, Decimal } from "../../wire/mod.ts";
import type { Report, SourceFile, Span } from "./diagnostic.ts";
import type { Value } from "../value/value.ts";

/** The text of an expression, and the place of each of its units in the file. */
export interface ExpressionText {
  readonly file: SourceFile;
  readonly text: string;
  readonly offsets: readonly number[];
}

export interface Token {
  readonly kind: "literal" | "name" | "punctuation" | "broken" | "end";
  readonly text: string;
  readonly from: number;
  readonly to: number;
  readonly value?: Value;
  /** A member's name in backticks: never a keyword. */
  readonly quoted?: boolean;
}

export function spanOf(source: ExpressionText, from: number, to: number): Span {
  const start = source.offsets[from] ?? source.offsets.at(-1) ?? 0;
  const end = source.offsets[Math.max(from, to - 1)] ?? start;
  return { file: source.file, from: start, to: Math.max(end, start) + 1 };
}

const punctuation = "&& || == != <= >= .? [? ? : ( ) [ ] { } , . + - * / % < > !".split(" ");
const space = /[ \t\r\n\f]+|\/\/[^\n]*/y;
const name = /[A-Za-z_][A-Za-z0-9_]*/y;
const quotedName = /`[A-Za-z0-9_.\-/ ]+`/y;
const number = /0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/y;
const stringStart = /([rR]?)("""|'''|"|')/y;
const constants: ReadonlyMap<string, null | boolean> = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
]);

/** Splits an expression into tokens. Invalid text is reported and becomes a `broken` token. */
export function tokenize(source: ExpressionText, report: Report): readonly Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(source.text)?.[0];
  };
  while (at < source.text.length) {
    const skipped = match(space);
    if (skipped !== undefined) {
      at += skipped.length;
      continue;
    }
    const token = readToken(source, at, match, report);
    tokens.push(token);
    at = token.to;
  }
  tokens.push({ kind: "end", text: "", from: at, to: at });
  return tokens;
}

type Match = (pattern: RegExp) => string | undefined;

function readToken(source: ExpressionText, at: number, match: Match, report: Report): Token {
  if (match(/[bB][rR]?["']|[rR][bB]["']/y) !== undefined) return readBytes(source, at, report);
  if (match(stringStart) !== undefined) return readString(source, at, report);
  const digits = match(number);
  if (digits !== undefined) return readNumber(source, at, digits, report);
  const word = match(name);
  if (word !== undefined) {
    const to = at + word.length;
    const value = constants.get(word);
    return value === undefined
      ? { kind: "name", text: word, from: at, to }
      : { kind: "literal", text: word, from: at, to, value };
  }
  const quoted = match(quotedName);
  if (quoted !== undefined) {
    return { kind: "name", text: quoted.slice(1, -1), from: at, to: at + quoted.length, quoted: true };
  }
  const wrong = wrongOperators.find(([candidate]) => source.text.startsWith(candidate, at));
  if (wrong !== undefined) return readWrongOperator(source, at, wrong, report);
  const mark = punctuation.find((candidate) => source.text.startsWith(candidate, at));
  if (mark !== undefined) return { kind: "punctuation", text: mark, from: at, to: at + mark.length };
  return readUnknown(source, at, report);
}

/** Operators of other languages, each with the operator of the contract language. */
const wrongOperators: readonly (readonly [written: string, meant: string])[] = [
  ["===", "=="],
  ["!==", "!="],
  ["<>", "!="],
  ["=>", ">="],
  ["=<", "<="],
  ["≥", ">="],
  ["≤", "<="],
  ["≠", "!="],
];
const halfOperators: ReadonlyMap<string, string> = new Map([
  ["=", "=="],
  ["&", "&&"],
  ["|", "||"],
]);

/** Reports the operator and continues as if the right one had been written: no other error follows from it. */
function readWrongOperator(
  source: ExpressionText,
  at: number,
  [written, meant]: readonly [string, string],
  report: Report,
): Token {
  const to = at + written.length;
  const hint = meant === "==" ? "compare with `==`" : `write \`${meant}\``;
  report.add("syntax", spanOf(source, at, to), `${quote(written)} has no meaning in a condition`, hint);
  return { kind: "punctuation", text: meant, from: at, to };
}

function readUnknown(source: ExpressionText, at: number, report: Report): Token {
  const character = String.fromCodePoint(source.text.codePointAt(at) ?? 0);
  const meant = halfOperators.get(character);
  if (meant !== undefined && source.text.slice(0, at).trim() !== "")
    return readWrongOperator(source, at, [character, meant], report);
  const to = at + character.length;
  const hint = /[“”„‘’]/.test(character) ? `write a text in straight quotes: "text" or 'text'` : undefined;
  report.add("syntax", spanOf(source, at, to), `${quote(character)} has no meaning in a condition`, hint);
  return { kind: "broken", text: character, from: at, to };
}

function readNumber(source: ExpressionText, at: number, digits: string, report: Report): Token {
  const to = at + digits.length;
  const suffix = /[A-Za-z_0-9]+/y;
  suffix.lastIndex = to;
  const tail = suffix.exec(source.text)?.[0];
  if (tail !== undefined) {
    const hint = /^u$/i.test(tail) ? "there is one numeric type: write the number without `u`" : undefined;
    report.add("syntax", spanOf(source, at, to + tail.length), `\`${digits}${tail}\` is not a number`, hint);
    return { kind: "broken", text: digits, from: at, to: to + tail.length };
  }
  const plain = /^0x/i.test(digits)
    ? BigInt(digits).toString()
    : digits.replace(/^\./, "0.").replace(/^0+(?=[0-9])/, "");
  const value = parseNumber(plain);
  if (typeof value === "number" || value instanceof Decimal)
    return { kind: "literal", text: digits, from: at, to, value };
  report.add("syntax", spanOf(source, at, to), value.problem);
  return { kind: "broken", text: digits, from: at, to };
}

function readBytes(source: ExpressionText, at: number, report: Report): Token {
  const prefix = /[bBrR]+/y;
  prefix.lastIndex = at;
  const length = prefix.exec(source.text)?.[0].length ?? 1;
  const { to } = readString(source, at + length, report);
  report.add(
    "left-out",
    spanOf(source, at, to),
    "byte strings are not part of the contract language",
    "JSON has text only: remove the `b`",
  );
  return { kind: "broken", text: "", from: at, to };
}

const simpleEscapes: ReadonlyMap<string, string> = new Map([
  ["a", "\x07"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["v", "\v"],
  ["\\", "\\"],
  ["?", "?"],
  ['"', '"'],
  ["'", "'"],
  ["`", "`"],
]);
const numericEscape = /\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))/y;

/** A string literal with CEL's escapes, including raw (`r"..."`) and triple-quoted forms. */
function readString(source: ExpressionText, from: number, report: Report): Token {
  const { text } = source;
  stringStart.lastIndex = from;
  const [opening = "", raw = "", mark = '"'] = stringStart.exec(text) ?? [];
  let value = "";
  let at = from + opening.length;
  while (at < text.length && !text.startsWith(mark, at)) {
    if (mark.length === 1 && /[\r\n]/.test(text.charAt(at))) break;
    if (text[at] === "\\" && raw === "") {
      const [piece, length] = readEscape(source, at, report);
      value += piece;
      at += length;
    } else {
      value += text[at];
      at += 1;
    }
  }
  if (!text.startsWith(mark, at)) {
    report.add("syntax", spanOf(source, from, at), "the text is not closed", `add ${mark} at its end`);
    // The rest may or may not be text: nothing more is reported about it.
    return { kind: "broken", text: "", from, to: text.length };
  }
  const to = at + mark.length;
  return { kind: "literal", text: text.slice(from, to), from, to, value };
}

function readEscape(source: ExpressionText, at: number, report: Report): readonly [string, number] {
  const simple = simpleEscapes.get(source.text.charAt(at + 1));
  if (simple !== undefined) return [simple, 2];
  numericEscape.lastIndex = at;
  const found = numericEscape.exec(source.text);
  if (found === null) {
    report.add(
      "syntax",
      spanOf(source, at, at + 2),
      "an escape that CEL does not have",
      "write `\\\\` for a backslash",
    );
    return ["", 2];
  }
  const [whole, hex2, hex4, hex8, octal] = found;
  const code = octal === undefined ? Number.parseInt(hex2 ?? hex4 ?? hex8 ?? "0", 16) : Number.parseInt(octal, 8);
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
    report.add("syntax", spanOf(source, at, at + whole.length), "an escape that is not a Unicode character");
    return ["", whole.length];
  }
  return [String.fromCodePoint(code), whole.length];
}
