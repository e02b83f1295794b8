import { LedgerRefused, openLedger, openPostgres, readLedger, type LedgerOptions } from "../../ledger/mod.ts";
import type { Refusal, Result } from "../../wire/mod.ts";
import { enact } from "../keys/idle.ts";
import { operatorName } from "../keys/operator-name.ts";
import { ledgerIdOf } from "../place.ts";
import { engine } from "../version.ts";
import { Eraser, type Erased } from "./eraser.ts";
import { readErase } from "./request.ts";

/** A ledger that no gate serves: in its folder, or in a database, where gates may be serving it. */
export interface IdleErasurePlace extends Pick<LedgerOptions, "folder" | "pinFile" | "signingKeyFile"> {
  readonly databaseUrl: string | undefined;
  /** Null is the root. */
  readonly tenant: string | null;
}

/**
 * Erases parts of receipts in a ledger that no gate serves, as POST /admin/erase does on one that is served.
 *
 * @param body of POST /admin/erase, as bytes
 * @throws {LedgerRefused} where there is no ledger, or a gate serves it
 */
export async function eraseIdle(
  { databaseUrl, tenant, ...place }: IdleErasurePlace,
  body: Buffer,
): Promise<Result<Erased, Refusal>> {
  const request = readErase(body);
  if (!request.ok) return request;
  const database =
    databaseUrl === undefined
      ? undefined
      : await openPostgres({ url: databaseUrl, connectionsMax: 2, mayMigrate: false });
  try {
    if (database === undefined) await (await readLedger(place.folder)).close();
    const shared = database && { database, ledger: ledgerIdOf(tenant), mustExist: true };
    const ledger = await openLedger({ ...place, shared, engine });
    try {
      if (ledger.signerChange !== undefined)
        throw new LedgerRefused("the key that signs heads was changed: start the gate once, which records that");
      const scrub = (rewrite: boolean): ReturnType<typeof ledger.scrub> => ledger.scrub(rewrite);
      const eraser = new Eraser({ ledger, enact: (actOf) => enact(ledger, actOf), scrub });
      const erased = await eraser.erase(request.value, operatorName);
      eraser.close();
      return erased;
    } finally {
      await ledger.close();
    }
  } finally {
    await database?.close();
  }
}
