import { bad, good, type Json, type Result } from "../../wire/mod.ts";
import { checkExpression } from "../check/check.ts";
import { outsideCalls } from "../check/constant.ts";
import { Report, type Diagnostic } from "../text/diagnostic.ts";
import { parseExpression } from "../text/parser.ts";
import { plan } from "../plan/plan.ts";
import { compare, EvaluationError, isExact } from "../value/rational.ts";
import type { ContractFunction } from "../core/function.ts";
import { newBudget } from "../check/scope.ts";
import { spellValue } from "../text/spell.ts";
import { any, boolean, join, listType, number, size, string, typeText, type Field, type Type } from "../value/type.ts";
import { isList, show, type Value } from "../value/value.ts";

/** One expression outside a contract, with names for values: `explain` shows operands with it. */
export interface CompiledExpression {
  /** The type that the checker proved, as messages name it. */
  readonly type: string;
  /** Returns the value, or a clause with the reason why there is none. Never throws. */
  evaluate(): Result<PrintedValue, string>;
}

export interface PrintedValue {
  /** The value as a reason prints it: numbers as they were sent, long values truncated. */
  readonly shown: string;
  /** The whole value in one canonical spelling: two values are equal if and only if their spellings are. */
  readonly exact: string;
}

/**
 * Compiles one expression outside a contract. Each binding is a name for a value. Its type follows from the value: the
 * members are present, the items have their types. Roots (`input`, `limits`) are not available.
 *
 * @param text the expression, as after `when:`
 * @param functions those that it may call
 */
export function compileExpression(
  text: string,
  functions: readonly ContractFunction[],
  bindings: ReadonlyMap<string, Json> = new Map(),
): Result<CompiledExpression, readonly Diagnostic[]> {
  const file = { name: "expression", text };
  const report = new Report();
  const offsets = Array.from({ length: text.length + 1 }, (_, at) => at);
  const syntax = parseExpression({ file, text, offsets }, report);
  const names = [...bindings].map(([name, value], slot) => [name, { slot, type: typeOf(value) }] as const);
  const scope = {
    functions,
    input: undefined,
    platform: undefined,
    limits: new Map<string, never>(),
    counters: undefined,
    lets: new Map<string, never>(),
    bindings: new Map(names),
    budget: newBudget(),
    report,
  };
  const { core } = checkExpression(syntax, scope, new Set());
  if (report.size > 0) return bad(report.sorted([file]));
  const run = plan(core);
  return good({ type: typeText(core.type), evaluate: () => evaluate(run, [...bindings.values()]) });
}

function evaluate(run: ReturnType<typeof plan>, variables: Value[]): Result<PrintedValue, string> {
  try {
    const value = run(outsideCalls(variables));
    return good({ shown: show(value), exact: spellValue(value) });
  } catch (error) {
    return bad(error instanceof EvaluationError ? error.message : `the engine failed: ${String(error)}`);
  }
}

/** The type of a given value. Items without a common type have the type `any`. */
function typeOf(value: Json): Type {
  if (value === null) return { kind: "null" };
  if (typeof value === "string") return string;
  if (typeof value === "boolean") return boolean;
  if (isExact(value)) return compare(value, 0) >= 0 ? size : number;
  if (isList(value)) {
    const [first, ...rest] = value.map(typeOf);
    const of = rest.reduce<Type>((joined, next) => join(joined, next) ?? any, first ?? any);
    return listType(of, value.length);
  }
  const fields = [...value].map(([name, member]): [string, Field] => [name, { type: typeOf(member), required: true }]);
  const others = fields.map(([, { type }]) => type).reduce<Type>((a, b) => (a === any ? b : (join(a, b) ?? any)), any);
  return { kind: "record", fields: new Map(fields), others, open: false };
}
