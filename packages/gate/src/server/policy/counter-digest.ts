import type { Counter } from "../../../../core/src/contract/mod.ts";
import type { ActivePolicy } from "./active-policy.ts";

/** The digest under which the ledger keeps a counter of the policy. */
export function digestOf({ counterDigests }: ActivePolicy, { identity, name }: Counter): string {
  const digest = counterDigests.get(identity);
  if (digest === undefined) throw new Error(`the ledger keeps no counter ${name}`);
  return digest;
}
