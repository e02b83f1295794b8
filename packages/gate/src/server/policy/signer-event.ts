import type { Ledger } from "../../ledger/mod.ts";
import type { AdminEvent } from "./admin-event.ts";

/** Returns the event that records which key signs heads from its row on. The new key signs the head with this row. */
export function signerEvent({ from, to, isRotation }: NonNullable<Ledger["signerChange"]>, by: string): AdminEvent {
  return {
    by,
    act: isRotation ? "signer.rotate" : "signer.replace",
    body: { from, to },
    reason: isRotation
      ? `Svc: the key ${to} signs heads from this row on, and the old key too while it is kept`
      : `Svc: the key ${to} signs heads from this row on; the operator stated that the old key is lost or abandoned`,
  };
}
