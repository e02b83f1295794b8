import { checkExpression } from "./check.ts";
import type { Facts } from "./facts.ts";
import type { Scope } from "./scope.ts";
import type { Core } from "../core/core.ts";
import { plan, type EvaluationContext } from "../plan/plan.ts";
import type { ReasonSyntax } from "../text/reason.ts";
import { show, showSentence } from "../value/value.ts";

export type Reason = (context: EvaluationContext) => string;

/** Checks the expressions of a reason. An object cannot be shown in a sentence; a list shows its first items. */
export function checkReason(parts: ReasonSyntax, scope: Scope, facts: Facts): readonly (string | Core)[] {
  return parts.map((part) => {
    if (typeof part === "string") return part;
    const { core } = checkExpression(part, scope, facts);
    if (core.type.kind === "record")
      scope.report.add("reason", core.span, "a reason shows single values, not objects", "name one of its members");
    return core;
  });
}

/** The sentence for one call. @throws {EvaluationError} if a value in it cannot be evaluated */
export function planReason(parts: readonly (string | Core)[]): Reason {
  const pieces = parts.map((part): Reason => {
    if (typeof part === "string") return () => part;
    const [run, shown] = [plan(part), isSentence(part) ? showSentence : show];
    return (context) => shown(run(context));
  });
  return (context) =>
    pieces
      .map((piece) => piece(context))
      .join("")
      .trim();
}

/** Is it a sentence that a function of the gate made, such as the reason of a table of commands? */
function isSentence(core: Core): boolean {
  return core.op === "member" && core.of.op === "call" && core.of.entry.sentences?.includes(core.name) === true;
}
