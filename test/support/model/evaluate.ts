import type { Expression, Operator } from "./language.ts";
import {
  add,
  CannotEvaluate,
  compare,
  divide,
  fromInteger,
  fromText,
  isWhole,
  multiply,
  remainder,
  subtract,
  type Fraction,
} from "./number.ts";
import { compareTexts, equal, memberOf, type Value } from "./value.ts";
import { durationSeconds, momentSeconds } from "./window.ts";

/** Everything that an expression may read. */
export interface Surroundings {
  readonly input: Value;
  readonly platform: Value | undefined;
  readonly session: boolean;
  readonly tool: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  limit(name: string): Value;
  counter(name: string): Fraction;
  /** Whether the counter remembers the value. */
  recalls(counter: string, value: Value): boolean;
  /** The meaning of a name: an expression that replaces it, or a value. */
  readonly names: readonly (readonly [string, Expression | { readonly bound: Value }])[];
}

/** Walks the expression. @throws {CannotEvaluate} */
export function evaluate(expression: Expression, around: Surroundings): Value {
  switch (expression.kind) {
    case "number":
      return number(fromText(expression.text));
    case "text":
      return { type: "text", value: expression.value };
    case "boolean":
      return truth(expression.value);
    case "null":
      return { type: "null" };
    case "list":
      return { type: "list", items: expression.items.map((item) => evaluate(item, around)) };
    case "map":
      return { type: "map", entries: expression.entries.map(([key, item]) => [key, evaluate(item, around)] as const) };
    case "root":
      return root(expression.name, around);
    case "limit":
      return around.limit(expression.name);
    case "counter":
      return number(around.counter(expression.name));
    case "asked":
      return truth(around.recalls(expression.counter, evaluate(expression.value, around)));
    case "name":
      return named(expression.name, around);
    case "member": {
      const found = memberOf(evaluate(expression.of, around), expression.name);
      if (found === undefined) throw new CannotEvaluate(`no member ${expression.name}`);
      return found;
    }
    case "default": {
      let found: Value | undefined = evaluate(expression.of, around);
      for (const name of expression.path) found = found === undefined ? undefined : memberOf(found, name);
      return found ?? evaluate(expression.otherwise, around);
    }
    case "has":
      return truth(memberOf(evaluate(expression.of, around), expression.name) !== undefined);
    case "index":
      return at(evaluate(expression.of, around), evaluate(expression.at, around));
    case "not":
      return truth(!isTrue(evaluate(expression.of, around)));
    case "minus":
      return number(subtract(fromInteger(0), asNumber(evaluate(expression.of, around))));
    case "choice":
      return evaluate(isTrue(evaluate(expression.condition, around)) ? expression.yes : expression.no, around);
    case "binary":
      return binary(expression.operator, expression.left, expression.right, around);
    case "fold":
      return fold(expression, around);
    case "call":
      return call(expression, around);
    case "duration":
      return { type: "duration", value: durationSeconds(expression.text) };
    default:
      return { type: "moment", value: momentSeconds(expression.text) };
  }
}

export function isMet(expression: Expression, around: Surroundings): boolean {
  return isTrue(evaluate(expression, around));
}

function number(value: Fraction): Value {
  return { type: "number", value };
}

function truth(value: boolean): Value {
  return { type: "boolean", value };
}

function isTrue(value: Value): boolean {
  if (value.type !== "boolean") throw new Error(`a condition that is a ${value.type}`);
  return value.value;
}

export function asNumber(value: Value): Fraction {
  if (value.type !== "number") throw new Error(`arithmetic with a ${value.type}`);
  return value.value;
}

function root(name: string, around: Surroundings): Value {
  if (name === "input") return around.input;
  if (name === "tool") return { type: "text", value: around.tool };
  if (name === "platform.present") return truth(around.platform !== undefined);
  if (name === "session.present") return truth(around.session);
  if (name === "now") return { type: "moment", value: divide(fromInteger(around.now), fromInteger(1000)) };
  if (around.platform === undefined) throw new CannotEvaluate("the check has no facts");
  return around.platform;
}

function named(name: string, around: Surroundings): Value {
  const found = around.names.findLast(([each]) => each === name)?.[1];
  if (found === undefined) throw new Error(`no name ${name}`);
  return "bound" in found ? found.bound : evaluate(found, around);
}

function at(value: Value, index: Value): Value {
  if (value.type === "list" && index.type === "number") {
    const found = isWhole(index.value) && index.value.n >= 0n ? value.items[Number(index.value.n)] : undefined;
    if (found === undefined) throw new CannotEvaluate("no such place in the list");
    return found;
  }
  const found = index.type === "text" ? memberOf(value, index.value) : undefined;
  if (found === undefined) throw new CannotEvaluate("no such key in the map");
  return found;
}

function binary(operator: Operator, left: Expression, right: Expression, around: Surroundings): Value {
  const a = evaluate(left, around);
  if (operator === "&&") return isTrue(a) ? truth(isTrue(evaluate(right, around))) : a;
  if (operator === "||") return isTrue(a) ? a : truth(isTrue(evaluate(right, around)));
  const b = evaluate(right, around);
  switch (operator) {
    case "==":
      return truth(equal(a, b));
    case "!=":
      return truth(!equal(a, b));
    case "in":
      return truth(isIn(a, b));
    case "<":
      return truth(order(a, b) < 0);
    case "<=":
      return truth(order(a, b) <= 0);
    case ">":
      return truth(order(a, b) > 0);
    case ">=":
      return truth(order(a, b) >= 0);
    case "*":
      return number(multiply(asNumber(a), asNumber(b)));
    case "/":
      return number(divide(asNumber(a), asNumber(b)));
    case "%":
      return number(remainder(asNumber(a), asNumber(b)));
    case "+":
      return plus(a, b);
    default:
      return minus(a, b);
  }
}

function isIn(item: Value, container: Value): boolean {
  if (container.type === "list") return container.items.some((each) => equal(each, item));
  return item.type === "text" && memberOf(container, item.value) !== undefined;
}

function order(a: Value, b: Value): number {
  if (a.type === "text" && b.type === "text") return compareTexts(a.value, b.value);
  if (a.type === "boolean" && b.type === "boolean") return Number(a.value) - Number(b.value);
  const measured = a.type === "number" || a.type === "duration" || a.type === "moment" ? a : undefined;
  if (measured === undefined || b.type !== measured.type) throw new Error(`${a.type} compared with ${b.type}`);
  return compare(measured.value, b.value);
}

function plus(a: Value, b: Value): Value {
  if (a.type === "text" && b.type === "text") return { type: "text", value: a.value + b.value };
  if (a.type === "list" && b.type === "list") return { type: "list", items: [...a.items, ...b.items] };
  if (a.type === "moment" && b.type === "duration") return { type: "moment", value: add(a.value, b.value) };
  if (a.type === "duration" && b.type === "duration") return { type: "duration", value: add(a.value, b.value) };
  return number(add(asNumber(a), asNumber(b)));
}

function minus(a: Value, b: Value): Value {
  if (a.type === "moment" && b.type === "moment") return { type: "duration", value: subtract(a.value, b.value) };
  if (a.type === "moment" && b.type === "duration") return { type: "moment", value: subtract(a.value, b.value) };
  if (a.type === "duration" && b.type === "duration") return { type: "duration", value: subtract(a.value, b.value) };
  return number(subtract(asNumber(a), asNumber(b)));
}

/** Evaluates the items in order. `exists` and `all` stop as `||` and `&&` do; the others visit every item. */
function fold(expression: Extract<Expression, { kind: "fold" }>, around: Surroundings): Value {
  const over = evaluate(expression.over, around);
  const items =
    over.type === "list"
      ? over.items
      : over.type === "map"
        ? over.entries.map(([key]): Value => ({ type: "text", value: key }))
        : [];
  const found: Value[] = [];
  for (const item of items) {
    const names = [...around.names, [expression.variable, { bound: item }] as const];
    const result = evaluate(expression.body, { ...around, names });
    if (expression.macro === "map") found.push(result);
    else if (isTrue(result)) {
      if (expression.macro === "exists") return truth(true);
      found.push(item);
    } else if (expression.macro === "all") return truth(false);
  }
  if (expression.macro === "exists") return truth(false);
  if (expression.macro === "all") return truth(true);
  if (expression.macro === "exists_one") return truth(found.length === 1);
  return { type: "list", items: found };
}

function call({ name, of, argument }: Extract<Expression, { kind: "call" }>, around: Surroundings): Value {
  const value = evaluate(of, around);
  if (name === "size") {
    if (value.type === "list") return number(fromInteger(value.items.length));
    if (value.type === "map") return number(fromInteger(value.entries.length));
    return number(fromInteger(Array.from(asText(value)).length));
  }
  if (name === "lowerAscii") {
    const lowered = asText(value).replaceAll(/[A-Z]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) + 32));
    return { type: "text", value: lowered };
  }
  if (argument === undefined) throw new Error(`${name} without an argument`);
  const other = asText(evaluate(argument, around));
  if (name === "startsWith") return truth(asText(value).startsWith(other));
  if (name === "endsWith") return truth(asText(value).endsWith(other));
  return truth(asText(value).includes(other));
}

function asText(value: Value): string {
  if (value.type !== "text") throw new Error(`text expected, not a ${value.type}`);
  return value.value;
}
