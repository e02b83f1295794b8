import { untypedHint, type Checker } from "./checker.ts";
import type { Core } from "../core/core.ts";
import type { Report } from "../text/diagnostic.ts";
import { intersect, nullFacts, pathOf, same, type TypedCore, type Facts } from "./facts.ts";
import { isExact, negate as negateExact } from "../value/rational.ts";
import type { BinarySyntax, Syntax } from "../text/syntax.ts";
import { boolean, broken, comparable, isKey, isUntyped, join, listType, number, typeText } from "../value/type.ts";
import type { ListType, Type } from "../value/type.ts";

/** Checks an operator between two operands: `+ - * / %`, comparisons, `in`, `&&` and `||`. */
export function checkBinary(checker: Checker, syntax: BinarySyntax, facts: Facts): TypedCore {
  const { operator, span } = syntax;
  if (operator === "&&" || operator === "||") return checkLogic(checker, syntax, facts);
  const left = checker.check(syntax.left, facts).core;
  const right = checker.check(syntax.right, facts).core;
  const type = binaryType(syntax, left, right, checker.scope.report);
  const core: Core = { op: "binary", operator, left, right, type, span };
  if (operator === "==" || operator === "!=") return nullFacts(core, operator, [left, right], facts);
  const key = operator === "in" && left.op === "constant" && typeof left.value === "string" ? left.value : undefined;
  const path = key === undefined || right.type.kind !== "record" ? undefined : pathOf(right, key);
  return path === undefined ? same(core, facts) : { core, whenTrue: new Set([...facts, path]), whenFalse: facts };
}

/** The type of an operator's result. Reports operands that the operator does not accept. */
function binaryType(syntax: BinarySyntax, left: Core, right: Core, report: Report): Type {
  const { operator, span } = syntax;
  const [a, b] = [left.type, right.type];
  if (a.kind === "broken" || b.kind === "broken")
    return ["+", "-", "*", "/", "%"].includes(operator) ? broken : boolean;
  const reportMismatch = (message: string, hint?: string): Type => {
    const hints = [untypedHint, nullHint, optionalHint].flatMap((hintOf) => [hintOf(left), hintOf(right)]);
    report.add("type", span, message, hint ?? hints.find((found) => found !== undefined));
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

/** The type of two concatenated lists; undefined if their items have no common type. */
function joinListTypes(a: ListType, b: ListType): Type | undefined {
  const of = a.maxItems === 0 ? b.of : b.maxItems === 0 ? a.of : join(a.of, b.of);
  if (of === undefined) return undefined;
  return listType(of, a.maxItems === undefined || b.maxItems === undefined ? undefined : a.maxItems + b.maxItems);
}

function arithmeticHint(a: Type, b: Type): string | undefined {
  const times = [a.kind, b.kind].includes("timestamp") && [a.kind, b.kind].includes("number");
  return times ? `convert seconds first: \`timestamp(seconds)\`, or \`duration("10m")\` for a duration` : undefined;
}

function nullHint({ type }: Core): string | undefined {
  return type.kind === "nullable" ? "it may be null: test `!= null` first" : undefined;
}

function optionalHint({ type }: Core): string | undefined {
  return type.kind === "optional" ? "give a default: `.orValue(default)`" : undefined;
}

function checkLogic(checker: Checker, syntax: BinarySyntax, facts: Facts): TypedCore {
  const and = syntax.operator === "&&";
  const left = checker.check(syntax.left, facts);
  const right = checker.check(syntax.right, and ? left.whenTrue : left.whenFalse);
  for (const { core } of [left, right]) checker.demand(core, "boolean", `each side of \`${syntax.operator}\``);
  const core: Core = { op: and ? "and" : "or", left: left.core, right: right.core, type: boolean, span: syntax.span };
  return and
    ? { core, whenTrue: right.whenTrue, whenFalse: intersect(left.whenFalse, right.whenFalse) }
    : { core, whenTrue: intersect(left.whenTrue, right.whenTrue), whenFalse: right.whenFalse };
}

export function checkConditional(checker: Checker, syntax: Syntax & { kind: "conditional" }, facts: Facts): TypedCore {
  const test = checker.check(syntax.test, facts);
  checker.demand(test.core, "boolean", "the condition before `?`");
  const yes = checker.check(syntax.yes, test.whenTrue);
  const no = checker.check(syntax.no, test.whenFalse);
  const type = join(yes.core.type, no.core.type);
  if (type === undefined) {
    return checker.refuse(
      { span: syntax.span, facts },
      "type",
      `the two outcomes differ: ${typeText(yes.core.type)} and ${typeText(no.core.type)}`,
    );
  }
  const core: Core = { op: "conditional", test: test.core, yes: yes.core, no: no.core, type, span: syntax.span };
  return {
    core,
    whenTrue: intersect(yes.whenTrue, no.whenTrue),
    whenFalse: intersect(yes.whenFalse, no.whenFalse),
  };
}

export function checkUnary(checker: Checker, syntax: Syntax & { kind: "unary" }, facts: Facts): TypedCore {
  const { core, whenTrue, whenFalse } = checker.check(syntax.operand, facts);
  const { span } = syntax;
  if (syntax.operator === "!") {
    checker.demand(core, "boolean", "the operand of `!`");
    return { core: { op: "not", of: core, type: boolean, span }, whenTrue: whenFalse, whenFalse: whenTrue };
  }
  if (core.op === "constant" && isExact(core.value)) {
    return same({ op: "constant", value: negateExact(core.value), type: number, span }, facts);
  }
  if (core.type.kind === "duration") return same({ op: "negate", of: core, type: core.type, span }, facts);
  const type = checker.demand(core, "number", "the operand of `-`") ? number : broken;
  return same({ op: "negate", of: core, type, span }, facts);
}
