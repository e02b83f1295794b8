import { compare, walk, type Core } from "../../../../readers/src/ir.ts";
import { formulaOf, type Formula, type Literal } from "./formula.ts";
import { keyOf } from "./key.ts";

/** The direction in which a condition changes if a counter grows. */
export interface Monotonicity {
  /** It may become true: `counters.sent >= 5`. */
  readonly grows: boolean;
  /** It may become false: `counters.verified == 0`. */
  readonly shrinks: boolean;
}

const neither: Monotonicity = { grows: false, shrinks: false };
const both: Monotonicity = { grows: true, shrinks: true };

export function directionOf(core: Core, counter: string, positive = true): Monotonicity {
  return direction(formulaOf(core, positive), counter);
}

function direction(formula: Formula, counter: string): Monotonicity {
  if (formula.kind !== "all" && formula.kind !== "any") return literalDirection(formula, counter);
  return formula.parts
    .map((part) => direction(part, counter))
    .reduce((a, b) => ({ grows: a.grows || b.grows, shrinks: a.shrinks || b.shrinks }), neither);
}

function literalDirection(literal: Literal, counter: string): Monotonicity {
  if (literal.kind === "choice") return reads(literal.core, counter) ? both : neither;
  if (literal.kind === "test") {
    if (!reads(literal.core, counter)) return neither;
    return literal.core.op === "binary" && literal.core.operator === "in"
      ? { grows: literal.positive, shrinks: !literal.positive }
      : both;
  }
  const { terms, constant } = literal.form;
  const term = [...terms].find(([, { core }]) => reads(core, counter));
  if (term === undefined) return neither;
  const [key, { core, factor }] = term;
  if (key !== keyOf(core) || core.op !== "counter") return both;
  if (literal.kind === "at-least")
    return compare(factor, 0) > 0 ? { grows: true, shrinks: false } : { grows: false, shrinks: true };
  // A counter is never negative: `== 0` is "not yet", `!= 0` is "already".
  const isZeroTest = terms.size === 1 && compare(constant, 0) === 0;
  if (!isZeroTest) return both;
  return { grows: literal.kind === "nonzero", shrinks: literal.kind === "zero" };
}

function reads(core: Core, counter: string): boolean {
  return [...walk(core)].some((part) => part.op === "counter" && part.name === counter);
}
