import type { Value } from "../../../../readers/src/contract.ts";
import { compare, divide, isExact, isList, walk, type Core } from "../../../../readers/src/ir.ts";
import { constantForm, minus, toExactNumber, plus, termForm, times, type Linear } from "./linear.ts";
import { constant, not, rebuild, simplify, substitute } from "./rewrite.ts";
import { keyOf } from "./key.ts";

/** A condition as statements that are true or false, joined by "all" and "any". */
export type Formula =
  | { readonly kind: "all"; readonly parts: readonly Formula[] }
  | { readonly kind: "any"; readonly parts: readonly Formula[] }
  | Literal;

export type Literal =
  /** `form >= 0`, or `form > 0` if strict. */
  | { readonly kind: "at-least"; readonly form: Linear; readonly strict: boolean }
  | { readonly kind: "zero" | "nonzero"; readonly form: Linear }
  /** A text, null, boolean or anything else that is, or is not, one of some values. */
  | Choice
  /** Any other statement that is true or false. */
  | Test;

export interface Choice {
  readonly kind: "choice";
  readonly core: Core;
  readonly values: readonly Value[];
  readonly positive: boolean;
}

export interface Test {
  readonly kind: "test";
  readonly core: Core;
  readonly key: string;
  readonly positive: boolean;
}

export const always: Formula = { kind: "all", parts: [] };
export const never: Formula = { kind: "any", parts: [] };

/** The formula for a condition that is true, or for one that is false. */
export function formulaOf(core: Core, positive = true): Formula {
  const known = positive ? whenTrue : whenFalse;
  return known.getOrInsertComputed(core, () => translate(simplify(substitute(core, switchOf)), positive));
}

/** One condition is part of many questions. */
const whenTrue = new WeakMap<Core, Formula>();
const whenFalse = new WeakMap<Core, Formula>();

/**
 * A limit that is true, false or an empty list is a switch: rules that it turns off today are not reported as useless.
 */
function switchOf(core: Core): Core | undefined {
  if (core.op !== "constant" || !(typeof core.value === "boolean" || (isList(core.value) && core.value.length === 0)))
    return undefined;
  const { file, from, to } = core.span;
  const name = file.text.slice(from, to);
  if (!name.startsWith("limits.")) return undefined;
  const of: Core = { op: "root", root: "tool", type: { kind: "string" }, span: core.span };
  return { op: typeof core.value === "boolean" ? "has" : "member", of, name, type: core.type, span: core.span };
}

export function all(...parts: readonly Formula[]): Formula {
  return { kind: "all", parts };
}

function translate(core: Core, positive: boolean): Formula {
  switch (core.op) {
    case "constant":
      return (core.value === true) === positive ? always : never;
    case "not":
      return translate(core.of, !positive);
    case "and":
    case "or":
      return {
        kind: (core.op === "and") === positive ? "all" : "any",
        parts: [translate(core.left, positive), translate(core.right, positive)],
      };
    case "conditional":
      return split(core.test, translate(core.yes, positive), translate(core.no, positive));
    case "binary":
      return translateBinary(core, positive);
    case "fold":
      return core.macro === "all" && core.test !== undefined
        ? test({ ...core, macro: "exists", test: simplify(not(core.test)) }, !positive)
        : test(core, positive);
    default:
      return test(core, positive);
  }
}

function split(condition: Core, yes: Formula, no: Formula): Formula {
  return {
    kind: "any",
    parts: [all(translate(condition, true), yes), all(translate(condition, false), no)],
  };
}

function test(core: Core, positive: boolean): Formula {
  const lifted = lift(core);
  if (lifted !== undefined) return split(lifted.test, translate(lifted.yes, positive), translate(lifted.no, positive));
  return { kind: "test", core, key: keyOf(core), positive };
}

/**
 * Each conditional doubles the formula of the expression around it. Beyond this number they stay inside, as unknown
 * tests.
 */
const liftedMax = 5;

/** Moves a conditional inside an expression to its outside; undefined if there is none, or if there are too many. */
function lift(core: Core): { readonly test: Core; readonly yes: Core; readonly no: Core } | undefined {
  if (core.op === "conditional") return undefined;
  const inner = firstConditional(core);
  if (inner === undefined || [...walk(core)].filter(({ op }) => op === "conditional").length > liftedMax)
    return undefined;
  const put = (branch: Core): Core => simplify(substitute(core, (part) => (part === inner ? branch : undefined)));
  return { test: inner.test, yes: put(inner.yes), no: put(inner.no) };
}

function firstConditional(core: Core): (Core & { op: "conditional" }) | undefined {
  if (core.op === "conditional") return core;
  if (core.op === "fold") return firstConditional(core.range);
  let found: (Core & { op: "conditional" }) | undefined;
  rebuild(core, (part) => {
    found ??= firstConditional(part);
    return part;
  });
  return found;
}

function translateBinary(core: Core & { op: "binary" }, positive: boolean): Formula {
  const lifted = lift(core);
  if (lifted !== undefined) return split(lifted.test, translate(lifted.yes, positive), translate(lifted.no, positive));
  switch (core.operator) {
    case "==":
    case "!=":
      return translateEquality(core, (core.operator === "==") === positive);
    case "in":
      return translateMembership(core, positive);
    case "<":
    case "<=":
    case ">":
    case ">=":
      return translateOrder(core, positive);
    default:
      return test(core, positive);
  }
}

function translateEquality({ left, right, ...rest }: Core & { op: "binary" }, positive: boolean): Formula {
  if (isNumeric(left) && isNumeric(right))
    return { kind: positive ? "zero" : "nonzero", form: minus(linearOf(left), linearOf(right)) };
  const [value, other] = left.op === "constant" ? [left, right] : [right, left];
  if (value.op === "constant") {
    if (typeof value.value === "boolean") return translate(other, value.value === positive);
    if (isExact(value.value) && isNumeric(other))
      return { kind: positive ? "zero" : "nonzero", form: minus(linearOf(other), linearOf(value)) };
    return { kind: "choice", core: other, values: [value.value], positive };
  }
  if (left.type.kind === "boolean" && right.type.kind === "boolean" && [left, right].every(isSimple))
    return split(left, translate(right, positive), translate(right, !positive));
  return test({ ...rest, left, right, operator: "==" }, positive);
}

/** "Both or neither" contains it twice, so only a simple formula may be used: the size must not double repeatedly. */
function isSimple(core: Core): boolean {
  return ![...walk(core)].some(
    (part) =>
      part.op === "conditional" ||
      (part.op === "binary" && ["==", "!="].includes(part.operator) && part.left.type.kind === "boolean"),
  );
}

function translateMembership(core: Core & { op: "binary" }, positive: boolean): Formula {
  const { left, right } = core;
  if (right.op !== "constant" || !isList(right.value)) return test(core, positive);
  if (!isNumeric(left)) return { kind: "choice", core: left, values: right.value, positive };
  return {
    kind: positive ? "any" : "all",
    parts: right.value.map((value) => ({
      kind: positive ? ("zero" as const) : ("nonzero" as const),
      form: minus(linearOf(left), linearOf(constant(value, left))),
    })),
  };
}

function translateOrder(core: Core & { op: "binary" }, positive: boolean): Formula {
  const { left, right, operator } = core;
  const above = operator === ">" || operator === ">=" ? [left, right] : [right, left];
  const [high, low] = above as [Core, Core];
  const strict = operator === "<" || operator === ">";
  if (!isNumeric(left) || !isNumeric(right)) {
    // `a >= b` is `!(a < b)`: one spelling for the order of texts.
    const [lower, higher] = strict ? [low, high] : [high, low];
    return test({ ...core, operator: "<", left: lower, right: higher }, strict === positive);
  }
  const form = minus(linearOf(high), linearOf(low));
  return positive ? { kind: "at-least", form, strict } : { kind: "at-least", form: times(form, -1), strict: !strict };
}

function isNumeric({ type }: Core): boolean {
  return type.kind === "number" || type.kind === "timestamp" || type.kind === "duration";
}

/** A number as a sum; an expression that is not a sum is one term of it. */
export function linearOf(core: Core): Linear {
  switch (core.op) {
    case "constant": {
      const value = toExactNumber(core.value);
      return value === undefined ? termForm(keyOf(core), core) : constantForm(value);
    }
    case "negate":
      return times(linearOf(core.of), -1);
    case "call":
      return core.entry.name === "timestamp" && core.args[0]?.type.kind === "number"
        ? linearOf(core.args[0])
        : termForm(keyOf(core), core);
    case "binary":
      return linearBinary(core);
    default:
      return termForm(keyOf(core), core);
  }
}

function linearBinary(core: Core & { op: "binary" }): Linear {
  const [left, right] = [linearOf(core.left), linearOf(core.right)];
  switch (core.operator) {
    case "+":
      return plus(left, right);
    case "-":
      return minus(left, right);
    case "*":
      if (left.terms.size === 0) return times(right, left.constant);
      if (right.terms.size === 0) return times(left, right.constant);
      break;
    case "/":
      if (right.terms.size === 0 && compare(right.constant, 0) !== 0) return times(left, divide(1, right.constant));
      break;
    default:
  }
  return termForm(keyOf(core), core);
}
