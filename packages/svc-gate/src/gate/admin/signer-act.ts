import type { Ledger } from "../../ledger/mod.ts";
import type { Act } from "./act.ts";

/** The act that says which key signs heads from its row on. The row is under the signature of the new one. */
export function signerAct({ from, to, isRotation }: NonNullable<Ledger["signerChange"]>, by: string): Act {
  return {
    by,
    act: isRotation ? "signer.rotate" : "signer.replace",
    body: { from, to },
    reason: isRotation
      ? `Svc: heads are signed by the key ${to} from here on, and by the one before it as long as that is kept`
      : `Svc: heads are signed by the key ${to} from here on; the one before it is lost or given up, says the operator`,
  };
}
