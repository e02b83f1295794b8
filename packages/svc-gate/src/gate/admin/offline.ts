import { readdir } from "node:fs/promises";
import { dirname } from "node:path";
import { NoLedger, openLedger, openPostgres, type Ledger, type LedgerOptions } from "../../ledger/mod.ts";
import { visible } from "../../wire/mod.ts";
import { ledgerIdOf } from "../start/place.ts";
import { OfflineActs } from "./offline-acts.ts";
import { engine } from "../version.ts";

/** A ledger that no gate in this process serves: in its folder, or in a database, where other gates may be serving it. */
export interface OfflinePlace extends Pick<
  LedgerOptions,
  "acceptSigningKey" | "folder" | "name" | "pinFile" | "signingKeyFile"
> {
  /** A PostgreSQL in place of the folder. */
  readonly databaseUrl: string | undefined;
  /** Null is the root. */
  readonly tenant: string | null;
  /** In a database, the root's ledger and the schema may be created, because the first key is made before the first gate. */
  readonly mayBegin?: boolean;
}

/** The open ledger, and the only way to append an operator's act to it. */
export interface Offline {
  readonly ledger: Ledger;
  readonly acts: OfflineActs;
}

/**
 * Opens a ledger that no gate serves, for one piece of work: the only way to do so. It does not begin a ledger, because the
 * name of a tenant or a folder may be mistyped; `mayBegin` is the only exception.
 *
 * @throws {LedgerRefused} if there is no ledger, or a gate serves its folder
 */
export function openOffline<Value>(place: OfflinePlace, work: (offline: Offline) => Promise<Value>): Promise<Value> {
  return openOfflineBy(async (options) => ({ ledger: await openLedger(options) }), place, work);
}

/** The same, where `openLedger` would refuse the ledger. */
export async function openOfflineBy<As extends Pick<Offline, "ledger">, Value>(
  open: (options: LedgerOptions) => Promise<As>,
  { databaseUrl, mayBegin = false, tenant, ...place }: OfflinePlace,
  work: (offline: As & Offline) => Promise<Value>,
): Promise<Value> {
  const mayBeginRoot = mayBegin && tenant === null;
  const database =
    databaseUrl === undefined
      ? undefined
      : await openPostgres({ url: databaseUrl, connectionsMax: 2, mayMigrate: mayBeginRoot });
  const shared = database && { database, ledger: ledgerIdOf(tenant) };
  const mustExist = shared === undefined || !mayBeginRoot;
  try {
    const opened = await open({ ...place, shared, mustExist, engine });
    try {
      return await work({ ...opened, acts: new OfflineActs(opened.ledger) });
    } finally {
      await opened.ledger.close();
    }
  } catch (error) {
    throw error instanceof NoLedger
      ? await nowhere(error, { folder: place.folder, tenant, isShared: !!shared })
      : error;
  } finally {
    await database?.close();
  }
}

interface Nowhere {
  readonly folder: string;
  readonly tenant: string | null;
  readonly isShared: boolean;
}

/** Names the ledgers that exist, if they can be listed, because the name may be mistyped. */
async function nowhere(error: NoLedger, { folder, tenant, isShared }: Nowhere): Promise<NoLedger> {
  if (tenant === null)
    return isShared
      ? new NoLedger("there is no ledger in the database: run `svc-gate keys create`, or start the first gate on it")
      : error;
  const name = visible(tenant);
  // A connection to a database sees one ledger at a time, so nothing can be listed there.
  if (isShared)
    return new NoLedger(
      `the tenant ${name} has no ledger in the database: the file that SVC_TENANTS names lists the tenants, and a tenant's ` +
        "ledger begins with its first check",
    );
  const others = await foldersIn(dirname(folder));
  const there = others.length === 0 ? "no tenant has one" : `these tenants have one: ${others.join(", ")}`;
  return new NoLedger(`there is no ledger in ${folder}, so the tenant ${name} has none; ${there}`);
}

const shownMax = 20;

async function foldersIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => visible(name));
  const shown = names.toSorted().slice(0, shownMax);
  return names.length > shownMax ? [...shown, `and ${names.length - shownMax} more`] : shown;
}
