import type { ToolPlan } from "../../../../readers/src/ir.ts";
import { moreIs } from "./approvals.ts";
import type { ContractChange } from "./call.ts";

/** Two contracts let the key of an agent's host state other facts, such as `payments.wallet` for each contract. */
export type HostFactsChange = ContractChange<readonly string[]>;

/**
 * Compares which facts the key of an agent's host may state; undefined if they are the same, or if only one contract
 * routes the tool. More facts are weaker, because the agent can read that key.
 */
export function compareHostFacts(before: ToolPlan, after: ToolPlan): HostFactsChange | undefined {
  const [a, b] = [factsOf(before), factsOf(after)];
  if (a.join() === b.join() || before.routes.length === 0 || after.routes.length === 0) return undefined;
  return { direction: moreIs("weaker", a, b), before: a, after: b };
}

function factsOf({ routes }: ToolPlan): readonly string[] {
  return routes.flatMap(({ contract, hostFacts }) => [...hostFacts].map((name) => `${contract}.${name}`)).toSorted();
}
