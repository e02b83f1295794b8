import type { Core } from "../core/core.ts";
import type { Report, Span } from "../text/diagnostic.ts";
import { isExact } from "../value/rational.ts";
import type { BinarySyntax } from "../text/syntax.ts";
import {
  any,
  boolean,
  broken,
  comparable,
  isUntyped,
  join,
  makeListType,
  string,
  typeText,
  type Type,
} from "../value/type.ts";
import { isList, type Value } from "../value/value.ts";

/** The type of an operator's result. Reports operands that the operator does not accept. */
export function binaryType(syntax: BinarySyntax, left: Core, right: Core, report: Report): Type {
  const { operator, span } = syntax;
  const [a, b] = [left.type, right.type];
  if (a.kind === "broken" || b.kind === "broken")
    return ["+", "-", "*", "/", "%"].includes(operator) ? broken : boolean;
  const reportMismatch = (message: string, hint?: string): Type => {
    report.add(
      "type",
      span,
      message,
      hint ??
        untypedHint(left) ??
        untypedHint(right) ??
        nullHint(a) ??
        nullHint(b) ??
        optionalHint(a) ??
        optionalHint(b),
    );
    return broken;
  };
  switch (operator) {
    case "==":
    case "!=":
      return comparable(a, b)
        ? boolean
        : reportMismatch(
            `${typeText(a)} never equals ${typeText(b)}`,
            b.kind === "null" && !["optional", "any"].includes(a.kind)
              ? "a call may lack an optional member: test it with `has(...)`"
              : undefined,
          );
    case "in": {
      if (b.kind === "record")
        return a.kind === "string" || isUntyped(a)
          ? boolean
          : reportMismatch(`${typeText(a)} is never a member's name`);
      if (b.kind === "memory")
        return isKey(a)
          ? boolean
          : reportMismatch(`a counter remembers texts, numbers and booleans, not ${typeText(a)}`);
      if (b.kind !== "list")
        return reportMismatch(
          `\`in\` looks in a list or an object, not in ${typeText(b)}`,
          b.kind === "string" ? "write `text.contains(part)`" : undefined,
        );
      return comparable(a, b.of)
        ? boolean
        : reportMismatch(
            `${typeText(a)} is never in ${typeText(b)}`,
            a.kind === "boolean" ? "to deny the whole test, write `!(a in b)`" : undefined,
          );
    }
    case "<":
    case "<=":
    case ">":
    case ">=":
      return a.kind === b.kind && ordered.includes(a.kind)
        ? boolean
        : reportMismatch(`${typeText(a)} and ${typeText(b)} have no order`, orderHint(a, b));
    default:
      return (
        arithmeticType(operator, a, b) ??
        reportMismatch(`\`${operator}\` does not take ${typeText(a)} and ${typeText(b)}`, arithmeticHint(a, b))
      );
  }
}

function orderHint(a: Type, b: Type): string | undefined {
  if (a.kind === "boolean" && b.kind === "boolean") return "compare them with `==`";
  if (a.kind === "boolean") return "write two comparisons: `a < b && b < c`";
  const isPair = [a.kind, b.kind].toSorted().join() === "number,string";
  return isPair ? "write a number without quotes, and a text or a date in quotes" : undefined;
}

/** May a counter use values of the type in `per`, or remember them? */
export function isKey({ kind }: Type): boolean {
  return kind === "string" || kind === "number" || kind === "boolean";
}

const ordered: readonly Type["kind"][] = ["number", "string", "duration", "timestamp"];

function arithmeticType(operator: string, a: Type, b: Type): Type | undefined {
  if (a.kind === "number" && b.kind === "number") {
    return { kind: "number", notNegative: operator !== "-" && a.notNegative && b.notNegative };
  }
  if (a.kind === "list" && b.kind === "list" && operator === "+") return joinListTypes(a, b);
  const pair = `${a.kind}${operator}${b.kind}`;
  if (pair === "string+string") return a;
  if (pair === "timestamp-timestamp") return { kind: "duration" };
  if (pair === "duration+duration" || pair === "duration-duration") return a;
  if (pair === "timestamp+duration" || pair === "timestamp-duration") return a;
  return pair === "duration+timestamp" ? b : undefined;
}

type ListOperandType = Type & { readonly kind: "list" };

/** The type of two concatenated lists; undefined if their items have no common type. */
function joinListTypes(a: ListOperandType, b: ListOperandType): Type | undefined {
  const of = a.maxItems === 0 ? b.of : b.maxItems === 0 ? a.of : join(a.of, b.of);
  if (of === undefined) return undefined;
  return makeListType(of, a.maxItems === undefined || b.maxItems === undefined ? undefined : a.maxItems + b.maxItems);
}

function arithmeticHint(a: Type, b: Type): string | undefined {
  const times = [a.kind, b.kind].includes("timestamp") && [a.kind, b.kind].includes("number");
  return times ? `convert seconds first: \`timestamp(seconds)\`, or \`duration("10m")\` for a duration` : undefined;
}

export function literalType(value: Value): Type {
  if (value === null) return { kind: "null" };
  if (typeof value === "boolean") return boolean;
  if (typeof value === "string") return string;
  if (isExact(value)) return { kind: "number", notNegative: true };
  return isList(value) ? makeListType(any) : any;
}

export function untypedHint(core: Core): string | undefined {
  if (core.type.kind !== "any") return undefined;
  return "its schema gives no `type`, so only `==`, `in` and `has` may test it: declare the type";
}

function nullHint(type: Type): string | undefined {
  return type.kind === "nullable" ? "it may be null: test `!= null` first" : undefined;
}

function optionalHint(type: Type): string | undefined {
  return type.kind === "optional" ? "give a default: `.orValue(default)`" : undefined;
}

/** The text of the file at a span. */
export function readSpanText(span: Span): string {
  return span.file.text.slice(span.from, span.to);
}

/** The suggested spelling of a member with a default. */
export function defaultText(of: Core, name: string, span: Span): string {
  const isName = /^[A-Za-z_]\w*$/.test(name) && !readSpanText(span).endsWith("]");
  return `${readSpanText(of.span)}${isName ? `.?${name}` : `[?${JSON.stringify(name)}]`}.orValue(...)`;
}
