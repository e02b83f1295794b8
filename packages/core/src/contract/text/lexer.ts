import { quote, parseNumber, Decimal } from "../../wire/mod.ts";
import type { Report, SourceFile, Span } from "./diagnostic.ts";
import type { Value } from "../value/value.ts";

/** The text of an expression, and the offset of each of its units in the file. */
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
  const lexer = new Lexer(source, report);
  const tokens: Token[] = [];
  let at = 0;
  while (at < source.text.length) {
    const skipped = matchAt(space, source.text, at);
    if (skipped !== undefined) {
      at += skipped.length;
      continue;
    }
    const token = lexer.token(at);
    tokens.push(token);
    at = token.to;
  }
  tokens.push({ kind: "end", text: "", from: at, to: at });
  return tokens;
}

/** The text that a sticky pattern matches at an offset. */
function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
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

class Lexer {
  readonly #source: ExpressionText;
  readonly #report: Report;

  constructor(source: ExpressionText, report: Report) {
    this.#source = source;
    this.#report = report;
  }

  token(at: number): Token {
    const { text } = this.#source;
    const bytes = matchAt(/[bB][rR]?(?=["'])|[rR][bB](?=["'])/y, text, at);
    if (bytes !== undefined) return this.#bytes(at, bytes.length);
    if (matchAt(stringStart, text, at) !== undefined) return this.#string(at);
    const digits = matchAt(number, text, at);
    if (digits !== undefined) return this.#number(at, digits);
    const word = matchAt(name, text, at);
    if (word !== undefined) {
      const value = constants.get(word);
      const token = { text: word, from: at, to: at + word.length };
      return value === undefined ? { kind: "name", ...token } : { kind: "literal", ...token, value };
    }
    const quoted = matchAt(quotedName, text, at);
    if (quoted !== undefined)
      return { kind: "name", text: quoted.slice(1, -1), from: at, to: at + quoted.length, quoted: true };
    const [written = "", meant] = wrongOperators.find(([candidate]) => text.startsWith(candidate, at)) ?? [];
    if (meant !== undefined) return this.#wrongOperator(at, written, meant);
    const mark = punctuation.find((candidate) => text.startsWith(candidate, at));
    if (mark !== undefined) return { kind: "punctuation", text: mark, from: at, to: at + mark.length };
    return this.#unknown(at);
  }

  #refuse(from: number, to: number, message: string, hint?: string): void {
    this.#report.add("syntax", spanOf(this.#source, from, to), message, hint);
  }

  /** Reports the operator and continues as if the right one had been written: no other error follows from it. */
  #wrongOperator(at: number, written: string, meant: string): Token {
    const to = at + written.length;
    const hint = meant === "==" ? "compare with `==`" : `write \`${meant}\``;
    this.#refuse(at, to, `${quote(written)} has no meaning in a condition`, hint);
    return { kind: "punctuation", text: meant, from: at, to };
  }

  #unknown(at: number): Token {
    const { text } = this.#source;
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    const meant = halfOperators.get(character);
    if (meant !== undefined && text.slice(0, at).trim() !== "") return this.#wrongOperator(at, character, meant);
    const to = at + character.length;
    const hint = /[“”„‘’]/.test(character) ? `write a text in straight quotes: "text" or 'text'` : undefined;
    this.#refuse(at, to, `${quote(character)} has no meaning in a condition`, hint);
    return { kind: "broken", text: character, from: at, to };
  }

  #number(at: number, digits: string): Token {
    const tail = matchAt(/[A-Za-z_0-9]+/y, this.#source.text, at + digits.length) ?? "";
    const token = { text: digits, from: at, to: at + digits.length + tail.length };
    if (tail !== "") {
      const hint = /^u$/i.test(tail) ? "there is one numeric type: write the number without `u`" : undefined;
      this.#refuse(at, token.to, `\`${digits}${tail}\` is not a number`, hint);
      return { kind: "broken", ...token };
    }
    const plain = /^0x/i.test(digits)
      ? BigInt(digits).toString()
      : digits.replace(/^\./, "0.").replace(/^0+(?=[0-9])/, "");
    const value = parseNumber(plain);
    if (typeof value === "number" || value instanceof Decimal) return { kind: "literal", ...token, value };
    this.#refuse(at, token.to, value.problem);
    return { kind: "broken", ...token };
  }

  #bytes(at: number, prefix: number): Token {
    const { to } = this.#string(at + prefix);
    const hint = "JSON has text only: remove the `b`";
    const span = spanOf(this.#source, at, to);
    this.#report.add("left-out", span, "byte strings are not part of the contract language", hint);
    return { kind: "broken", text: "", from: at, to };
  }

  /** A string literal with CEL's escapes, including raw (`r"..."`) and triple-quoted forms. */
  #string(from: number): Token {
    const { text } = this.#source;
    stringStart.lastIndex = from;
    const [opening = "", raw = "", mark = '"'] = stringStart.exec(text) ?? [];
    let value = "";
    let at = from + opening.length;
    while (at < text.length && !text.startsWith(mark, at)) {
      if (mark.length === 1 && /[\r\n]/.test(text.charAt(at))) break;
      if (text[at] === "\\" && raw === "") {
        const [piece, length] = this.#escape(at);
        value += piece;
        at += length;
      } else {
        value += text[at];
        at += 1;
      }
    }
    if (!text.startsWith(mark, at)) {
      this.#refuse(from, at, "the text is not closed", `add ${mark} at its end`);
      // The rest may or may not be text: nothing more is reported about it.
      return { kind: "broken", text: "", from, to: text.length };
    }
    const to = at + mark.length;
    return { kind: "literal", text: text.slice(from, to), from, to, value };
  }

  #escape(at: number): readonly [string, number] {
    const { text } = this.#source;
    const simple = simpleEscapes.get(text.charAt(at + 1));
    if (simple !== undefined) return [simple, 2];
    numericEscape.lastIndex = at;
    const found = numericEscape.exec(text);
    if (found === null) {
      this.#refuse(at, at + 2, "an escape that CEL does not have", "write `\\\\` for a backslash");
      return ["", 2];
    }
    const [whole, hex2, hex4, hex8, octal] = found;
    const code = octal === undefined ? Number.parseInt(hex2 ?? hex4 ?? hex8 ?? "0", 16) : Number.parseInt(octal, 8);
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
      this.#refuse(at, at + whole.length, "an escape that is not a Unicode character");
      return ["", whole.length];
    }
    return [String.fromCodePoint(code), whole.length];
  }
}
