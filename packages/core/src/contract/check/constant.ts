import { children, type Core } from "../core/core.ts";
import { noCounters, plan, stepsMax, type EvaluationContext } from "../plan/plan.ts";
import { EvaluationError } from "../value/rational.ts";
import type { Value } from "../value/value.ts";

/** The value of an expression that does not depend on a call; undefined if it does, or if it cannot be evaluated. */
export function constantValue(core: Core): Value | undefined {
  if (readsCall(core, new Set())) return undefined;
  try {
    return plan(core)(outsideCalls([]));
  } catch (error) {
    if (error instanceof EvaluationError) return undefined;
    throw error;
  }
}

/** The context for an expression without roots and counters. */
export function outsideCalls(variables: Value[]): EvaluationContext {
  return {
    tool: "",
    input: new Map(),
    platform: null,
    keyKind: undefined,
    hasSession: false,
    now: 0,
    counters: noCounters,
    variables,
    steps: stepsMax,
  };
}

function readsCall(core: Core, bound: ReadonlySet<number>): boolean {
  if (core.op === "root" || core.op === "counter" || core.op === "broken") return true;
  if (core.op === "variable") return !bound.has(core.slot);
  if (core.op !== "fold") return children(core).some((part) => readsCall(part, bound));
  const inside = new Set([...bound, core.slot]);
  return (
    readsCall(core.range, bound) || [core.test, core.body].some((part) => part !== undefined && readsCall(part, inside))
  );
}
