import { join } from "node:path";

/** Where a ledger lies that no gate serves, and what it is opened with. */
export interface LedgerPlace {
  readonly folder: string;
  readonly pinFile: string | undefined;
  readonly signingKeyFile: string | undefined;
  readonly databaseUrl: string | undefined;
  /** Null is the root. */
  readonly tenant: string | null;
}

/** A ledger of a data folder, or of SVC_DATABASE_URL, where the gate finds it. @param pin the root's */
export function ledgerPlace(dataDir: string, tenant: string | null, pin: string | undefined): LedgerPlace {
  const databaseUrl = process.env["SVC_DATABASE_URL"] || undefined;
  return {
    folder: tenant === null ? dataDir : join(dataDir, "tenants", tenant),
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
