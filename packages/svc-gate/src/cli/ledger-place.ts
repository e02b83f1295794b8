import { join } from "node:path";
import type { OfflinePlace } from "../gate/mod.ts";

/** A ledger of a data folder, or of SVC_DATABASE_URL, as the settings of its gate place it. @param pin the root's */
export function ledgerPlace(
  dataDir: string,
  tenant: string | null,
  pin: string | undefined = process.env["SVC_PIN"] || undefined,
): OfflinePlace {
  const databaseUrl = process.env["SVC_DATABASE_URL"] || undefined;
  return {
    folder: tenant === null ? dataDir : join(dataDir, "tenants", tenant),
    name: tenant === null ? process.env["SVC_LEDGER_NAME"] || undefined : undefined,
    pinFile: pinOf(pin, tenant),
    // Ledgers in a database share one.
    signingKeyFile: process.env["SVC_SIGNING_KEY"] || (databaseUrl && join(dataDir, "signing.key")),
    databaseUrl,
    tenant,
  };
}

/** As the gate names the pins of tenants. */
export function pinOf(pin: string | undefined, tenant: string | null): string | undefined {
  return pin === undefined || tenant === null ? pin : `${pin}.${tenant}`;
}
