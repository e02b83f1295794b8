import { loadFirstKey, type FirstKey } from "./first-key.ts";
import { KeyRing, type Keys } from "./ring.ts";

export interface LoadedKeys {
  readonly keys: Keys;
  readonly made: FirstKey["made"];
}

/** The first key alone, until the gate's ring of keys is wired to its ledger. */
export async function loadKeys(folder: string, configured: string | undefined): Promise<LoadedKeys> {
  const { digest, made } = await loadFirstKey(folder, configured);
  const nothing = { changes: async () => [], enact: () => Promise.reject(new Error("no ledger")) };
  const uses = { uses: async () => new Map<string, number>(), keepUses: async () => undefined };
  const ring = { gate: nothing, ledger: uses, firstKey: digest, isTenant: () => false };
  return { keys: await KeyRing.open(ring), made };
}
