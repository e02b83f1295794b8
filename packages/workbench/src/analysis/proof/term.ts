import { exactText, type Exact } from "../../../../readers/src/ir.ts";

/** A term of SMT-LIB 2.6, as text. */
export type Term = string;
export type Sort = "Bool" | "Int" | "Real" | "String";

export function and(...parts: readonly Term[]): Term {
  return joinTerms("and", parts, "true", "false");
}

export function or(...parts: readonly Term[]): Term {
  return joinTerms("or", parts, "false", "true");
}

function joinTerms(operator: string, parts: readonly Term[], neutral: Term, decisive: Term): Term {
  const open = new Set(parts);
  open.delete(neutral);
  if (open.has(decisive)) return decisive;
  const [only] = open;
  if (only === undefined) return neutral;
  return open.size === 1 ? only : `(${operator} ${[...open].join(" ")})`;
}

export function not(term: Term): Term {
  if (term === "true") return "false";
  if (term === "false") return "true";
  return term.startsWith("(not ") ? term.slice(5, -1) : `(not ${term})`;
}

export function implies(condition: Term, then: Term): Term {
  return or(not(condition), then);
}

export function choose(condition: Term, yes: Term, no: Term): Term {
  if (condition === "true" || yes === no) return yes;
  if (condition === "false") return no;
  return `(ite ${condition} ${yes} ${no})`;
}

export function equal(left: Term, right: Term): Term {
  if (left === right) return "true";
  if (right === "true") return left;
  if (left === "true") return right;
  if (/^[0-9]$/.test(left) && /^[0-9]$/.test(right)) return "false";
  if (right === "false") return not(left);
  return left === "false" ? not(right) : `(= ${left} ${right})`;
}

export function sum(parts: readonly Term[]): Term {
  const [only] = parts;
  if (only === undefined) return "0";
  return parts.length === 1 ? only : `(+ ${parts.join(" ")})`;
}

/** A number as an exact term of the sort Real. */
export function real(value: Exact): Term {
  const text = exactText(value);
  const size = text.startsWith("-") ? text.slice(1) : text;
  const [numerator = "0", denominator] = size.split("/");
  const whole = (digits: string): string => (digits.includes(".") ? digits : `${digits}.0`);
  const term = denominator === undefined ? whole(numerator) : `(/ ${whole(numerator)} ${whole(denominator)})`;
  return text.startsWith("-") ? `(- ${term})` : term;
}

/** The last code point that the solver's texts support. */
export const characterMax = 0x2ffff;

/** A text as a literal; undefined if it has characters that the solver's texts do not support. */
export function literal(text: string): Term | undefined {
  let written = "";
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code > characterMax) return undefined;
    const isPlain = code >= 0x20 && code < 0x7f && character !== '"' && character !== "\\";
    written += isPlain ? character : `\\u{${code.toString(16)}}`;
  }
  return `"${written}"`;
}
