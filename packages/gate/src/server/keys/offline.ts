import { openOffline, type OfflineLedger } from "../admin/offline.ts";
import { tenantId } from "../settings/tenants-file.ts";
import { KeyRing } from "./ring.ts";

/**
 * Opens the keys in a data folder or a database that no gate in this process serves. Only the name of the first key is
 * known here. In a database, `mayCreate` allows to create the first key before the first gate starts, because a gate
 * without a key refuses to start.
 *
 * @throws {LedgerRefused} if the ledger does not exist, or a gate serves it
 */
export function openOfflineKeys<Value>(target: OfflineLedger, work: (ring: KeyRing) => Promise<Value>): Promise<Value> {
  // The keys of all tenants are rows of the root's ledger.
  return openOffline({ ...target, tenant: null }, async ({ ledger, adminEvents }) => {
    const ring = await KeyRing.open({ gate: adminEvents, ledger, firstKey: "", isTenant: (id) => tenantId.test(id) });
    try {
      return await work(ring);
    } finally {
      await ring.close();
    }
  });
}
