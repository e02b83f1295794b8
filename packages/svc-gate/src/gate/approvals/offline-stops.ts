import type { Stop } from "../../approvals/mod.ts";
import type { Receipt } from "../../ledger/entry/mod.ts";
import { good, type Refusal, type Result } from "../../wire/mod.ts";
import { operatorName } from "../policy/reserved-names.ts";
import { openOffline, type OfflinePlace } from "../admin/offline.ts";
import { readLift, readStop } from "./stop-request.ts";
import { liftStop, setStop } from "../policy/stops.ts";

const operator = { by: operatorName, person: operatorName };

/**
 * Sets or lifts a stop in a ledger that no gate serves. POST /admin/stop and /admin/stop/lift do the same on a served
 * ledger.
 *
 * @param body the body of the request, as bytes
 * @throws {LedgerRefused} if the ledger does not exist, or a gate serves it
 */
export async function stopOffline(
  place: OfflinePlace,
  act: "lift" | "set",
  body: Buffer,
): Promise<Result<Receipt, Refusal>> {
  const event = act === "set" ? map(readStop(body), setStop) : map(readLift(body), liftStop);
  if (!event.ok) return event;
  return openOffline(place, ({ adminEvents }) => adminEvents.appendAdminEvent(event.value));
}

function map<Asked, Made>(
  read: Result<Asked, Refusal>,
  make: (asked: Asked, by: typeof operator) => Made,
): Result<Made, Refusal> {
  return read.ok ? good(make(read.value, operator)) : read;
}

/** The stops in force on a ledger that no gate serves. @throws {LedgerRefused} as `stopOffline` does */
export function stopsOffline(place: OfflinePlace): Promise<readonly Stop[]> {
  return openOffline(place, async ({ ledger }) => {
    const transaction = await ledger.begin();
    await transaction.abort();
    return transaction.stops.active;
  });
}
