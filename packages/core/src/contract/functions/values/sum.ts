import { add, EvaluationError, isExact, type Exact } from "../../value/rational.ts";
import { number } from "../../value/type.ts";
import type { Value } from "../../value/value.ts";
import type { ContractFunction } from "../../core/function.ts";

/** Sums of numbers. */
export const sumFunctions: readonly ContractFunction[] = [
  {
    name: "sum",
    style: "method",
    parameters: ["list"],
    result: number,
    doc: "The exact sum of a list of numbers; 0 for an empty list.",
    examples: [["[12.5, 0.1, 7].sum()", "19.6"]],
    cost: ([list]) => (list as readonly Value[]).length * additionSteps,
    run: ([list]) => (list as readonly Value[]).reduce<Exact>(addTo, 0),
  },
];

/** The cost of adding numbers that may be fractions, as in spec/contract.md, "Limits of the language". */
const additionSteps = 128;

function addTo(total: Exact, item: Value): Exact {
  if (!isExact(item)) throw new EvaluationError("a list with a value that is not a number");
  return add(total, item);
}
