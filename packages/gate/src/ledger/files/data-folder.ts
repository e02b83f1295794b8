import { statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { Database } from "../store/store.ts";

/** The files of a data folder. The folder of a tenant's ledger uses the same names. */
export const files = {
  database: "ledger.db",
  log: "ledger.db-wal",
  lock: "owner.lock",
  /** The last head that is certainly durable. */
  pin: "head.pin",
  /** The latest signed checkpoint, for anyone who reads the folder from outside. */
  checkpoint: "checkpoint",
  /** The latest checkpoint that a quorum of witnesses has cosigned. */
  cosigned: "checkpoint.cosigned",
  /** A checkpoint that the ledger lacks, which kept its gate from starting. */
  seen: "checkpoint.seen",
  /** The private key that signs heads. */
  signingKey: "signing.key",
  /** The digest of the first key. */
  keys: "keys.json",
  firstKey: "first-key",
  /** When keys were last used: outside the ledger, because it is not part of the history. */
  keyUses: "key-uses.json",
  /** The secret that seals the console's sessions. */
  consoleSecret: "console.secret",
  /** The URL and a key of the gate that serves the folder. */
  operator: "operator.json",
  /** A folder with a folder for each tenant's ledger. */
  tenants: "tenants",
} as const;

/** The ledger's file, and the files that SQLite keeps next to it. */
export const databaseFiles: readonly string[] = ["", "-wal", "-shm", "-journal"].map(
  (suffix) => files.database + suffix,
);

const { signingKey: _, ...ownNames } = files;

/** All files that a gate writes in a data folder, except the signing key. The folder may have other files. */
export const ownFiles: ReadonlySet<string> = new Set(
  [...Object.values(ownNames), ...databaseFiles, `${files.lock}-journal`].flatMap((name) => [name, `${name}.new`]),
);

/** The settings that determine where a gate's ledgers are. */
export interface LedgerSettings {
  readonly dataDir: string;
  /** The name of the root's ledger. */
  readonly ledgerName: string | undefined;
  /** The head pin of the root, outside its folder. */
  readonly pin: string | undefined;
  readonly signingKey: string | undefined;
}

export interface LedgerLocation {
  /** Created with mode 0700 if it does not exist. */
  readonly folder: string;
  /** The database that stores the ledger instead of the folder, and the ledger's id there. */
  readonly shared?: { readonly database: Database; readonly ledger: string } | undefined;
  /**
   * The file of the head pin. By default it is in the folder, where it anchors nothing outside; a shared ledger then
   * has none.
   */
  readonly pinFile?: string | undefined;
  /** The name of a new ledger, at most 100 bytes; by default a random one. */
  readonly name?: string | undefined;
  /**
   * The file of the private key that signs heads; by default `signing.key` in the folder, created with a new ledger.
   */
  readonly signingKeyFile?: string | undefined;
}

/** @param tenant null is the root */
export function locateLedger(
  { dataDir, ledgerName, pin, signingKey }: LedgerSettings,
  tenant: string | null,
  database?: Database,
): LedgerLocation {
  return {
    folder: ledgerFolder(dataDir, tenant),
    shared: database && { database, ledger: ledgerIdOf(tenant) },
    pinFile: pin === undefined || tenant === null ? pin : `${pin}.${tenant}`,
    name: tenant === null ? ledgerName : undefined,
    // The ledgers in a database share one key, because their gates do; in folders each ledger has its own.
    signingKeyFile: signingKey ?? (database && join(dataDir, files.signingKey)),
  };
}

/** Returns the folder of the root's ledger (null) or of a tenant's, in a data folder or a backup. */
export function ledgerFolder(dataDir: string, tenant: string | null): string {
  return tenant === null ? dataDir : join(dataDir, files.tenants, tenant);
}

/** Returns the id of a ledger in a database. No tenant's id can be the root's. */
export function ledgerIdOf(tenant: string | null): string {
  return tenant === null ? "root" : `tenant.${tenant}`;
}

/** Returns the tenant of a ledger's folder; null for the root. */
export function tenantOf(folder: string): string | null {
  const path = resolve(folder);
  return basename(dirname(path)) === files.tenants ? basename(path) : null;
}

/** Lists the tenants that have a ledger in a data folder. */
export async function tenantsIn(dataDir: string): Promise<readonly string[]> {
  const names = await readdir(join(dataDir, files.tenants)).catch(() => []);
  return names.filter((tenant) => hasLedger(ledgerFolder(dataDir, tenant))).toSorted();
}

/** Returns true if the folder has a ledger's file that is not empty. */
export function hasLedger(folder: string): boolean {
  return (statSync(join(folder, files.database), { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** The head pin of a ledger; undefined if a shared ledger has none. */
export function pinOf({ folder, pinFile, shared }: LedgerLocation): string | undefined {
  return shared === undefined ? pinIn(folder, pinFile) : pinFile;
}

/** The head pin of a ledger in a folder. */
export function pinIn(folder: string, pinFile?: string): string {
  return pinFile ?? join(folder, files.pin);
}

export function signingKeyOf({ folder, signingKeyFile }: LedgerLocation): string {
  return signingKeyFile ?? join(folder, files.signingKey);
}
