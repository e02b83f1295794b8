import { constants } from "node:fs";
import { access, chmod, copyFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { verifyBackup } from "./backup.ts";
import { databaseFiles, files, pinIn } from "./data-folder.ts";
import { flushFile, makeFolders } from "./durable-file.ts";
import { readLedger } from "./opening.ts";
import { writePin, type Pin } from "./history/pin.ts";
import { divergences, seenHeads, type AskOthers, type Divergence, type ObservedHead } from "./history/observed.ts";
import { takeOwnership } from "./store/sqlite/file.ts";
import { LedgerRefused } from "./store/store.ts";

export interface RestorePlace {
  readonly backup: string;
  /** The data folder, which holds no ledger. */
  readonly folder: string;
  /** Where the head pin is, when it is not in the folder. */
  readonly pinFile: string | undefined;
  readonly askOthers: AskOthers;
}

/** A backup that was verified and held against all that is known of its ledger. Nothing was written yet. */
export interface Restoration extends RestorePlace {
  readonly pin: Pin;
  readonly rows: number;
  /** What says how far the ledger went; where it is empty, nothing does. */
  readonly seen: readonly ObservedHead[];
  /** Of these, what the backup does not have: rows that were answered are lost. */
  readonly divergences: readonly Divergence[];
}

/**
 * Looks at a backup and at the folder that it is for.
 *
 * @throws {LedgerRefused} where a ledger lies there already, or the backup is not whole
 */
export async function planRestore(place: RestorePlace): Promise<Restoration> {
  const { askOthers, backup, folder, pinFile } = place;
  await requireEmpty(folder);
  const { pin, rows } = await verifyBackup(backup);
  const seen = [...(await seenHeads(folder, pinFile)), ...(await askOthers(pin.log))];
  const history = await readLedger(backup);
  try {
    return { ...place, pin, rows, seen, divergences: await divergences(history, seen) };
  } finally {
    await history.close();
  }
}

/**
 * Puts a verified backup into its folder. The pin is moved to its last row where nothing is lost that was seen; where
 * something is, it stays, and no gate starts on the ledger until the loss is recorded.
 */
export async function placeRestoration(restoration: Restoration): Promise<void> {
  const { backup, folder, pin, pinFile, seen } = restoration;
  await makeFolders(folder, 0o700);
  const lock = takeOwnership(folder);
  try {
    await requireEmpty(folder);
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

/** A write-ahead log that was left behind would be played into the restored file. */
async function requireEmpty(folder: string): Promise<void> {
  for (const name of databaseFiles) {
    const file = join(folder, name);
    if (await exists(file))
      throw new LedgerRefused(
        `${file} is there: nothing is restored over a ledger or beside what is left of one. Move it away first, and keep it`,
      );
  }
}

async function exists(file: string): Promise<boolean> {
  return access(file, constants.F_OK).then(
    () => true,
    () => false,
  );
}
