import { backup, DatabaseSync } from "node:sqlite";
import { makePrivate } from "../../files/private-files.ts";
import { hasLedger } from "../../files/data-folder.ts";
import { explain, makeEmptyError, makeNoLedgerError, openForReading, readMeta } from "./file.ts";

/** The number of pages that are copied between two reports of progress: 8 MiB. */
const stepPages = 1024;

/**
 * Copies a ledger as it is at this moment into one file without a write-ahead log. A gate may write meanwhile, because
 * this uses SQLite's online backup.
 *
 * @throws {LedgerRefused} if there is no ledger, or if it cannot be read
 */
export async function copyDatabase(
  folder: string,
  copy: string,
  progress: (done: number, all: number) => void,
): Promise<void> {
  if (!hasLedger(folder)) throw makeNoLedgerError(folder);
  try {
    using source = openForReading(folder);
    if (readMeta(source) === undefined) throw makeEmptyError(folder);
    // One read transaction fixes the state. Otherwise each commit of the gate would restart the copy.
    source.exec("BEGIN; SELECT count(*) FROM meta;");
    makePrivate(copy);
    await backup(source, copy, {
      rate: stepPages,
      progress: ({ totalPages, remainingPages }) => progress(totalPages - remainingPages, totalPages),
    });
    makePlain(copy);
  } catch (error) {
    throw explain(error, folder);
  }
}

/** Turns the log off, so that the copy can be read on read-only media. The gate that opens it turns the log on again. */
function makePlain(copy: string): void {
  using database = new DatabaseSync(copy);
  database.exec("PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE;");
}
