import { existsSync } from "node:fs";
import { chmod, copyFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { verifyBackup } from "./backup.ts";
import { databaseFiles, files, pinIn } from "./files/data-folder.ts";
import { flushFile, makeFolders } from "./files/durable-file.ts";
import { readLedger } from "./opening.ts";
import { writePin, type Pin } from "./history/pin.ts";
import { divergences, seenHeads, type AskOthers, type Divergence, type ObservedHead } from "./history/observed.ts";
import { takeOwnership } from "./store/sqlite/file.ts";
import { LedgerRefused } from "./errors.ts";

export interface RestoreTarget {
  readonly backup: string;
  /** The data folder, which must not have a ledger. */
  readonly folder: string;
  /** The file of the head pin, if it is not in the folder. */
  readonly pinFile: string | undefined;
  readonly askOthers: AskOthers;
}

/** A backup that was verified and compared with all known heads of its ledger. Nothing was written yet. */
export interface Restoration extends RestoreTarget {
  readonly pin: Pin;
  readonly rows: number;
  /** The known heads of the ledger; empty if nothing is known. */
  readonly seen: readonly ObservedHead[];
  /** The heads that the backup does not have: their receipts are lost. */
  readonly divergences: readonly Divergence[];
}

/**
 * Verifies a backup and the folder for it.
 *
 * @throws {LedgerRefused} if the folder already has a ledger, or the backup is not complete
 */
export async function planRestore(target: RestoreTarget): Promise<Restoration> {
  const { askOthers, backup, folder, pinFile } = target;
  requireEmpty(folder);
  const { pin, rows } = await verifyBackup(backup);
  const seen = [...(await seenHeads(folder, pinFile)), ...(await askOthers(pin.log))];
  await using history = await readLedger(backup);
  return { ...target, pin, rows, seen, divergences: await divergences(history, seen) };
}

/**
 * Copies a verified backup into its folder. If nothing is lost, moves the pin to its last row. If something is lost,
 * the pin stays, and no gate starts on the ledger until the loss is recorded.
 */
export async function applyRestoration(restoration: Restoration): Promise<void> {
  const { backup, folder, pin, pinFile, seen } = restoration;
  await makeFolders(folder, 0o700);
  const lock = takeOwnership(folder);
  try {
    requireEmpty(folder);
    const beside = join(folder, `${files.database}.new`);
    await copyFile(join(backup, files.database), beside);
    await chmod(beside, 0o600);
    await flushFile(beside);
    await rename(beside, join(folder, files.database));
    if (seen.length > 0 && restoration.divergences.length === 0) await writePin(pinIn(folder, pinFile), pin);
  } finally {
    lock.close();
  }
}

/** Refuses a folder with files of a ledger: an old write-ahead log would be applied to the restored file. */
function requireEmpty(folder: string): void {
  for (const name of databaseFiles) {
    const file = join(folder, name);
    if (existsSync(file))
      throw new LedgerRefused(
        `${file} already exists: a restore never overwrites a ledger or mixes with its files. Move the file away first, and keep it`,
      );
  }
}
