import type { ToolPlan } from "../../../../svc-gate/src/contract/ir.ts";
import type { Direction } from "./call.ts";

/** Two contracts let the key of an agent's host state other facts. */
export interface HostFactsChange {
  /** Null if facts were added and others removed. */
  readonly direction: Direction | null;
  /** For each contract that routes the tool, such as `payments.wallet`. */
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/**
 * Compares which facts the key of an agent's host may state; undefined if they are the same, or if only one contract
 * routes the tool. More facts are weaker, because the agent can read that key.
 */
export function compareHostFacts(before: ToolPlan, after: ToolPlan): HostFactsChange | undefined {
  const [a, b] = [factsOf(before), factsOf(after)];
  const [more, fewer] = [b.some((name) => !a.includes(name)), a.some((name) => !b.includes(name))];
  if ((!more && !fewer) || before.routes.length === 0 || after.routes.length === 0) return undefined;
  return { direction: more && fewer ? null : more ? "weaker" : "stricter", before: a, after: b };
}

function factsOf({ routes }: ToolPlan): readonly string[] {
  return routes.flatMap(({ contract, hostFacts }) => [...hostFacts].map((name) => `${contract}.${name}`)).toSorted();
}
