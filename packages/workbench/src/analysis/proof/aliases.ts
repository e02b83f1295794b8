import type { PolicySet } from "../../../../readers/src/contract.ts";
import type { ContractChange } from "./call.ts";

/**
 * A name that is an alias before or after a change of contracts, and means another tool after it. Null if calls under the
 * name are refused as an unknown tool.
 */
export interface AliasChange extends ContractChange<string | null> {
  readonly name: string;
}

/** Compares what aliases mean. A name that means the same tool on both sides is compared with that tool. */
export function compareAliases(before: PolicySet, after: PolicySet): readonly AliasChange[] {
  const names = [...new Set([...before.aliases.keys(), ...after.aliases.keys()])].toSorted();
  return names.flatMap((name) => {
    const [had, has] = [meaningOf(name, before), meaningOf(name, after)];
    if (had === has) return [];
    const direction = had === null ? "weaker" : has === null ? "stricter" : "changed";
    return [{ name, before: had, after: has, direction }];
  });
}

function meaningOf(name: string, { aliases, tools }: PolicySet): string | null {
  return aliases.get(name) ?? (tools.has(name) ? name : null);
}
