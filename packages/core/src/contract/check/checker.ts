import type { Core } from "../core/core.ts";
import type { DiagnosticCode } from "../text/diagnostic-codes.ts";
import type { Span } from "../text/diagnostic.ts";
import type { TypedCore, Facts, FactSpan } from "./facts.ts";
import type { Scope } from "./scope.ts";
import type { Syntax } from "../text/syntax.ts";
import type { Type } from "../value/type.ts";

/** The check of one expression, as the checks of its parts use it. */
export interface Checker {
  readonly scope: Scope;
  /** The names of items of lists around the part, and names with given values. */
  readonly variables: NonNullable<Scope["bindings"]>;
  check(syntax: Syntax, facts: Facts): TypedCore;
  /** Checks the definition of a name under `let:`, which reads no variables. */
  checkLet(name: string, definition: Syntax, place: FactSpan): TypedCore;
  /** Runs `inner` with a name for an item of a list. Passes the variable's slot to it. */
  withVariable<Result>(name: string, type: Type, inner: (slot: number) => Result): Result;
  /** Reports a problem and returns the node that replaces the faulty one. */
  refuse(place: FactSpan, code: DiagnosticCode, message: string, hint?: string): TypedCore;
  /** Returns whether an expression is of the required kind; reports it otherwise. */
  demand(core: Core, kind: Type["kind"], place: string): boolean;
}

export function readSpanText(span: Span): string {
  return span.file.text.slice(span.from, span.to);
}

export function untypedHint(core: Core): string | undefined {
  if (core.type.kind !== "any") return undefined;
  return "its schema gives no `type`, so only `==`, `in` and `has` may test it: declare the type";
}
