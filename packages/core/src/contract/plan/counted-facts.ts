import type { JsonObject, KeyKind } from "../../wire/mod.ts";
import type { HostFacts } from "../core/core.ts";

/**
 * The facts of a call that count under one contract. A host's key may state only those that the contract lists; others
 * are absent.
 */
export function countedFacts(
  facts: JsonObject,
  keyKind: KeyKind | undefined,
  hostFacts: HostFacts | undefined,
): JsonObject {
  if (keyKind === undefined) return facts;
  return new Map([...facts].filter(([name]) => hostFacts?.has(name) === true));
}
