import { openPostgres } from "../../ledger/in-database.ts";
import { dataFolder, openLedger, type Ledger, type LedgerOptions } from "../../ledger/mod.ts";
import { NoLedger } from "../../ledger/errors.ts";
import { visible } from "../../../../core/src/wire/mod.ts";
import { OfflineAdminEvents } from "./offline-admin-events.ts";
import { engine } from "../version.ts";

/**
 * A ledger that no gate in this process serves. It is in a folder or in a database, where other gates may be serving
 * it.
 */
export interface OfflineLedger extends dataFolder.LedgerSettings, Pick<LedgerOptions, "acceptSigningKey"> {
  /** The URL of a PostgreSQL database that is used instead of the folder. */
  readonly databaseUrl: string | undefined;
  /** Null is the root. */
  readonly tenant: string | null;
  /** In a database, the root's ledger and the schema may be created, because the first key is made before the first gate. */
  readonly mayCreate?: boolean;
}

/** The open ledger, and the only way to append an operator's event to it. */
export interface Offline {
  readonly ledger: Ledger;
  readonly adminEvents: OfflineAdminEvents;
}

/**
 * Opens a ledger that no gate serves, for one piece of work. This is the only way to open such a ledger. Only
 * `mayCreate` can create a ledger, because the name of a tenant or a folder may be mistyped.
 *
 * @throws {LedgerRefused} if the ledger does not exist, or a gate serves its folder
 */
export function openOffline<Value>(target: OfflineLedger, work: (offline: Offline) => Promise<Value>): Promise<Value> {
  return openOfflineBy(async (options) => ({ ledger: await openLedger(options) }), target, work);
}

/** Does the same with another function instead of `openLedger`, for ledgers that `openLedger` refuses. */
export function openOfflineBy<As extends Pick<Offline, "ledger">, Value>(
  open: (options: LedgerOptions) => Promise<As>,
  { tenant, ...target }: OfflineLedger,
  work: (offline: As & Offline) => Promise<Value>,
): Promise<Value> {
  return withLedgers(target, async (openIn) => {
    const opened = await openIn(tenant, open);
    try {
      return await work({ ...opened, adminEvents: new OfflineAdminEvents(opened.ledger) });
    } finally {
      await opened.ledger.close();
    }
  });
}

/** Opens the ledger of the root (null) or of a tenant. The caller closes it. */
export type OpenIn = <As>(tenant: string | null, open: (options: LedgerOptions) => Promise<As>) => Promise<As>;

/** Gives access to the ledgers of a folder or a database, and closes the database after the work. */
export async function withLedgers<Value>(
  { databaseUrl, mayCreate = false, acceptSigningKey = false, ...settings }: Omit<OfflineLedger, "tenant">,
  work: (openIn: OpenIn) => Promise<Value>,
): Promise<Value> {
  const database =
    databaseUrl === undefined
      ? undefined
      : await openPostgres({ url: databaseUrl, connectionsMax: 2, mayMigrate: mayCreate });
  const openIn: OpenIn = async (tenant, open) => {
    const mustExist = database === undefined || !mayCreate || tenant !== null;
    try {
      return await open({
        ...dataFolder.locateLedger(settings, tenant, database),
        acceptSigningKey,
        mustExist,
        engine,
      });
    } catch (error) {
      if (!(error instanceof NoLedger)) throw error;
      if (database !== undefined) throw new NoLedger(tenant === null ? noRoot : noTenant(visible(tenant)));
      throw tenant === null ? error : new NoLedger(await noTenantIn(settings.dataDir, tenant));
    }
  };
  try {
    return await work(openIn);
  } finally {
    await database?.close();
  }
}

const noRoot = "the database has no ledger: run `svc-gate keys create`, or start the first gate on it";

/** A connection to a database sees one ledger at a time, so the tenants cannot be listed. */
function noTenant(name: string): string {
  return (
    `the tenant ${name} has no ledger in the database: the file that SVC_TENANTS names lists the tenants, and a tenant's ` +
    "ledger starts with its first check"
  );
}

const shownMax = 20;

/** Names the tenants with a ledger, because the name may be mistyped. */
async function noTenantIn(dataDir: string, tenant: string): Promise<string> {
  const names = (await dataFolder.tenantsIn(dataDir)).map(visible);
  const more = names.length > shownMax ? [`and ${names.length - shownMax} more`] : [];
  const others = [...names.slice(0, shownMax), ...more].join(", ");
  const there = names.length === 0 ? "no tenant has one" : `these tenants have one: ${others}`;
  return `the tenant ${visible(tenant)} has no ledger in ${dataFolder.ledgerFolder(dataDir, tenant)}; ${there}`;
}
