import { checkCall, checkMacro } from "./calls.ts";
import { untypedHint, type Checker } from "./checker.ts";
import { walk, type Core } from "../core/core.ts";
import type { DiagnosticCode } from "../text/diagnostic-codes.ts";
import type { Report } from "../text/diagnostic.ts";
import { same, type TypedCore, type Facts, type FactSpan } from "./facts.ts";
import { checkList, checkLiteral, checkMap } from "./literals.ts";
import { checkIndex, checkMember } from "./members.ts";
import { checkName } from "./names.ts";
import { checkBinary, checkConditional, checkUnary } from "./operators.ts";
import { partsMax, type Scope } from "./scope.ts";
import type { Syntax } from "../text/syntax.ts";
import { broken, typeText, type Type } from "../value/type.ts";

/** Checks an expression in a scope with the facts proven so far. All problems go to the scope's report. */
export function checkExpression(syntax: Syntax, scope: Scope, facts: Facts): TypedCore {
  const known = scope.report.size;
  const checked = new ExpressionChecker(scope).check(syntax, facts);
  if (scope.report.size === known) checkMemories(checked.core, scope.report);
  return checked;
}

/** Checks an expression that must evaluate to true or false. */
export function checkCondition(syntax: Syntax, scope: Scope, facts: Facts): TypedCore {
  const known = scope.report.size;
  const checker = new ExpressionChecker(scope);
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

/** Nodes of one expression after `let:` names are expanded: bounds the growth of a chain of names. */
const nodesMax = 20_000;
/**
 * Depth of one expression after `let:` names are expanded: far from the end of the stack in checking and evaluation.
 */
const depthMax = 400;

class ExpressionChecker implements Checker {
  readonly scope: Scope;
  variables = new Map<string, { readonly slot: number; readonly type: Type }>();
  readonly #open: string[] = [];
  #slots = 0;
  #nodes = 0;
  #depth = 0;
  #refused = false;

  constructor(scope: Scope) {
    this.scope = scope;
    for (const [name, variable] of scope.bindings ?? []) this.variables.set(name, variable);
    this.#slots = this.variables.size;
  }

  check(syntax: Syntax, facts: Facts): TypedCore {
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

  #check(syntax: Syntax, facts: Facts): TypedCore {
    switch (syntax.kind) {
      case "literal":
        return checkLiteral(syntax, facts);
      case "name":
        return checkName(this, syntax.name, { span: syntax.span, facts });
      case "member":
        return checkMember(this, syntax, facts);
      case "index":
        return checkIndex(this, syntax, facts);
      case "call":
        return checkMacro(this, syntax, facts) ?? checkCall(this, syntax, facts);
      case "unary":
        return checkUnary(this, syntax, facts);
      case "binary":
        return checkBinary(this, syntax, facts);
      case "conditional":
        return checkConditional(this, syntax, facts);
      case "list":
        return checkList(this, syntax, facts);
      case "map":
        return checkMap(this, syntax, facts);
      case "broken":
        return same({ op: "broken", type: broken, span: syntax.span }, facts);
      default:
        return syntax satisfies never;
    }
  }

  refuse({ span, facts }: FactSpan, code: DiagnosticCode, message: string, hint?: string): TypedCore {
    this.scope.report.add(code, span, message, hint);
    return same({ op: "broken", type: broken, span }, facts);
  }

  demand(core: Core, kind: Type["kind"], place: string): boolean {
    if (core.type.kind === kind) return true;
    if (core.type.kind === "broken") return false;
    const wanted =
      { boolean: "true or false", number: "a number", string: "a text", list: "a list" }[kind as string] ?? kind;
    const message = `${place} must be ${wanted}, this is ${typeText(core.type)}`;
    this.scope.report.add("type", core.span, message, untypedHint(core));
    return false;
  }

  withVariable<Result>(name: string, type: Type, inner: (slot: number) => Result): Result {
    const slot = this.#slots;
    const hidden = this.variables.get(name);
    this.#slots += 1;
    this.variables.set(name, { slot, type });
    const result = inner(slot);
    if (hidden === undefined) this.variables.delete(name);
    else this.variables.set(name, hidden);
    return result;
  }

  checkLet(name: string, definition: Syntax, place: FactSpan): TypedCore {
    this.scope.used?.add(definition);
    if (this.#open.includes(name)) return this.refuse(place, "let-cycle", `\`${name}\` is defined by itself`);
    this.#open.push(name);
    const hidden = this.variables;
    this.variables = new Map();
    const checked = this.check(definition, place.facts);
    this.variables = hidden;
    this.#open.pop();
    return checked;
  }
}
