import { KeyFileDamaged, otherFirstKey } from "../../gate/mod.ts";
import { dataFolder, missingCheckpoint, otherSigningKey, readLedger, readPin } from "../../ledger/mod.ts";

/** What a data folder holds beside its ledger, held against what the ledger says of it. */
export interface FolderFound {
  /** Files that are not what the ledger says: somebody has changed them. Sentences. */
  readonly changed: readonly string[];
  /** What may have an innocent reason. Sentences. */
  readonly warnings: readonly string[];
}

/** Looks at the files beside a ledger that was found whole. */
export async function lookBeside(folder: string, pin: string | undefined): Promise<FolderFound> {
  const ledger = await readLedger(folder);
  try {
    const firstKey = await otherFirstKey(folder, ledger).catch((error: unknown) => {
      if (error instanceof KeyFileDamaged) return error.message;
      throw error;
    });
    // A gate that is given its key elsewhere does not read the folder's.
    const isElsewhere = (process.env["SVC_SIGNING_KEY"] ?? "") !== "";
    const signingKey = isElsewhere ? undefined : await otherSigningKey(folder, ledger);
    const warnings = await missingCheckpoint(folder, await readPin(dataFolder.pinIn(folder, pin)));
    return { changed: [firstKey, signingKey].filter((sentence) => sentence !== undefined), warnings };
  } finally {
    await ledger.close();
  }
}
