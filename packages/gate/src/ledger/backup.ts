import { chmod, rm } from "node:fs/promises";
import { join } from "node:path";
import { files, pinIn } from "./files/data-folder.ts";
import { flushFile } from "./files/durable-file.ts";
import { inspectLedger, readLedger } from "./opening.ts";
import { readPin, writePin, type Pin } from "./history/pin.ts";
import { lastHead } from "./history/observed.ts";
import { copyDatabase } from "./store/sqlite/copy.ts";
import { LedgerRefused } from "./errors.ts";

/** A verified copy of a ledger. */
export interface Backup {
  readonly pin: Pin;
  readonly rows: number;
}

/** Receives the progress of a copy, in pages of the file. */
export type CopyProgress = (done: number, all: number) => void;

/**
 * Copies the ledger of a folder, even while a gate serves it, and verifies the copy. When this resolves, the copy is on
 * disk as one plain file next to its pin. The pin is written last: without it, the folder is not a backup. A damaged
 * copy is removed.
 *
 * @param to an existing folder without a ledger
 * @throws {LedgerRefused} if the ledger does not exist or is damaged
 */
export async function backUpLedger(folder: string, to: string, progress: CopyProgress): Promise<Backup> {
  const copy = join(to, files.database);
  try {
    await copyDatabase(folder, copy, progress);
    await chmod(copy, 0o600);
    await flushFile(copy);
    const { broken, rows } = await inspectLedger({ folder: to });
    if (broken !== undefined)
      throw new LedgerRefused(
        `the ledger in ${folder} is broken at row ${broken.seq}: ${broken.problem}; no backup was made`,
      );
    const history = await readLedger(to);
    const pin = await lastHead(history);
    await history.close();
    await writePin(pinIn(to), pin);
    return { pin, rows };
  } catch (error) {
    await rm(copy, { force: true });
    throw error;
  }
}

/**
 * Reads a backup and verifies all of it.
 *
 * @throws {LedgerRefused} if it is not a backup, or is damaged
 */
export async function verifyBackup(folder: string): Promise<Backup> {
  const pin = await readPin(pinIn(folder));
  if (pin === undefined)
    throw new LedgerRefused(
      `${folder} is not a complete backup: the file ${files.pin}, which is written last, is missing. ` +
        `Name a folder that \`svc-gate backup\` made`,
    );
  const { broken, rows } = await inspectLedger({ folder });
  if (broken !== undefined)
    throw new LedgerRefused(
      `the backup ${folder} is broken at row ${broken.seq}: ${broken.problem}; nothing was restored: take another backup`,
    );
  return { pin, rows };
}
