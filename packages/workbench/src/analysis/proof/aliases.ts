import type { PolicySet } from "../../../../svc-gate/src/contract/mod.ts";
import type { Direction } from "./call.ts";

/** A name that means another tool after a change of contracts, and is an alias before or after it. */
export interface AliasChange {
  readonly name: string;
  /** The tool that the name means; null if calls under the name are refused as an unknown tool. */
  readonly before: string | null;
  readonly after: string | null;
  /** Null if the name means a tool before and another one after. */
  readonly direction: Direction | null;
}

/** Compares what aliases mean. A name that means the same tool on both sides is compared with that tool. */
export function compareAliases(before: PolicySet, after: PolicySet): readonly AliasChange[] {
  const names = [...new Set([...before.aliases.keys(), ...after.aliases.keys()])].toSorted();
  return names.flatMap((name) => {
    const [had, has] = [meaningOf(name, before), meaningOf(name, after)];
    if (had === has) return [];
    return [{ name, before: had, after: has, direction: had === null ? "weaker" : has === null ? "stricter" : null }];
  });
}

function meaningOf(name: string, { aliases, tools }: PolicySet): string | null {
  return aliases.get(name) ?? (tools.has(name) ? name : null);
}
