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
    if (from.kind === "end") return this.#reportBroken(from, "an expression is missing");
    const expression = this.#expression();
    if (this.#peek().kind !== "end") this.#reportUnexpected(this.#peek(), "the end of the expression");
    return expression;
  }

  #expression(): Syntax {
    const isTooDeep = this.#depth >= depthMax;
    const found = this.#readNested(this.#peek(), () => this.#conditional(), "name its parts with `let:`");
    if (isTooDeep) this.#next = this.#tokens.length - 1;
    return found;
  }

  /** Reads a part that is nested in the expression, at a token. */
  #readNested(token: Token, read: () => Syntax, hint?: string): Syntax {
    if (this.#depth >= depthMax) return this.#reportBroken(token, `nested deeper than ${depthMax} levels`, hint);
    this.#depth += 1;
    const found = read();
    this.#depth -= 1;
    return found;
  }

  #conditional(): Syntax {
    const test = this.#binary(0);
    if (!this.#accept("?")) return test;
    if (this.#peek().text === "?") return this.#reportUnexpected(this.#peek(), "a value");
    const yes = this.#binary(0);
    this.#expect(":", otherwise);
    const no = this.#expression();
    return { kind: "conditional", span: between(test, no), test, yes, no };
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
      const { operator, last, isWritten } = operatorAt(token, this.#after());
      if (!operators.includes(operator) || token.kind === "literal" || token.quoted === true) return left;
      this.#next += last === token ? 1 : 2;
      if (isWritten) this.#word(token, last, operator);
      const right = this.#binary(level + 1);
      left = { kind: "binary", span: between(left, right), operator: operator as BinaryOperator, left, right };
    }
  }

  /** Reports an operator that is written as a word, and continues as if the right one had been written. */
  #word(from: Token, to: Token, meant: string): void {
    const word = oneLine(this.#source, from, to);
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
    const operand: Syntax = { kind: "binary", span: between(left, right), operator: "in", left, right };
    return { kind: "unary", span: operand.span, operator: "!", operand };
  }

  /** The text from a token up to the next unread one, on one line. */
  #textFrom(from: number): string {
    return oneLine(this.#source, this.#tokens[from], this.#tokens[this.#next - 1]);
  }

  #unary(): Syntax {
    const token = this.#peek();
    // `not x`, as in Python: it negates the whole comparison after it.
    const isNot = isWord(token, "not") && startsValue(this.#after());
    if (!isNot && !(token.kind === "punctuation" && (token.text === "!" || token.text === "-"))) return this.#members();
    this.#next += 1;
    const from = this.#next;
    const operand = this.#readNested(token, () => (isNot ? this.#binary(relationsLevel) : this.#unary()));
    const operator = token.text === "-" ? "-" : "!";
    if (isNot) {
      const text = this.#textFrom(from);
      this.#word(token, token, operand.kind === "binary" && !isBracketed(text) ? `!(${text})` : `!${text}`);
    }
    return { kind: "unary", span: { ...operand.span, from: this.#span(token).from }, operator, operand };
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
      return this.#reportUnexpected(token, "a member's name");
    this.#next += 1;
    if (!optional && this.#accept("(")) return this.#call(token, of);
    return { kind: "member", span: this.#upTo(of.span), of, name: token.text, nameSpan: this.#span(token), optional };
  }

  #call(name: Token, target?: Syntax): Syntax {
    const args = this.#items(")", () => this.#expression());
    const nameSpan = this.#span(name);
    return { kind: "call", span: this.#upTo(target?.span ?? nameSpan), name: name.text, nameSpan, target, args };
  }

  #index(of: Syntax, optional: boolean): Syntax {
    this.#next += 1;
    const at = this.#expression();
    this.#expect("]", "`]`");
    return { kind: "index", span: this.#upTo(of.span), of, at, optional };
  }

  #message(of: Syntax, token: Token): Syntax {
    this.#next += 1;
    this.#items("}", () => this.#entry());
    this.#report.add("left-out", this.#span(token), "messages (`Type{...}`) are not part of the contract language");
    return { kind: "broken", span: this.#upTo(of.span) };
  }

  #primary(): Syntax {
    const token = this.#peek();
    const span = this.#span(token);
    if (token.kind === "broken" || token.kind === "literal") {
      this.#next += 1;
      return token.kind === "broken" ? { kind: "broken", span } : { kind: "literal", span, value: token.value ?? null };
    }
    if (token.kind === "name" && token.quoted !== true && token.text !== "in" && !reserved.has(token.text)) {
      this.#next += 1;
      return this.#accept("(") ? this.#call(token) : { kind: "name", span, name: token.text };
    }
    if (this.#accept("(")) {
      const inner = this.#expression();
      this.#expect(")", "`)`");
      return { ...inner, span: this.#upTo(span) };
    }
    if (this.#accept("[")) {
      const items = this.#items("]", () => this.#expression());
      return { kind: "list", span: this.#upTo(span), items };
    }
    if (this.#accept("{")) {
      const entries = this.#items("}", () => this.#entry());
      return { kind: "map", span: this.#upTo(span), entries };
    }
    return this.#reportUnexpected(token, "a value");
  }

  #entry(): readonly [Syntax, Syntax] {
    const key = this.#expression();
    this.#expect(":", "`:` and a value");
    return [key, this.#expression()];
  }

  /** Items between commas, up to the closing mark. A comma may follow the last one, but not that of a call's arguments. */
  #items<Item>(closing: ")" | "]" | "}", read: () => Item): Item[] {
    const items: Item[] = [];
    while (!this.#accept(closing)) {
      if (items.length > 0 && !this.#expect(",", `\`,\` or \`${closing}\``)) {
        this.#accept(closing);
        break;
      }
      if (items.length > 0 && closing !== ")" && this.#accept(closing)) break;
      items.push(read());
      if (this.#peek().kind === "end") {
        this.#expect(closing, `\`${closing}\``);
        break;
      }
    }
    return items;
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
    this.#reportUnexpected(this.#peek(), what);
    return this.#accept(mark);
  }

  /** Reports an unexpected token and skips to a token where an enclosing construct can continue. */
  #reportUnexpected(token: Token, expected: string): Syntax {
    const found = token.kind === "end" ? "the expression ends" : `found \`${token.text}\``;
    const hint = hintFor(token, expected, this.#tokens[this.#next - 1]);
    const broken = this.#reportBroken(token, `expected ${expected}, ${found}`, hint);
    this.#next = endOfPart(this.#tokens, this.#next);
    return broken;
  }

  #reportBroken(token: Token, message: string, hint?: string): Syntax {
    const span = this.#span(token);
    // A second problem at one token follows from the first.
    if (token.kind !== "broken" && token.from !== this.#reportedAt) this.#report.add("syntax", span, message, hint);
    this.#reportedAt = token.from;
    return { kind: "broken", span };
  }

  #span(from: Token, to: Token = from): Span {
    return spanOf(this.#source, from.from, Math.max(to.to, from.from + 1));
  }

  /** The span from the start of another one to the end of the last token that was read. */
  #upTo(from: Span): Span {
    return { ...from, to: this.#span(this.#tokens[Math.max(0, this.#next - 1)] as Token).to };
  }
}

/** The operator at a token, also one that is written as a word, and its last token. */
function operatorAt(
  token: Token,
  after: Token,
): { readonly operator: string; readonly last: Token; readonly isWritten: boolean } {
  const meant = token.kind === "name" ? wordOperators.get(token.text.toLowerCase()) : undefined;
  if (meant === "==" && isWord(after, "not")) return { operator: "!=", last: after, isWritten: true };
  return { operator: meant ?? token.text, last: token, isWritten: meant !== undefined };
}

/** The text from one token to another, on one line. */
function oneLine({ text }: ExpressionText, from: Token | undefined, to: Token | undefined): string {
  return text.slice(from?.from, to?.to).replace(/\s+/g, " ");
}

function between(left: Syntax, right: Syntax): Span {
  return { ...left.span, to: Math.max(left.span.to, right.span.to) };
}

/** The index of the next token at this nesting level at which an enclosing construct can continue. */
function endOfPart(tokens: readonly Token[], from: number): number {
  let nesting = 0;
  for (let at = from; at < tokens.length - 1; at += 1) {
    const { text, kind } = tokens[at] as Token;
    if (kind !== "punctuation") continue;
    if (nesting === 0 && [")", "]", "}", ",", ":"].includes(text)) return at;
    if (["(", "[", "[?", "{"].includes(text)) nesting += 1;
    if ([")", "]", "}"].includes(text)) nesting -= 1;
  }
  return tokens.length - 1;
}

function isWord(token: Token, word: string): boolean {
  return token.kind === "name" && token.quoted !== true && token.text.toLowerCase() === word;
}

/** Can a value start here? Then the name before it is an operator written as a word. */
function startsValue({ kind, text }: Token): boolean {
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

function hintFor(token: Token, expected: string, before: Token | undefined): string | undefined {
  if (token.text === "?" && before?.text === "?") return "give a default: `input.?name.orValue(other)`";
  const isChoice = token.kind === "name" && ["if", "else", "then"].includes(token.text);
  if (isChoice || expected === otherwise || token.text === ":") return choiceHint;
  const operator = token.kind === "name" ? wordOperators.get(token.text.toLowerCase()) : undefined;
  if (operator !== undefined) return `write \`${operator}\``;
  if (token.kind === "name" && reserved.has(token.text)) return `\`${token.text}\` is a reserved word`;
  if (token.text === ".") return "names start without a dot";
  if (token.text === "?") return "optional entries of literals are not part of the contract language";
  return token.kind === "name" ? didYouMean(token.text, ["in", "true", "false", "null"], undefined) : undefined;
}
