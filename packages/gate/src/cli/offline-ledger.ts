import type { OfflineLedger } from "../server/mod.ts";
import { io } from "./io.ts";

/** A ledger of a data folder, or of SVC_DATABASE_URL, with the settings of its gate. @param pin the root's head pin */
export function locateOffline(
  dataDir: string,
  tenant: string | null,
  pin: string | undefined = io().env["SVC_PIN"] || undefined,
): OfflineLedger {
  return {
    dataDir,
    tenant,
    pin,
    ledgerName: io().env["SVC_LEDGER_NAME"] || undefined,
    signingKey: io().env["SVC_SIGNING_KEY"] || undefined,
    databaseUrl: io().env["SVC_DATABASE_URL"] || undefined,
  };
}
