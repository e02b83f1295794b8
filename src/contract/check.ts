import { nearest } from "../wire/mod.ts";
import { checkCall, checkMacro } from "./check-calls.ts";
import { roots, type Core, type Root } from "./core.ts";
import type { Report, Span } from "./diagnostic.ts";
import { isExact, negate as negateExact } from "./rational.ts";
import type { Binary, Syntax } from "./syntax.ts";
import { any, boolean, broken, comparable, isUntyped, join, listOf, mapOf, number, string, typeText } from "./type.ts";
import type { RecordType, Type } from "./type.ts";
import { isList, type Value } from "./value.ts";

/** What is proven at one place: paths that are present (`input.a`), and with `!` behind, that are not null. */
export type Facts = ReadonlySet<string>;

/** What an expression may read, and the types of it. One scope serves one tool. */
export interface Scope {
  readonly input: RecordType;
  readonly platform: RecordType;
  readonly limits: ReadonlyMap<string, { readonly type: Type; readonly value: Value }>;
  /** The counters that may be read here and their full names; undefined where counters and `now` may not be. */
  readonly counters: ReadonlyMap<string, string> | undefined;
  readonly lets: ReadonlyMap<string, Syntax>;
  readonly report: Report;
}

/** A checked expression, and what holds after it came to true or to false. */
export interface Checked {
  readonly core: Core;
  readonly whenTrue: Facts;
  readonly whenFalse: Facts;
}

/** Checks an expression in a scope with facts already proven. All problems go to the scope's report. */
export function checkExpression(syntax: Syntax, scope: Scope, facts: Facts): Checked {
  return new Checker(scope).check(syntax, facts);
}

/** The same for an expression that must come to true or false. */
export function checkCondition(syntax: Syntax, scope: Scope, facts: Facts): Checked {
  const checker = new Checker(scope);
  const checked = checker.check(syntax, facts);
  checker.demand(checked.core, "boolean", "a condition");
  return checked;
}

/** Nodes after `let:` is written out: keeps a chain of names from growing without bound. */
const nodesMax = 20_000;

export class Checker {
  readonly scope: Scope;
  readonly #variables = new Map<string, { readonly slot: number; readonly type: Type }>();
  readonly #open: string[] = [];
  #slots = 0;
  #nodes = 0;

  constructor(scope: Scope) {
    this.scope = scope;
  }

  check(syntax: Syntax, facts: Facts): Checked {
    this.#nodes += 1;
    if (this.#nodes > nodesMax) {
      return this.refuse(syntax.span, "too-large", "the expression, with its `let:` written out, is too large", facts);
    }
    switch (syntax.kind) {
      case "literal":
        return same({ op: "constant", value: syntax.value, type: literalType(syntax.value), span: syntax.span }, facts);
      case "name":
        return this.#name(syntax.name, syntax.span, facts);
      case "member":
        return this.#member(syntax, facts);
      case "index":
        return this.#index(syntax, facts);
      case "call":
        return checkMacro(this, syntax, facts) ?? checkCall(this, syntax, facts);
      case "unary":
        return this.#unary(syntax, facts);
      case "binary":
        return this.#binary(syntax, facts);
      case "conditional":
        return this.#conditional(syntax, facts);
      case "list":
        return this.#list(syntax, facts);
      case "map":
        return this.#map(syntax, facts);
      case "broken":
        return same({ op: "broken", type: broken, span: syntax.span }, facts);
      default:
        return syntax satisfies never;
    }
  }

  /** Reports a problem and gives the node that stands for what has it. */
  refuse(span: Span, code: string, message: string, facts: Facts, hint?: string): Checked {
    this.scope.report.add(code, span, message, hint);
    return same({ op: "broken", type: broken, span }, facts);
  }

  /** Says so when an expression is not of the kind that its place needs. */
  demand(core: Core, kind: Type["kind"], place: string): boolean {
    if (core.type.kind === kind) return true;
    if (core.type.kind === "broken") return false;
    const wanted =
      { boolean: "true or false", number: "a number", string: "a text", list: "a list" }[kind as string] ?? kind;
    this.scope.report.add(
      "type",
      core.span,
      `${place} must be ${wanted}, this is ${typeText(core.type)}`,
      untypedHint(core),
    );
    return false;
  }

  /** Runs `inner` with a name that stands for an item of a list, and gives the slot it is kept in. */
  withVariable<Result>(name: string, type: Type, inner: (slot: number) => Result): Result {
    const slot = this.#slots;
    const hidden = this.#variables.get(name);
    this.#slots += 1;
    this.#variables.set(name, { slot, type });
    const result = inner(slot);
    if (hidden === undefined) this.#variables.delete(name);
    else this.#variables.set(name, hidden);
    return result;
  }

  isName(name: string): boolean {
    return rootNames.includes(name) || this.scope.lets.has(name) || this.#variables.has(name);
  }

  #name(name: string, span: Span, facts: Facts): Checked {
    const variable = this.#variables.get(name);
    if (variable !== undefined) return same({ op: "variable", slot: variable.slot, type: variable.type, span }, facts);
    const definition = this.scope.lets.get(name);
    if (definition !== undefined) return this.#let(name, definition, span, facts);
    switch (name) {
      case "input":
        return same({ op: "root", root: "input", type: this.scope.input, span }, facts);
      case "platform":
        if (facts.has("platform"))
          return same({ op: "root", root: "platform", type: this.scope.platform, span }, facts);
        return this.refuse(
          span,
          "unproven-platform",
          "a check may come without a snapshot, so `platform` may be absent here",
          facts,
          "add `platform.present` to the tool's `requires:`, or test it first: `platform.present && ...`",
        );
      case "tool":
        return same({ op: "root", root: "tool", type: string, span }, facts);
      case "now":
        if (this.scope.counters !== undefined)
          return same({ op: "root", root: "now", type: { kind: "timestamp" }, span }, facts);
        return this.refuse(
          span,
          "not-here",
          "`now` is not known yet where this is evaluated",
          facts,
          "counters are keyed before the decision; use `within:` for time",
        );
      case "limits":
      case "counters":
      case "session":
        return this.refuse(span, "incomplete", `\`${name}\` is read by member: \`${name}.name\``, facts);
      default: {
        const near = nearest(name, [...rootNames, ...this.scope.lets.keys(), ...this.#variables.keys()]);
        const hint =
          near === undefined
            ? `a condition reads ${rootNames.join(", ")} and names under \`let:\``
            : `did you mean \`${near}\`?`;
        return this.refuse(span, "unknown-name", `nothing is called \`${name}\` here`, facts, hint);
      }
    }
  }

  #let(name: string, definition: Syntax, span: Span, facts: Facts): Checked {
    if (this.#open.includes(name)) return this.refuse(span, "let-cycle", `\`${name}\` is defined by itself`, facts);
    this.#open.push(name);
    const hidden = new Map(this.#variables);
    this.#variables.clear();
    const checked = this.check(definition, facts);
    for (const [key, variable] of hidden) this.#variables.set(key, variable);
    this.#open.pop();
    return checked;
  }

  #member(syntax: Syntax & { kind: "member" }, facts: Facts): Checked {
    const special =
      syntax.of.kind === "name" && !this.#variables.has(syntax.of.name)
        ? this.#rootMember(syntax, syntax.of.name, facts)
        : undefined;
    if (special !== undefined) return special;
    const of = this.check(syntax.of, facts).core;
    return this.readMember(
      of,
      syntax.name,
      { span: syntax.span, nameSpan: syntax.nameSpan, optional: syntax.optional },
      facts,
    );
  }

  #rootMember(syntax: Syntax & { kind: "member" }, root: string, facts: Facts): Checked | undefined {
    const { name, span, nameSpan } = syntax;
    if ((root === "platform" || root === "session") && name === "present") {
      const core: Core = { op: "root", root: `${root}.present` satisfies Root, type: boolean, span };
      return { core, whenTrue: new Set([...facts, root]), whenFalse: facts };
    }
    if (root === "session")
      return this.refuse(
        nameSpan,
        "unknown-member",
        `\`session\` has only \`present\``,
        facts,
        "a counter `per: session` counts within a session",
      );
    if (root === "limits") {
      const limit = this.scope.limits.get(name);
      if (limit !== undefined) return same({ op: "constant", value: limit.value, type: limit.type, span }, facts);
      return this.#unknown("limit", name, this.scope.limits.keys(), nameSpan, facts);
    }
    if (root !== "counters") return undefined;
    if (this.scope.counters === undefined)
      return this.refuse(
        span,
        "not-here",
        "counters cannot be read here",
        facts,
        "a counter's own definition reads input, platform, limits, tool and session only",
      );
    const counter = this.scope.counters.get(name);
    if (counter !== undefined)
      return same({ op: "counter", name: counter, type: { kind: "number", notNegative: true }, span }, facts);
    return this.#unknown("counter", name, this.scope.counters.keys(), nameSpan, facts);
  }

  #unknown(what: string, name: string, known: Iterable<string>, span: Span, facts: Facts): Checked {
    const near = nearest(name, known);
    const hint = near === undefined ? `declare it under \`${what}s:\`` : `did you mean \`${near}\`?`;
    return this.refuse(span, `unknown-${what}`, `there is no ${what} \`${name}\``, facts, hint);
  }

  readMember(of: Core, name: string, at: { span: Span; nameSpan: Span; optional: boolean }, facts: Facts): Checked {
    const { span, nameSpan, optional } = at;
    const type = of.type.kind === "optional" && optional ? of.type.of : of.type;
    if (type.kind === "broken") return same({ op: "broken", type: broken, span }, facts);
    if (type.kind !== "record") {
      return this.refuse(
        nameSpan,
        "type",
        `${typeText(of.type)} has no members`,
        facts,
        untypedHint(of) ?? optionalHint(of.type),
      );
    }
    const field = type.fields.get(name);
    const fieldType = field?.type ?? type.others;
    if (fieldType === undefined) return this.#unknownField(of, type, name, nameSpan, facts);
    if (optional) {
      const key: Core = { op: "constant", value: name, type: string, span: nameSpan };
      return same({ op: "select", of, at: key, type: { kind: "optional", of: fieldType }, span }, facts);
    }
    const path = pathOf(of, name);
    if (field?.required !== true && (path === undefined || !facts.has(path))) {
      const written = textOf(span);
      return this.refuse(
        span,
        "unproven-member",
        `\`${written}\` is optional and may be absent here`,
        facts,
        `say what holds without it: \`has(${written}) && ...\`, or \`${defaultText(of, name, span)}\`, or require it`,
      );
    }
    const narrowed =
      fieldType.kind === "nullable" && path !== undefined && facts.has(`${path}!`) ? fieldType.of : fieldType;
    return same({ op: "member", of, name, type: narrowed, span }, facts);
  }

  #unknownField(of: Core, type: RecordType, name: string, span: Span, facts: Facts): Checked {
    const near = nearest(name, type.fields.keys());
    const owner = textOf(of.span);
    const hint =
      near === undefined ? `declare \`${name}\` under the \`properties\` of its schema` : `did you mean \`${near}\`?`;
    return this.refuse(span, "unknown-member", `\`${owner}\` has no member \`${name}\``, facts, hint);
  }

  #index(syntax: Syntax & { kind: "index" }, facts: Facts): Checked {
    const { span, optional } = syntax;
    const of = this.check(syntax.of, facts).core;
    const at = this.check(syntax.at, facts).core;
    const type = of.type.kind === "optional" && optional ? of.type.of : of.type;
    if (at.op === "constant" && typeof at.value === "string" && type.kind === "record") {
      return this.readMember(of, at.value, { span, nameSpan: at.span, optional }, facts);
    }
    if (type.kind === "broken" || at.type.kind === "broken") return same({ op: "broken", type: broken, span }, facts);
    const item = type.kind === "list" ? type.of : type.kind === "record" ? type.others : undefined;
    if (item === undefined) {
      const hint = type.kind === "record" ? "its members are declared one by one: read them by name" : untypedHint(of);
      return this.refuse(span, "type", `${typeText(of.type)} cannot be indexed`, facts, hint);
    }
    if (!this.demand(at, type.kind === "list" ? "number" : "string", "this index"))
      return same({ op: "broken", type: broken, span }, facts);
    if (optional) return same({ op: "select", of, at, type: { kind: "optional", of: item }, span }, facts);
    return same({ op: "index", of, at, type: item, span }, facts);
  }

  #unary(syntax: Syntax & { kind: "unary" }, facts: Facts): Checked {
    const { core, whenTrue, whenFalse } = this.check(syntax.operand, facts);
    const { span } = syntax;
    if (syntax.operator === "!") {
      this.demand(core, "boolean", "what `!` is applied to");
      return { core: { op: "not", of: core, type: boolean, span }, whenTrue: whenFalse, whenFalse: whenTrue };
    }
    if (core.op === "constant" && isExact(core.value)) {
      return same({ op: "constant", value: negateExact(core.value), type: number, span }, facts);
    }
    if (core.type.kind === "duration") return same({ op: "negate", of: core, type: core.type, span }, facts);
    this.demand(core, "number", "what `-` is applied to");
    return same({ op: "negate", of: core, type: number, span }, facts);
  }

  #binary(syntax: Binary, facts: Facts): Checked {
    const { operator, span } = syntax;
    if (operator === "&&" || operator === "||") return this.#logic(syntax, facts);
    const left = this.check(syntax.left, facts).core;
    const right = this.check(syntax.right, facts).core;
    const type = binaryType(syntax, left, right, this);
    const core: Core = { op: "binary", operator, left, right, type, span };
    if (operator === "==" || operator === "!=") return nullFacts(core, operator, left, right, facts);
    const key = operator === "in" && left.op === "constant" && typeof left.value === "string" ? left.value : undefined;
    const path = key === undefined || right.type.kind !== "record" ? undefined : pathOf(right, key);
    return path === undefined ? same(core, facts) : { core, whenTrue: new Set([...facts, path]), whenFalse: facts };
  }

  #logic(syntax: Binary, facts: Facts): Checked {
    const and = syntax.operator === "&&";
    const left = this.check(syntax.left, facts);
    const right = this.check(syntax.right, and ? left.whenTrue : left.whenFalse);
    for (const { core } of [left, right]) this.demand(core, "boolean", `each side of \`${syntax.operator}\``);
    const core: Core = { op: and ? "and" : "or", left: left.core, right: right.core, type: boolean, span: syntax.span };
    return and
      ? { core, whenTrue: right.whenTrue, whenFalse: intersect(left.whenFalse, right.whenFalse) }
      : { core, whenTrue: intersect(left.whenTrue, right.whenTrue), whenFalse: right.whenFalse };
  }

  #conditional(syntax: Syntax & { kind: "conditional" }, facts: Facts): Checked {
    const test = this.check(syntax.test, facts);
    this.demand(test.core, "boolean", "what stands before `?`");
    const then = this.check(syntax.then, test.whenTrue);
    const otherwise = this.check(syntax.otherwise, test.whenFalse);
    const type = join(then.core.type, otherwise.core.type);
    if (type === undefined) {
      return this.refuse(
        syntax.span,
        "type",
        `the two outcomes differ: ${typeText(then.core.type)} and ${typeText(otherwise.core.type)}`,
        facts,
      );
    }
    const core: Core = {
      op: "conditional",
      test: test.core,
      then: then.core,
      otherwise: otherwise.core,
      type,
      span: syntax.span,
    };
    return {
      core,
      whenTrue: intersect(then.whenTrue, otherwise.whenTrue),
      whenFalse: intersect(then.whenFalse, otherwise.whenFalse),
    };
  }

  #list(syntax: Syntax & { kind: "list" }, facts: Facts): Checked {
    const items = syntax.items.map((item) => this.check(item, facts).core);
    let of = items[0]?.type ?? any;
    for (const item of items) {
      const joined = join(of, item.type);
      if (joined === undefined)
        this.scope.report.add(
          "type",
          item.span,
          `a list of ${typeText(of)} and ${typeText(item.type)}`,
          "a list holds values of one type",
        );
      of = joined ?? broken;
    }
    return same({ op: "list", items, type: listOf(of, items.length), span: syntax.span }, facts);
  }

  #map(syntax: Syntax & { kind: "map" }, facts: Facts): Checked {
    const entries = syntax.entries.map(
      ([key, value]) => [this.check(key, facts).core, this.check(value, facts).core] as const,
    );
    let of = entries[0]?.[1].type ?? any;
    for (const [key, value] of entries) {
      this.demand(key, "string", "a key");
      of = join(of, value.type) ?? any;
    }
    return same({ op: "map", entries, type: mapOf(of), span: syntax.span }, facts);
  }
}

const rootNames: readonly string[] = [
  ...new Set([...roots.map((root) => root.split(".")[0] ?? root), "limits", "counters"]),
];

export function same(core: Core, facts: Facts): Checked {
  return { core, whenTrue: facts, whenFalse: facts };
}

function intersect(a: Facts, b: Facts): Facts {
  return a === b ? a : a.intersection(b);
}

/** The fact that a member is present; undefined where the same words may mean another value the next time. */
export function pathOf(of: Core, name: string): string | undefined {
  const owner = ownPath(of);
  return owner === undefined ? undefined : `${owner}.${JSON.stringify(name)}`;
}

function ownPath(core: Core): string | undefined {
  if (core.op === "root") return core.root;
  if (core.op === "variable") return `$${core.slot}`;
  return core.op === "member" ? pathOf(core.of, core.name) : undefined;
}

function nullFacts(core: Core, operator: "==" | "!=", left: Core, right: Core, facts: Facts): Checked {
  const [value, other] = left.type.kind === "null" ? [right, left] : [left, right];
  const path = other.type.kind === "null" && value.op === "member" ? ownPath(value) : undefined;
  if (path === undefined) return same(core, facts);
  const known: Facts = new Set([...facts, `${path}!`]);
  return operator === "!=" ? { core, whenTrue: known, whenFalse: facts } : { core, whenTrue: facts, whenFalse: known };
}

function binaryType(syntax: Binary, left: Core, right: Core, checker: Checker): Type {
  const { operator, span } = syntax;
  const [a, b] = [left.type, right.type];
  if (a.kind === "broken" || b.kind === "broken")
    return ["+", "-", "*", "/", "%"].includes(operator) ? broken : boolean;
  const wrong = (message: string, hint?: string): Type => {
    checker.scope.report.add(
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
      return comparable(a, b) ? boolean : wrong(`${typeText(a)} never equals ${typeText(b)}`);
    case "in": {
      if (b.kind === "record")
        return a.kind === "string" || isUntyped(a) ? boolean : wrong(`${typeText(a)} is never a member's name`);
      if (b.kind !== "list")
        return wrong(
          `\`in\` looks in a list or an object, not in ${typeText(b)}`,
          b.kind === "string" ? "write `text.contains(part)`" : undefined,
        );
      return comparable(a, b.of) ? boolean : wrong(`${typeText(a)} is never in ${typeText(b)}`);
    }
    case "<":
    case "<=":
    case ">":
    case ">=":
      return a.kind === b.kind && ordered.includes(a.kind)
        ? boolean
        : wrong(`${typeText(a)} and ${typeText(b)} have no order`);
    default:
      return (
        arithmeticType(operator, a, b) ??
        wrong(`\`${operator}\` does not take ${typeText(a)} and ${typeText(b)}`, arithmeticHint(a, b))
      );
  }
}

const ordered: readonly Type["kind"][] = ["number", "string", "duration", "timestamp"];

function arithmeticType(operator: string, a: Type, b: Type): Type | undefined {
  if (a.kind === "number" && b.kind === "number") {
    return { kind: "number", notNegative: operator !== "-" && a.notNegative && b.notNegative };
  }
  const pair = `${a.kind}${operator}${b.kind}`;
  if (pair === "string+string") return a;
  if (pair === "list+list") return join(a, b);
  if (pair === "timestamp-timestamp") return { kind: "duration" };
  if (pair === "duration+duration" || pair === "duration-duration") return a;
  if (pair === "timestamp+duration" || pair === "timestamp-duration") return a;
  return pair === "duration+timestamp" ? b : undefined;
}

function arithmeticHint(a: Type, b: Type): string | undefined {
  const times = [a.kind, b.kind].includes("timestamp") && [a.kind, b.kind].includes("number");
  return times
    ? `turn seconds into a time first: \`timestamp(seconds)\`, or \`duration("10m")\` for a length`
    : undefined;
}

function literalType(value: Value): Type {
  if (value === null) return { kind: "null" };
  if (typeof value === "boolean") return boolean;
  if (typeof value === "string") return string;
  if (isExact(value)) return { kind: "number", notNegative: true };
  return isList(value) ? listOf(any) : any;
}

function untypedHint(core: Core): string | undefined {
  if (core.type.kind !== "any") return undefined;
  return "its schema gives no `type`, so only `==`, `in` and `has` may test it: declare the type";
}

function nullHint(type: Type): string | undefined {
  return type.kind === "nullable" ? "it may be null: test `!= null` first" : undefined;
}

function optionalHint(type: Type): string | undefined {
  return type.kind === "optional" ? "give what holds without it: `.orValue(default)`" : undefined;
}

export function textOf(span: Span): string {
  return span.file.text.slice(span.from, span.to);
}

function defaultText(of: Core, name: string, span: Span): string {
  const isName = /^[A-Za-z_]\w*$/.test(name) && !textOf(span).endsWith("]");
  return `${textOf(of.span)}${isName ? `.?${name}` : `[?${JSON.stringify(name)}]`}.orValue(...)`;
}
