import { didYouMean } from "../../wire/mod.ts";
import { checkCall, checkMacro } from "./calls.ts";
import { roots, walk, type Core, type Root } from "../core/core.ts";
import type { DiagnosticCode } from "../text/diagnostic-codes.ts";
import type { Report, Span } from "../text/diagnostic.ts";
import { intersect, nullFacts, pathOf, same, type CheckedExpression, type Facts, type FactSpan } from "./facts.ts";
import { binaryType, defaultText, literalType, readSpanText, untypedHint } from "./check-types.ts";
import { reservedName } from "../core/counter.ts";
import { isExact, negate as negateExact } from "../value/rational.ts";
import { partsMax, type Scope } from "./scope.ts";
import type { BinarySyntax, Syntax } from "../text/syntax.ts";
import { any, boolean, broken, join, makeListType, memory, number, size, string, typeText } from "../value/type.ts";
import type { Field, RecordType, Type } from "../value/type.ts";

/** Checks an expression in a scope with the facts proven so far. All problems go to the scope's report. */
export function checkExpression(syntax: Syntax, scope: Scope, facts: Facts): CheckedExpression {
  const known = scope.report.size;
  const checked = new Checker(scope).check(syntax, facts);
  if (scope.report.size === known) checkMemories(checked.core, scope.report);
  return checked;
}

/** Checks an expression that must evaluate to true or false. */
export function checkCondition(syntax: Syntax, scope: Scope, facts: Facts): CheckedExpression {
  const known = scope.report.size;
  const checker = new Checker(scope);
  const checked = checker.check(syntax, facts);
  checker.demand(checked.core, "boolean", "a condition");
  if (scope.report.size === known) checkMemories(checked.core, scope.report);
  return checked;
}

/** The gate looks up remembered values in the ledger one by one, so such a counter may only follow an `in`. */
function checkMemories(core: Core, report: Report): void {
  const asked = new Set<Core>();
  for (const node of walk(core)) {
    if (node.op === "binary" && node.operator === "in" && node.right.op === "counter") asked.add(node.right);
    if (node.type.kind === "memory" && !asked.has(node))
      report.add("type", node.span, "only `in` can read a counter that remembers", "write `value in counters.name`");
  }
}

/** Constants of other languages, and their names in the contract language. */
const otherLiterals: ReadonlyMap<string, string> = new Map([
  ...["None", "nil", "undefined", "NULL", "Null"].map((name) => [name, "null"] as const),
  ...["True", "TRUE"].map((name) => [name, "true"] as const),
  ...["False", "FALSE"].map((name) => [name, "false"] as const),
]);

/** Nodes of one expression after `let:` names are expanded: bounds the growth of a chain of names. */
const nodesMax = 20_000;
/**
 * Depth of one expression after `let:` names are expanded: far from the end of the stack in checking and evaluation.
 */
const depthMax = 400;

export class Checker {
  readonly scope: Scope;
  readonly #variables = new Map<string, { readonly slot: number; readonly type: Type }>();
  readonly #open: string[] = [];
  #slots = 0;
  #nodes = 0;
  #depth = 0;
  #refused = false;

  constructor(scope: Scope) {
    this.scope = scope;
    for (const [name, variable] of scope.bindings ?? []) this.#variables.set(name, variable);
    this.#slots = this.#variables.size;
  }

  check(syntax: Syntax, facts: Facts): CheckedExpression {
    const tooLarge = this.#tooLarge();
    if (tooLarge !== undefined) {
      const [message, hint] = tooLarge;
      // One report is enough: every node after this one is too many as well.
      if (!this.#refused) this.scope.report.add("too-large", syntax.span, message, hint);
      this.#refused = true;
      return same({ op: "broken", type: broken, span: syntax.span }, facts);
    }
    this.#depth += 1;
    const checked = this.#check(syntax, facts);
    this.#depth -= 1;
    return checked;
  }

  #tooLarge(): readonly [string, string] | undefined {
    this.#nodes += 1;
    this.scope.budget.parts -= 1;
    if (this.#nodes > nodesMax)
      return [`an expression of over ${nodesMax} parts, with \`let:\` names expanded`, "simplify it"];
    if (this.#depth >= depthMax)
      return [
        `nested deeper than ${depthMax} levels, with \`let:\` names expanded`,
        "test many values with `in` and a list",
      ];
    if (this.scope.budget.parts >= 0) return undefined;
    if (this.scope.budget.parts < -1) this.#refused = true;
    return [
      `a contract of over ${partsMax} parts, each rule counted for each of its tools`,
      "split it into several contracts",
    ];
  }

  #check(syntax: Syntax, facts: Facts): CheckedExpression {
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

  /** Reports a problem and returns the node that replaces the faulty one. */
  refuse({ span, facts }: FactSpan, code: DiagnosticCode, message: string, hint?: string): CheckedExpression {
    this.scope.report.add(code, span, message, hint);
    return same({ op: "broken", type: broken, span }, facts);
  }

  /** Returns whether an expression is of the required kind; reports it otherwise. */
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

  /** Runs `inner` with a name for an item of a list. Passes the variable's slot to it. */
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

  #name(name: string, span: Span, facts: Facts): CheckedExpression {
    const variable = this.#variables.get(name);
    if (variable !== undefined) {
      const { slot, type } = variable;
      const narrowed = type.kind === "nullable" && facts.has(`$${slot}!`) ? type.of : type;
      return same({ op: "variable", slot, type: narrowed, span }, facts);
    }
    const definition = this.scope.lets.get(name);
    if (definition !== undefined) return this.#let(name, definition, span, facts);
    switch (name) {
      case "input":
        if (this.scope.input === undefined) return this.#notHere(name, span, facts);
        return same({ op: "root", root: "input", type: this.scope.input, span }, facts);
      case "platform":
        if (this.scope.platform === undefined) return this.#notHere(name, span, facts);
        if (facts.has("platform")) {
          const { platform: type, hostFacts } = this.scope;
          return same({ op: "root", root: "platform", type, hostFacts, span }, facts);
        }
        return this.refuse(
          { span, facts },
          "unproven-platform",
          "a check may have no facts, so `platform` may be absent here",
          "add `platform.present` to the tool's `requires:`, or test it first: `platform.present && ...`",
        );
      case "tool":
        return same({ op: "root", root: "tool", type: string, span }, facts);
      case "now":
        if (this.scope.counters !== undefined)
          return same({ op: "root", root: "now", type: { kind: "timestamp" }, span }, facts);
        return this.refuse(
          { span, facts },
          "not-here",
          "`now` is not known yet when this is evaluated",
          "it is evaluated before the decision; limit a counter's time with `within:`",
        );
      case "limits":
      case "counters":
      case "session":
        return this.refuse({ span, facts }, "incomplete", `\`${name}\` is read by member: \`${name}.name\``);
      default: {
        const literal = otherLiterals.get(name);
        if (literal !== undefined)
          return this.refuse(
            { span, facts },
            "unknown-name",
            `nothing is called \`${name}\` here`,
            `write \`${literal}\``,
          );
        const known = [...rootNames, ...this.scope.lets.keys(), ...this.#variables.keys()];
        const hint = didYouMean(name, known, `a condition reads ${rootNames.join(", ")} and names under \`let:\``);
        return this.refuse({ span, facts }, "unknown-name", `nothing is called \`${name}\` here`, hint);
      }
    }
  }

  #notHere(name: string, span: Span, facts: Facts): CheckedExpression {
    return this.refuse(
      { span, facts },
      "not-here",
      `\`${name}\` is not checked against its schema yet when this is evaluated`,
      "a requirement on presence comes before the schemas, and its reason reads no members",
    );
  }

  #let(name: string, definition: Syntax, span: Span, facts: Facts): CheckedExpression {
    this.scope.used?.add(definition);
    if (this.#open.includes(name)) return this.refuse({ span, facts }, "let-cycle", `\`${name}\` is defined by itself`);
    this.#open.push(name);
    const hidden = new Map(this.#variables);
    this.#variables.clear();
    const checked = this.check(definition, facts);
    for (const [key, variable] of hidden) this.#variables.set(key, variable);
    this.#open.pop();
    return checked;
  }

  #member(syntax: Syntax & { kind: "member" }, facts: Facts): CheckedExpression {
    const special =
      syntax.of.kind === "name" && !this.#variables.has(syntax.of.name)
        ? this.#rootMember(syntax, syntax.of.name, facts)
        : this.#checkReserved(syntax, facts);
    if (special !== undefined) return special;
    const of = this.check(syntax.of, facts).core;
    return this.readMember(of, syntax.name, syntax, facts);
  }

  #rootMember(syntax: Syntax & { kind: "member" }, root: string, facts: Facts): CheckedExpression | undefined {
    const { name, span, nameSpan } = syntax;
    if ((root === "platform" || root === "session") && name === "present") {
      const core: Core = { op: "root", root: `${root}.present` satisfies Root, type: boolean, span };
      return { core, whenTrue: new Set([...facts, root]), whenFalse: facts };
    }
    if (root === "session")
      return this.refuse(
        { span: nameSpan, facts },
        "unknown-member",
        `\`session\` has only \`present\``,
        "a counter `per: session` counts within a session",
      );
    if (root === "limits") {
      const limit = this.scope.limits.get(name);
      if (limit !== undefined) return same({ op: "constant", value: limit.value, type: limit.type, span }, facts);
      return this.#unknown({ span: nameSpan, facts }, "limit", name, this.scope.limits.keys());
    }
    if (root !== "counters") return undefined;
    if (this.scope.counters === undefined)
      return this.refuse(
        { span, facts },
        "not-here",
        "counters are not known yet when this is evaluated",
        "read them in a rule, or in a requirement that reads input or platform as well",
      );
    const counter = this.scope.counters.get(name);
    if (counter !== undefined)
      return same({ op: "counter", name: counter.name, type: counter.remembers ? memory : size, span }, facts);
    return this.#unknown({ span: nameSpan, facts }, "counter", name, this.scope.counters.keys());
  }

  /** `counters.name.held`; undefined for any other member. */
  #checkReserved(
    { of, name, span, nameSpan, optional }: Syntax & { kind: "member" },
    facts: Facts,
  ): CheckedExpression | undefined {
    if (name !== "held" || optional || of.kind !== "member" || of.of.kind !== "name") return undefined;
    if (of.of.name !== "counters" || this.#variables.has("counters")) return undefined;
    const counter = this.scope.counters?.get(of.name);
    if (counter === undefined) return undefined;
    if (counter.counting === "possible" && !counter.remembers)
      return same({ op: "counter", name: reservedName(counter.name), type: size, span }, facts);
    const what = counter.remembers ? "remembers values" : `counts \`${counter.counting}\``;
    return this.refuse(
      { span: nameSpan, facts },
      "counter",
      `\`${of.name}\` ${what}, so parked calls hold no amount in it`,
      "only a counter with `counting: possible` and without `remembers` has `held`",
    );
  }

  #unknown(place: FactSpan, what: "limit" | "counter", name: string, known: Iterable<string>): CheckedExpression {
    const hint = didYouMean(name, known, `declare it under \`${what}s:\``);
    return this.refuse(place, `unknown-${what}`, `there is no ${what} \`${name}\``, hint);
  }

  readMember(
    of: Core,
    name: string,
    at: { span: Span; nameSpan: Span; optional: boolean },
    facts: Facts,
  ): CheckedExpression {
    const { span, nameSpan, optional } = at;
    const type = of.type.kind === "optional" && optional ? of.type.of : of.type;
    if (type.kind === "broken") return same({ op: "broken", type: broken, span }, facts);
    if (type.kind !== "record") {
      return this.refuse(
        { span: nameSpan, facts },
        "type",
        `${typeText(of.type)} has no members`,
        (["length", "len", "size"].includes(name) ? `write \`size(${readSpanText(of.span)})\`` : untypedHint(of)) ??
          (of.type.kind === "optional" ? `write \`.?${name}\` to go on` : undefined),
      );
    }
    const field = type.fields.get(name);
    const fieldType = field?.type ?? type.others;
    if (fieldType === undefined) return this.#unknownField({ span: nameSpan, facts }, of, type, name);
    if (optional) {
      const key: Core = { op: "constant", value: name, type: string, span: nameSpan };
      return same({ op: "select", of, at: key, type: { kind: "optional", of: fieldType }, span }, facts);
    }
    const path = pathOf(of, name);
    if (field?.required !== true && (path === undefined || !facts.has(path))) {
      const written = readSpanText(span);
      return this.refuse(
        { span, facts },
        "unproven-member",
        `\`${written}\` is optional and may be absent here`,
        `test it with \`has(${written}) && ...\`, or write \`${defaultText(of, name, span)}\`, or require it`,
      );
    }
    const narrowed =
      fieldType.kind === "nullable" && path !== undefined && facts.has(`${path}!`) ? fieldType.of : fieldType;
    return same({ op: "member", of, name, type: narrowed, span }, facts);
  }

  #unknownField(place: FactSpan, of: Core, type: RecordType, name: string): CheckedExpression {
    const hint = didYouMean(name, type.fields.keys(), `declare \`${name}\` under the \`properties\` of its schema`);
    return this.refuse(place, "unknown-member", `\`${readSpanText(of.span)}\` has no member \`${name}\``, hint);
  }

  #index(syntax: Syntax & { kind: "index" }, facts: Facts): CheckedExpression {
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
      return this.refuse({ span, facts }, "type", `${typeText(of.type)} cannot be indexed`, hint);
    }
    if (!this.demand(at, type.kind === "list" ? "number" : "string", "this index"))
      return same({ op: "broken", type: broken, span }, facts);
    if (optional) return same({ op: "select", of, at, type: { kind: "optional", of: item }, span }, facts);
    return same({ op: "index", of, at, type: item, span }, facts);
  }

  #unary(syntax: Syntax & { kind: "unary" }, facts: Facts): CheckedExpression {
    const { core, whenTrue, whenFalse } = this.check(syntax.operand, facts);
    const { span } = syntax;
    if (syntax.operator === "!") {
      this.demand(core, "boolean", "the operand of `!`");
      return { core: { op: "not", of: core, type: boolean, span }, whenTrue: whenFalse, whenFalse: whenTrue };
    }
    if (core.op === "constant" && isExact(core.value)) {
      return same({ op: "constant", value: negateExact(core.value), type: number, span }, facts);
    }
    if (core.type.kind === "duration") return same({ op: "negate", of: core, type: core.type, span }, facts);
    const type = this.demand(core, "number", "the operand of `-`") ? number : broken;
    return same({ op: "negate", of: core, type, span }, facts);
  }

  #binary(syntax: BinarySyntax, facts: Facts): CheckedExpression {
    const { operator, span } = syntax;
    if (operator === "&&" || operator === "||") return this.#logic(syntax, facts);
    const left = this.check(syntax.left, facts).core;
    const right = this.check(syntax.right, facts).core;
    const type = binaryType(syntax, left, right, this.scope.report);
    const core: Core = { op: "binary", operator, left, right, type, span };
    if (operator === "==" || operator === "!=") return nullFacts(core, operator, [left, right], facts);
    const key = operator === "in" && left.op === "constant" && typeof left.value === "string" ? left.value : undefined;
    const path = key === undefined || right.type.kind !== "record" ? undefined : pathOf(right, key);
    return path === undefined ? same(core, facts) : { core, whenTrue: new Set([...facts, path]), whenFalse: facts };
  }

  #logic(syntax: BinarySyntax, facts: Facts): CheckedExpression {
    const and = syntax.operator === "&&";
    const left = this.check(syntax.left, facts);
    const right = this.check(syntax.right, and ? left.whenTrue : left.whenFalse);
    for (const { core } of [left, right]) this.demand(core, "boolean", `each side of \`${syntax.operator}\``);
    const core: Core = { op: and ? "and" : "or", left: left.core, right: right.core, type: boolean, span: syntax.span };
    return and
      ? { core, whenTrue: right.whenTrue, whenFalse: intersect(left.whenFalse, right.whenFalse) }
      : { core, whenTrue: intersect(left.whenTrue, right.whenTrue), whenFalse: right.whenFalse };
  }

  #conditional(syntax: Syntax & { kind: "conditional" }, facts: Facts): CheckedExpression {
    const test = this.check(syntax.test, facts);
    this.demand(test.core, "boolean", "the condition before `?`");
    const yes = this.check(syntax.yes, test.whenTrue);
    const no = this.check(syntax.no, test.whenFalse);
    const type = join(yes.core.type, no.core.type);
    if (type === undefined) {
      return this.refuse(
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

  #list(syntax: Syntax & { kind: "list" }, facts: Facts): CheckedExpression {
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
    return same({ op: "list", items, type: makeListType(of, items.length), span: syntax.span }, facts);
  }

  #map(syntax: Syntax & { kind: "map" }, facts: Facts): CheckedExpression {
    const entries = syntax.entries.map(
      ([key, value]) => [this.check(key, facts).core, this.check(value, facts).core] as const,
    );
    const fields = new Map<string, Field>();
    let others = entries[0]?.[1].type ?? any;
    for (const [key, value] of entries) {
      this.demand(key, "string", "a key");
      others = join(others, value.type) ?? any;
      if (key.op !== "constant" || typeof key.value !== "string") continue;
      if (fields.has(key.value))
        this.scope.report.add("type", key.span, `the key ${JSON.stringify(key.value)} appears twice`);
      fields.set(key.value, { type: value.type, required: true });
    }
    return same(
      { op: "map", entries, type: { kind: "record", fields, others, open: false }, span: syntax.span },
      facts,
    );
  }
}

const rootNames: readonly string[] = [
  ...new Set([...roots.map((root) => root.split(".")[0] ?? root), "limits", "counters"]),
];
