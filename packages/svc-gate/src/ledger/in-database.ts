import { lastSeq } from "./history/query.ts";
import { readerOf } from "./tree/reader.ts";
import { keyDigester, type LedgerCheck } from "./ledger.ts";
import type { LedgerHistory } from "./history/history.ts";
import type { Database, DatabaseOptions, MigrateOptions } from "./store/postgres/postgres.ts";
import type { LedgerStore } from "./store/store.ts";

/** As the store's own, which is brought in when a database is named: most gates have none. */
export async function openPostgres(options: DatabaseOptions): Promise<Database> {
  return (await import("./store/postgres/postgres.ts")).openPostgres(options);
}

/** As the store's own. */
export async function migratePostgres(options: MigrateOptions): Promise<readonly number[]> {
  return (await import("./store/postgres/postgres.ts")).migratePostgres(options);
}

/** A ledger that is in a database: as a gate reaches it, and its id there. */
export interface DatabaseLocation {
  readonly url: string;
  readonly ledger: string;
}

/** Connections of one that only reads: a store keeps one apart for turns. */
const connectionsMax = 2;

/**
 * Opens a ledger in a database for reading, beside the gates that serve it.
 *
 * @throws {LedgerRefused} when there is none, or it cannot be read
 */
export async function readSharedLedger(place: DatabaseLocation): Promise<LedgerHistory> {
  const { store, close } = await openExisting(place);
  const { log, counterSecret, signer } = store.opened;
  const checkpoint = await store.checkpoint();
  const kept = await store.history.counters();
  return {
    ...store.history,
    name: log,
    kept,
    rows: await lastSeq(store),
    keyDigest: keyDigester(counterSecret),
    signer,
    checkpoints: checkpoint === undefined ? [] : [checkpoint],
    hashes: readerOf(store.history),
    close,
  };
}

/** Walks a ledger in a database, beside the gates that serve it. @throws {LedgerRefused} when there is none */
export async function inspectSharedLedger(place: DatabaseLocation): Promise<LedgerCheck> {
  const { store, close } = await openExisting(place);
  try {
    return { ...(await store.verify(1, [])), anchored: undefined };
  } finally {
    await close();
  }
}

async function openExisting({
  url,
  ledger,
}: DatabaseLocation): Promise<{ readonly store: LedgerStore; readonly close: () => Promise<void> }> {
  const database = await openPostgres({ url, connectionsMax });
  try {
    const store = await database.open({ ledger, log: undefined, mustExist: true });
    return {
      store,
      close: async () => {
        await store.close();
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}
