import { KeyFileDamaged } from "../../../gate/src/server/errors.ts";
import { otherFirstKey } from "../../../gate/src/server/mod.ts";
import { dataFolder, missingCheckpoint, otherSigningKey, readLedger, readPin } from "../../../gate/src/ledger/mod.ts";
import { io } from "../../../gate/src/cli/mod.ts";

/** The files next to the ledger in a data folder, compared with the ledger. */
export interface FolderFound {
  /** Files that differ from the ledger's records: somebody has changed them. Sentences. */
  readonly changed: readonly string[];
  /** Differences that may be harmless. Sentences. */
  readonly warnings: readonly string[];
}

/** Checks the files next to a ledger that was found intact. */
export async function lookBeside(folder: string, pin: string | undefined): Promise<FolderFound> {
  await using ledger = await readLedger(folder);
  const firstKey = await otherFirstKey(folder, ledger).catch((error: unknown) => {
    if (error instanceof KeyFileDamaged) return error.message;
    throw error;
  });
  // A gate whose key is elsewhere does not read the folder's.
  const isElsewhere = (io().env["SVC_SIGNING_KEY"] ?? "") !== "";
  const signingKey = isElsewhere ? undefined : await otherSigningKey(folder, ledger);
  const warnings = await missingCheckpoint(folder, await readPin(dataFolder.pinIn(folder, pin)));
  return { changed: [firstKey, signingKey].filter((sentence) => sentence !== undefined), warnings };
}
