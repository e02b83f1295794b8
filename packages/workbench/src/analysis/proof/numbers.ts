import type { ToolPlan } from "../../../../readers/src/ir.ts";
import type { ContractChange } from "./call.ts";

/** One of two contracts says `numbers: double` for a tool. */
export type NumbersChange = ContractChange<"any" | "double">;

/** Compares which numbers an input may have; undefined if they are the same, or if only one contract routes the tool. */
export function compareNumbers(before: ToolPlan, after: ToolPlan): NumbersChange | undefined {
  const [a, b] = [numbersOf(before), numbersOf(after)];
  if (a === b || before.routes.length === 0 || after.routes.length === 0) return undefined;
  return { direction: b === "double" ? "stricter" : "weaker", before: a, after: b };
}

function numbersOf({ routes }: ToolPlan): "any" | "double" {
  return routes.some(({ onlyDoubles }) => onlyDoubles) ? "double" : "any";
}

/** The plan for calls whose numbers no program changes: for those, it makes no difference. */
export function withOnlyDoubles(plan: ToolPlan): ToolPlan {
  return { ...plan, routes: plan.routes.map((route) => ({ ...route, onlyDoubles: true })) };
}
