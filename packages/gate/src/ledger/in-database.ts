import type { LedgerCheck } from "./ledger.ts";
import { historyOf, type LedgerHistory } from "./history/history.ts";
import type { DatabaseOptions, MigrateOptions } from "./store/postgres/postgres.ts";
import type { Database } from "./store/store.ts";
import type { LedgerStore } from "./store/store.ts";

/** Calls `openPostgres` of the store, which is loaded only if a database is used: most gates have none. */
export async function openPostgres(options: DatabaseOptions): Promise<Database> {
  return (await import("./store/postgres/postgres.ts")).openPostgres(options);
}

/** Calls `migratePostgres` of the store. */
export async function migratePostgres(options: MigrateOptions): Promise<readonly number[]> {
  return (await import("./store/postgres/postgres.ts")).migratePostgres(options);
}

export interface DatabaseLocation {
  readonly url: string;
  readonly ledger: string;
}

/** The connections of a reader. A store keeps one for transactions. */
const connectionsMax = 2;

/**
 * Opens a ledger in a database for reading, while gates may serve it.
 *
 * @throws {LedgerRefused} if it does not exist or cannot be read
 */
export async function readSharedLedger(location: DatabaseLocation): Promise<LedgerHistory> {
  const { store, close } = await openExisting(location);
  const checkpoint = (await store.tables.head()).record?.checkpoint;
  const checkpoints = checkpoint === undefined ? [] : [checkpoint];
  return { ...(await historyOf(store.tables)), checkpoints, close, [Symbol.asyncDispose]: close };
}

/**
 * Walks a ledger in a database, while gates may serve it.
 *
 * @throws {LedgerRefused} if it does not exist
 */
export async function inspectSharedLedger(location: DatabaseLocation): Promise<LedgerCheck> {
  await using opened = await openExisting(location);
  return { ...(await opened.store.verify(1, [])), anchored: undefined };
}

interface SharedStore extends AsyncDisposable {
  readonly store: LedgerStore;
  readonly close: () => Promise<void>;
}

async function openExisting({ url, ledger }: DatabaseLocation): Promise<SharedStore> {
  await using stack = new AsyncDisposableStack();
  const database = stack.adopt(await openPostgres({ url, connectionsMax }), (each) => each.close());
  const store = stack.adopt(await database.open({ ledger, log: undefined, mustExist: true }), (each) => each.close());
  const opened = stack.move();
  const close = (): Promise<void> => opened.disposeAsync();
  return { store, close, [Symbol.asyncDispose]: close };
}
