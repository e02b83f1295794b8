import { LedgerRefused } from "../../../ledger/mod.ts";
import type { Refusal, Result } from "../../../wire/mod.ts";
import { openIdle, type IdlePlace } from "../idle.ts";
import { enact } from "../keys/idle.ts";
import { operatorName } from "../keys/operator-name.ts";
import { Eraser, type Erased } from "./eraser.ts";
import { readErase } from "./request.ts";

/**
 * Erases parts of receipts in a ledger that no gate serves, as POST /admin/erase does on one that is served.
 *
 * @param body of POST /admin/erase, as bytes
 * @throws {LedgerRefused} where there is no ledger, or a gate serves it
 */
export async function eraseIdle(place: IdlePlace, body: Buffer): Promise<Result<Erased, Refusal>> {
  const request = readErase(body);
  if (!request.ok) return request;
  const { ledger, close } = await openIdle(place);
  try {
    if (ledger.signerChange !== undefined)
      throw new LedgerRefused("the key that signs heads was changed: start the gate once, which records that");
    const scrub = (rewrite: boolean): ReturnType<typeof ledger.scrub> => ledger.scrub(rewrite);
    const eraser = new Eraser({ ledger, enact: (actOf) => enact(ledger, actOf), scrub });
    const erased = await eraser.erase(request.value, operatorName);
    eraser.close();
    return erased;
  } finally {
    await close();
  }
}
