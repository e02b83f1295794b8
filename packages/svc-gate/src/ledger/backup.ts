import { chmod, rm } from "node:fs/promises";
import { join } from "node:path";
import { files, pinIn } from "./data-folder.ts";
import { flushFile } from "./durable-file.ts";
import { inspectLedger, readLedger } from "./opening.ts";
import { readPin, writePin, type Pin } from "./history/pin.ts";
import { lastHead } from "./history/observed.ts";
import { copyDatabase } from "./store/sqlite/copy.ts";
import { LedgerRefused } from "./store/store.ts";

/** A copy of a ledger that was found whole. */
export interface Backup {
  readonly pin: Pin;
  /** Rows. */
  readonly rows: number;
}

/** How much is copied, in pages of the file. */
export type CopyProgress = (done: number, all: number) => void;

/**
 * Copies the ledger of a folder as it stands, whether a gate is serving it or not, and verifies the copy. The copy is on
 * disk when this resolves, one plain file beside its pin, which is written last: without it, it is not a backup. A copy that
 * is not whole is taken away again.
 *
 * @param to a folder that is there and holds no ledger
 * @throws {LedgerRefused} when there is no ledger, or it is damaged
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
        `the ledger in ${folder} is broken at row ${broken.seq}: ${broken.problem}; no backup was made of it`,
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
 * @throws {LedgerRefused} when it is none, or not what it was
 */
export async function verifyBackup(folder: string): Promise<Backup> {
  const pin = await readPin(pinIn(folder));
  if (pin === undefined)
    throw new LedgerRefused(
      `${folder} is no whole backup: it has no ${files.pin}, which is written last. Name a folder that \`svc-gate backup\` made`,
    );
  const { broken, rows } = await inspectLedger({ folder });
  if (broken !== undefined)
    throw new LedgerRefused(
      `the backup ${folder} is broken at row ${broken.seq}: ${broken.problem}; nothing was restored: take another backup`,
    );
  return { pin, rows };
}
