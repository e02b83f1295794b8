import { backup, DatabaseSync } from "node:sqlite";
import { makePrivate } from "../../private-files.ts";
import { hasLedger } from "../../data-folder.ts";
import { explain, openForReading, readMeta } from "./file.ts";
import { LedgerRefused } from "../store.ts";

/** Pages that are copied between two looks at how far it is: 8 MiB. */
const stepPages = 1024;

/**
 * Copies a ledger's file as it stands at this moment, beside a gate that writes to it (SQLite's online backup), into one
 * plain file without a write-ahead log.
 *
 * @throws {LedgerRefused} when there is no ledger, or it cannot be read
 */
export async function copyDatabase(
  folder: string,
  copy: string,
  progress: (done: number, all: number) => void,
): Promise<void> {
  if (!hasLedger(folder)) throw new LedgerRefused(`there is no ledger in ${folder}`);
  try {
    const source = openForReading(folder);
    try {
      if (readMeta(source) === undefined) throw new LedgerRefused(`there is no ledger in ${folder}: its file is empty`);
      // Within one read, so that it is the state of one moment: else each commit of the gate makes it begin again.
      source.exec("BEGIN; SELECT count(*) FROM meta;");
      makePrivate(copy);
      await backup(source, copy, {
        rate: stepPages,
        progress: ({ totalPages, remainingPages }) => progress(totalPages - remainingPages, totalPages),
      });
    } finally {
      source.close();
    }
    makePlain(copy);
  } catch (error) {
    throw explain(error, folder);
  }
}

/** A file that is read where nothing can be written beside it. The gate that opens it turns its log on again. */
function makePlain(copy: string): void {
  const database = new DatabaseSync(copy);
  try {
    database.exec("PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE;");
  } finally {
    database.close();
  }
}
