import { decimalText } from "../../../../core/src/wire/mod.ts";
import { objectText } from "./call.ts";
import { tags, type SymbolicValue } from "./symbolic-value.ts";
import type { Term } from "./term.ts";

/** A fraction, as the solver writes numbers. */
export interface Ratio {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

export type ModelValue = boolean | string | Ratio;

/** The solver's value for each constant. Values that JSON cannot represent, such as roots, are left out. */
export type Model = ReadonlyMap<Term, ModelValue>;

type SExpression = string | readonly SExpression[];

export function readModel(text: string): Model {
  const [pairs = []] = readExpressions(text);
  const found = new Map<Term, ModelValue>();
  for (const pair of typeof pairs === "string" ? [] : pairs) {
    const [name, written] = typeof pair === "string" ? [] : pair;
    const value = written === undefined ? undefined : parseModelValue(written);
    if (typeof name === "string" && value !== undefined) found.set(name, value);
  }
  return found;
}

function readExpressions(text: string): readonly SExpression[] {
  const tokens = text.match(/"(?:[^"]|"")*"|[()]|[^\s()"]+/g) ?? [];
  const stack: SExpression[][] = [[]];
  for (const token of tokens) {
    if (token === "(") stack.push([]);
    else if (token !== ")") stack.at(-1)?.push(token);
    else {
      const closed = stack.pop() ?? [];
      stack.at(-1)?.push(closed);
    }
  }
  return stack[0] ?? [];
}

function parseModelValue(written: SExpression): ModelValue | undefined {
  if (written === "true" || written === "false") return written === "true";
  if (typeof written === "string" && written.startsWith('"')) return parseStringLiteral(written);
  return ratioOf(written);
}

function parseStringLiteral(written: string): string {
  return written
    .slice(1, -1)
    .replaceAll('""', '"')
    .replace(/\\u\{([0-9a-fA-F]+)\}/g, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)));
}

function ratioOf(written: SExpression): Ratio | undefined {
  if (typeof written === "string") {
    if (!/^[0-9]+(?:\.[0-9]+)?$/.test(written)) return undefined;
    const [whole = "", fraction = ""] = written.split(".");
    return { numerator: BigInt(whole + fraction), denominator: 10n ** BigInt(fraction.length) };
  }
  const [operator, first, second] = written;
  const a = first === undefined ? undefined : ratioOf(first);
  if (operator === "-" && second === undefined && a !== undefined) return { ...a, numerator: -a.numerator };
  const b = second === undefined ? undefined : ratioOf(second);
  if (operator !== "/" || a === undefined || b === undefined) return undefined;
  return { numerator: a.numerator * b.denominator, denominator: a.denominator * b.numerator };
}

/** Digits after the point of a number that is not equal to any decimal. */
const symbols = 12;

/** The number as JSON writes it; rounded if no decimal is equal to it. */
export function decimalOf({ numerator, denominator }: Ratio): string {
  for (let at = 0; at <= 40; at += 1) {
    const scaled = numerator * 10n ** BigInt(at);
    if (scaled % denominator === 0n) return decimalText(scaled / denominator, -at);
  }
  return decimalText((numerator * 10n ** BigInt(symbols)) / denominator, -symbols);
}

/** Can JSON represent the value exactly? */
export function isDecimal(value: ModelValue | undefined): boolean {
  if (typeof value !== "object") return value !== undefined;
  return (10n ** 40n * value.numerator) % value.denominator === 0n;
}

/** The value of a symbol, as JSON text. Parts that the question did not ask about are as small as possible. */
export function jsonAt(symbol: SymbolicValue, model: Model): string {
  const part = (name: string): ModelValue | undefined => model.get(symbol.parts.get(name) ?? "");
  const tag = part("tag");
  const kind = typeof tag === "object" ? Number(tag.numerator) : tagOfParts(symbol);
  switch (kind) {
    case tags.boolean:
      return String(part("boolean") === true);
    case tags.number: {
      const number = part("number");
      return typeof number === "object" ? decimalOf(number) : "0";
    }
    case tags.text:
      return JSON.stringify(part("text") ?? "");
    case tags.list:
      return listAt(symbol, model, count(part("length")));
    case tags.object:
      return objectAt(symbol, model);
    default:
      return "null";
  }
}

/** Longer lists are not written: a body could not contain them. */
const longest = 2000;

/** The known items, those with their own index, and copies of the first item up to the length. */
function listAt(symbol: SymbolicValue, model: Model, length: number): string {
  const { numbered } = symbol;
  const free = symbol.items.filter((item) => ![...numbered.values()].includes(item)).map((item) => jsonAt(item, model));
  const texts = symbol.view === "few" ? free : [...new Set(free)];
  const [first = "null"] = [...texts, ...[...numbered.values()].map((item) => jsonAt(item, model))];
  const items = Array.from({ length: Math.min(length, longest) }, (_, at): string => {
    const own = numbered.get(at);
    return own === undefined ? (texts.shift() ?? first) : jsonAt(own, model);
  });
  return `[${items.join(", ")}]`;
}

function count(length: ModelValue | undefined): number {
  return typeof length === "object" ? Number(length.numerator) : 0;
}

function objectAt(symbol: SymbolicValue, model: Model): string {
  const members = [...symbol.members].filter(([, { present }]) => model.get(present) === true);
  const texts = members.map(([name, member]): [string, string] => [name, jsonAt(member.symbol, model)]);
  if (model.get(symbol.parts.get("others") ?? "") === true) texts.push([freshName(symbol), "0"]);
  return objectText(texts);
}

function freshName(symbol: SymbolicValue): string {
  let name = "other";
  while (symbol.members.has(name)) name += "_";
  return name;
}

/** The kind of a value whose kind was not queried: derived from the way in which its parts were read. */
function tagOfParts({ parts, members }: SymbolicValue): number {
  if (members.size > 0) return tags.object;
  if (parts.has("text")) return tags.text;
  if (parts.has("number")) return tags.number;
  if (parts.has("length")) return tags.list;
  return parts.has("boolean") ? tags.boolean : tags.null;
}
