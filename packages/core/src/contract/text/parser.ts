import { didYouMean } from "../../wire/mod.ts";
import type { Report, Span } from "./diagnostic.ts";
import { spanOf, tokenize, type ExpressionText, type Token } from "./lexer.ts";
import type { BinaryOperator, Syntax } from "./syntax.ts";

const depthMax = 100;
const tokensMax = 5000;

/**
 * Parses one expression of CEL's grammar (cel-spec langdef, "Syntax"). Problems go to the report. An unreadable part
 * becomes a `broken` node, and parsing continues after it, so that all problems appear together.
 */
export function parseExpression(source: ExpressionText, report: Report): Syntax {
  const tokens = tokenize(source, report);
  if (tokens.length > tokensMax) {
    const span = spanOf(source, 0, source.text.length);
    report.add("too-large", span, `an expression of over ${tokensMax} tokens`, "name its parts with `let:`");
    return { kind: "broken", span };
  }
  return new Parser(source, tokens, report).whole();
}

const otherwise = "`:` and the other value";
const relationsLevel = 2;
const relations = ["==", "!=", "<", "<=", ">", ">=", "in"];
export const reserved: ReadonlySet<string> = new Set(
  "as break const continue else for function if import let loop package namespace return var void while".split(" "),
);
const choiceHint = "a choice is written `test ? yes : no`";
/** Words that are operators in other languages. */
const wordOperators: ReadonlyMap<string, BinaryOperator> = new Map([
  ["and", "&&"],
  ["or", "||"],
  ["is", "=="],
]);

class Parser {
  readonly #source: ExpressionText;
  readonly #tokens: readonly Token[];
  readonly #report: Report;
  #next = 0;
  #depth = 0;
  #reportedAt = -1;

  constructor(source: ExpressionText, tokens: readonly Token[], report: Report) {
    this.#source = source;
    this.#tokens = tokens;
    this.#report = report;
  }

  whole(): Syntax {
    const from = this.#peek();
    if (from.kind === "end") return this.#broken(from, "an expression is missing");
    const expression = this.#expression();
    const rest = this.#peek();
    if (rest.kind !== "end") this.#unexpected(rest, "the end of the expression");
    return expression;
  }

  #expression(): Syntax {
    this.#depth += 1;
    try {
      if (this.#depth > depthMax) {
        const broken = this.#broken(
          this.#peek(),
          `nested deeper than ${depthMax} levels`,
          "name its parts with `let:`",
        );
        this.#next = this.#tokens.length - 1;
        return broken;
      }
      const test = this.#binary(0);
      if (!this.#accept("?")) return test;
      if (this.#peek().text === "?") return this.#unexpected(this.#peek(), "a value");
      const yes = this.#binary(0);
      this.#expect(":", otherwise);
      const no = this.#expression();
      return { kind: "conditional", span: this.#between(test, no), test, yes, no };
    } finally {
      this.#depth -= 1;
    }
  }

  #binary(level: number): Syntax {
    const operators = [["||"], ["&&"], relations, ["+", "-"], ["*", "/", "%"]][level];
    if (operators === undefined) return this.#unary();
    const from = this.#next;
    let left = this.#binary(level + 1);
    for (;;) {
      const token = this.#peek();
      if (level === relationsLevel && isWord(token, "not") && isWord(this.#after(), "in")) {
        left = this.#notIn(left, from);
        continue;
      }
      const meant = token.kind === "name" ? wordOperators.get(token.text.toLowerCase()) : undefined;
      const operator = meant === "==" && isWord(this.#after(), "not") ? "!=" : (meant ?? token.text);
      if (!operators.includes(operator) || token.kind === "literal" || token.quoted === true) return left;
      const last = operator === "!=" && meant !== undefined ? this.#after() : token;
      this.#next += last === token ? 1 : 2;
      if (meant !== undefined) this.#word(token, last, operator);
      const right = this.#binary(level + 1);
      left = { kind: "binary", span: this.#between(left, right), operator: operator as BinaryOperator, left, right };
    }
  }

  /** Reports an operator that is written as a word, and continues as if the right one had been written. */
  #word(from: Token, to: Token, meant: string): void {
    const word = this.#source.text.slice(from.from, to.to).replace(/\s+/g, " ");
    this.#report.add("syntax", this.#span(from, to), `\`${word}\` has no meaning in a condition`, `write \`${meant}\``);
  }

  /** `a not in list`, as in Python. */
  #notIn(left: Syntax, from: number): Syntax {
    const [not, word] = [this.#peek(), this.#after()];
    const before = this.#textFrom(from);
    this.#next += 2;
    const at = this.#next;
    const right = this.#binary(relationsLevel + 1);
    this.#word(not, word, `!(${before} in ${this.#textFrom(at)})`);
    const operand: Syntax = { kind: "binary", span: this.#between(left, right), operator: "in", left, right };
    return { kind: "unary", span: operand.span, operator: "!", operand };
  }

  /** `not x`, as in Python: it negates the whole comparison after it. */
  #not(token: Token): Syntax {
    this.#next += 1;
    const from = this.#next;
    this.#depth += 1;
    const operand =
      this.#depth > depthMax
        ? this.#broken(token, `nested deeper than ${depthMax} levels`)
        : this.#binary(relationsLevel);
    this.#depth -= 1;
    const text = this.#textFrom(from);
    this.#word(token, token, operand.kind === "binary" && !isBracketed(text) ? `!(${text})` : `!${text}`);
    return { kind: "unary", span: { ...operand.span, from: this.#span(token, token).from }, operator: "!", operand };
  }

  /** The text from a token up to the next unread one, on one line. */
  #textFrom(from: number): string {
    const [first, last] = [this.#tokens[from], this.#tokens[this.#next - 1]];
    return this.#source.text.slice(first?.from, last?.to).replace(/\s+/g, " ");
  }

  #unary(): Syntax {
    const token = this.#peek();
    if (isWord(token, "not") && beginsValue(this.#after())) return this.#not(token);
    if (token.kind !== "punctuation" || (token.text !== "!" && token.text !== "-")) return this.#members();
    this.#next += 1;
    this.#depth += 1;
    const operand =
      this.#depth > depthMax ? this.#broken(token, `nested deeper than ${depthMax} levels`) : this.#unary();
    this.#depth -= 1;
    const span = { ...operand.span, from: this.#span(token, token).from };
    return { kind: "unary", span, operator: token.text, operand };
  }

  #members(): Syntax {
    let value = this.#primary();
    for (;;) {
      const token = this.#peek();
      if (token.kind !== "punctuation") return value;
      if (token.text === "." || token.text === ".?") value = this.#member(value, token.text === ".?");
      else if (token.text === "[" || token.text === "[?") value = this.#index(value, token.text === "[?");
      else if (token.text === "{") value = this.#message(value, token);
      else return value;
    }
  }

  #member(of: Syntax, optional: boolean): Syntax {
    this.#next += 1;
    const token = this.#peek();
    if (token.kind !== "name" || (token.text === "in" && token.quoted !== true))
      return this.#unexpected(token, "a member's name");
    this.#next += 1;
    const nameSpan = this.#span(token, token);
    if (!optional && this.#accept("(")) {
      const args = this.#list(")");
      const span = { ...of.span, to: this.#previousSpan().to };
      return { kind: "call", span, name: token.text, nameSpan, target: of, args };
    }
    return { kind: "member", span: { ...of.span, to: nameSpan.to }, of, name: token.text, nameSpan, optional };
  }

  #index(of: Syntax, optional: boolean): Syntax {
    this.#next += 1;
    const at = this.#expression();
    this.#expect("]", "`]`");
    return { kind: "index", span: { ...of.span, to: this.#previousSpan().to }, of, at, optional };
  }

  #message(of: Syntax, token: Token): Syntax {
    this.#next += 1;
    this.#entries();
    const span = { ...of.span, to: this.#previousSpan().to };
    this.#report.add(
      "left-out",
      this.#span(token, token),
      "messages (`Type{...}`) are not part of the contract language",
    );
    return { kind: "broken", span };
  }

  #primary(): Syntax {
    const token = this.#peek();
    const span = this.#span(token, token);
    if (token.kind === "broken") {
      this.#next += 1;
      return { kind: "broken", span };
    }
    if (token.kind === "literal") {
      this.#next += 1;
      return { kind: "literal", span, value: token.value ?? null };
    }
    if (token.kind === "name") return this.#name(token, span);
    if (this.#accept("(")) {
      const inner = this.#expression();
      this.#expect(")", "`)`");
      return { ...inner, span: { ...span, to: this.#previousSpan().to } };
    }
    if (this.#accept("[")) {
      const items = this.#list("]");
      return { kind: "list", span: { ...span, to: this.#previousSpan().to }, items };
    }
    if (this.#accept("{")) {
      const entries = this.#entries();
      return { kind: "map", span: { ...span, to: this.#previousSpan().to }, entries };
    }
    return this.#unexpected(token, "a value");
  }

  #name(token: Token, span: Span): Syntax {
    if (reserved.has(token.text) || token.text === "in" || token.quoted === true)
      return this.#unexpected(token, "a value");
    this.#next += 1;
    if (!this.#accept("(")) return { kind: "name", span, name: token.text };
    const args = this.#list(")");
    const whole = { ...span, to: this.#previousSpan().to };
    return { kind: "call", span: whole, name: token.text, nameSpan: span, target: undefined, args };
  }

  #list(closing: ")" | "]"): Syntax[] {
    const items: Syntax[] = [];
    while (!this.#accept(closing)) {
      if (items.length > 0 && !this.#expect(",", `\`,\` or \`${closing}\``)) {
        this.#accept(closing);
        break;
      }
      if (items.length > 0 && closing === "]" && this.#accept(closing)) break;
      items.push(this.#expression());
      if (this.#peek().kind === "end") {
        this.#expect(closing, `\`${closing}\``);
        break;
      }
    }
    return items;
  }

  #entries(): (readonly [Syntax, Syntax])[] {
    const entries: (readonly [Syntax, Syntax])[] = [];
    while (!this.#accept("}")) {
      if (entries.length > 0 && !this.#expect(",", "`,` or `}`")) {
        this.#accept("}");
        break;
      }
      if (entries.length > 0 && this.#accept("}")) break;
      const key = this.#expression();
      this.#expect(":", "`:` and a value");
      entries.push([key, this.#expression()]);
      if (this.#peek().kind === "end") {
        this.#expect("}", "`}`");
        break;
      }
    }
    return entries;
  }

  #peek(): Token {
    return this.#tokens[this.#next] as Token;
  }

  /** The token after the next one. */
  #after(): Token {
    return this.#tokens[Math.min(this.#next + 1, this.#tokens.length - 1)] as Token;
  }

  #accept(mark: string): boolean {
    const token = this.#peek();
    if (token.kind !== "punctuation" || token.text !== mark) return false;
    this.#next += 1;
    return true;
  }

  /** Steps over `mark`. If it is missing, reports this and continues after the next one at this nesting level. */
  #expect(mark: string, what: string): boolean {
    if (this.#accept(mark)) return true;
    this.#unexpected(this.#peek(), what);
    return this.#accept(mark);
  }

  /** Reports an unexpected token and skips to a place where an enclosing construct can continue. */
  #unexpected(token: Token, expected: string): Syntax {
    const found = token.kind === "end" ? "the expression ends" : `found \`${token.text}\``;
    const isCoalescing = token.text === "?" && this.#previous()?.text === "?";
    const hint = isCoalescing ? "give a default: `input.?name.orValue(other)`" : hintFor(token, expected);
    const broken = this.#broken(token, `expected ${expected}, ${found}`, hint);
    let nesting = 0;
    for (; this.#peek().kind !== "end"; this.#next += 1) {
      const { text, kind } = this.#peek();
      if (kind !== "punctuation") continue;
      if (nesting === 0 && [")", "]", "}", ",", ":"].includes(text)) break;
      if (["(", "[", "[?", "{"].includes(text)) nesting += 1;
      if ([")", "]", "}"].includes(text)) nesting -= 1;
    }
    return broken;
  }

  #broken(token: Token, message: string, hint?: string): Syntax {
    const span = this.#span(token, token);
    // A second problem at one token follows from the first.
    if (token.kind !== "broken" && token.from !== this.#reportedAt) this.#report.add("syntax", span, message, hint);
    this.#reportedAt = token.from;
    return { kind: "broken", span };
  }

  #span(from: Token, to: Token): Span {
    return spanOf(this.#source, from.from, Math.max(to.to, from.from + 1));
  }

  #between(left: Syntax, right: Syntax): Span {
    return { ...left.span, to: Math.max(left.span.to, right.span.to) };
  }

  #previous(): Token | undefined {
    return this.#tokens[this.#next - 1];
  }

  #previousSpan(): Span {
    const token = this.#tokens[Math.max(0, this.#next - 1)] as Token;
    return this.#span(token, token);
  }
}

function isWord(token: Token, word: string): boolean {
  return token.kind === "name" && token.quoted !== true && token.text.toLowerCase() === word;
}

/** Can a value begin here? Then the name before it is an operator written as a word. */
function beginsValue({ kind, text }: Token): boolean {
  return kind === "literal" || (kind === "name" && text !== "in") || text === "(" || text === "!";
}

/** Does one pair of brackets enclose the whole text? */
function isBracketed(text: string): boolean {
  if (!text.startsWith("(") || !text.endsWith(")")) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charAt(at);
    depth += unit === "(" ? 1 : unit === ")" ? -1 : 0;
    if (depth === 0) return at === text.length - 1;
  }
  return false;
}

function hintFor(token: Token, expected: string): string | undefined {
  const isChoice = token.kind === "name" && ["if", "else", "then"].includes(token.text);
  if (isChoice || expected === otherwise || token.text === ":") return choiceHint;
  const operator = token.kind === "name" ? wordOperators.get(token.text.toLowerCase()) : undefined;
  if (operator !== undefined) return `write \`${operator}\``;
  if (token.kind === "name" && reserved.has(token.text)) return `\`${token.text}\` is a reserved word`;
  if (token.text === ".") return "names begin without a dot";
  if (token.text === "?") return "optional entries of literals are not part of the contract language";
  return token.kind === "name" ? didYouMean(token.text, ["in", "true", "false", "null"], undefined) : undefined;
}
