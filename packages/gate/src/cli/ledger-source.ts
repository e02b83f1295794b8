import { inspectSharedLedger, readSharedLedger } from "../ledger/in-database.ts";
import { dataFolder, inspectLedger, readLedger, type LedgerCheck, type LedgerHistory } from "../ledger/mod.ts";
import { NoLedger } from "../ledger/errors.ts";
import { io } from "./io.ts";
import { BadInput } from "./outcome.ts";

/** The ledger that a command reads, in a folder or in SVC_DATABASE_URL, whether or not a gate serves it. */
export interface LedgerSource {
  readonly isShared: boolean;
  /** Null is the root. */
  readonly tenant: string | null;
  /** @throws {LedgerRefused} if the ledger does not exist, or cannot be read */
  readonly open: () => Promise<LedgerHistory>;
  /** Walks the chain. The options only apply to a folder. */
  readonly walk: (options: {
    readonly pinFile: string | undefined;
    readonly chainAlone: boolean;
  }) => Promise<LedgerCheck>;
}

/** The option `--database`: the root's ledger (true), or that of a tenant; undefined if it was not given. */
export type DatabaseOption = string | true | undefined;

export function ledgerSource(folder: string, database: DatabaseOption): LedgerSource {
  if (database === undefined)
    return {
      isShared: false,
      tenant: dataFolder.tenantOf(folder),
      open: () => readLedger(folder).catch(elsewhere),
      walk: (options) => inspectLedger({ folder, ...options }).catch(elsewhere),
    };
  const url = io().env["SVC_DATABASE_URL"];
  if (url === undefined) throw new BadInput("--database reads the database in SVC_DATABASE_URL: set that variable");
  const tenant = database === true ? null : database;
  const address = { url, ledger: dataFolder.ledgerIdOf(tenant) };
  return {
    isShared: true,
    tenant,
    open: () => readSharedLedger(address),
    walk: () => inspectSharedLedger(address),
  };
}

/** The folder has no ledger, and no option tells the command to read the database that is set. */
function elsewhere(error: unknown): never {
  if (!(error instanceof NoLedger) || !io().env["SVC_DATABASE_URL"]) throw error;
  throw new NoLedger(`${error.message}, or add --database to read the one in SVC_DATABASE_URL`);
}
