import type { Refusal, Result } from "../../wire/mod.ts";
import { openOffline, type OfflinePlace } from "../admin/offline.ts";
import { operatorName } from "../policy/reserved-names.ts";
import { Eraser, type Erased } from "./eraser.ts";
import { readErase } from "./request.ts";

/**
 * Erases parts of receipts in a ledger that no gate serves. POST /admin/erase does the same on a served ledger.
 *
 * @param body the body of a POST /admin/erase, as bytes
 * @throws {LedgerRefused} if the ledger does not exist, or a gate serves it
 */
export async function eraseOffline(place: OfflinePlace, body: Buffer): Promise<Result<Erased, Refusal>> {
  const request = readErase(body);
  if (!request.ok) return request;
  return openOffline(place, async ({ ledger, adminEvents }) => {
    const eraser = new Eraser({
      ledger,
      appendAdminEvent: (makeEvent) => adminEvents.appendAdminEvent(makeEvent),
      scrub: (rewrite) => ledger.scrub(rewrite),
    });
    const erased = await eraser.erase(request.value, operatorName);
    eraser.close();
    return erased;
  });
}
