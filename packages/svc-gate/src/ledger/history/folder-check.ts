import { stat } from "node:fs/promises";
import { join } from "node:path";
import { files, signingKeyOf } from "../data-folder.ts";
import { readIfThere } from "../durable-file.ts";
import type { LedgerHistory } from "./history.ts";
import type { Pin } from "./pin.ts";
import { LedgerRefused } from "../store/store.ts";
import { readSigningKeys, Signer } from "../tree/signing-key.ts";

/**
 * Is the checkpoint gone from a folder in which a gate has served? A pin past row 0 was written with one. A backup has none.
 *
 * @returns a sentence for the operator, or nothing
 */
export async function missingCheckpoint(folder: string, pin: Pin | undefined): Promise<readonly string[]> {
  const file = join(folder, files.checkpoint);
  const hasServed = await stat(join(folder, files.lock)).then(
    () => true,
    () => false,
  );
  if (!hasServed || pin === undefined || pin.seq === 0 || (await readIfThere(file)) !== undefined) return [];
  return [
    `the signed checkpoint ${file} is not there, so it cannot show whether rows are missing from the ledger's end: somebody ` +
      "removed it, or this is a restored backup. Compare the last row with what callers were answered",
  ];
}

/**
 * Is the `signing.key` of a folder another key than the one on record? A gate that is given its key elsewhere does not read it.
 *
 * @returns a sentence for the operator, or nothing
 */
export async function otherSigningKey(
  folder: string,
  { name, signer }: Pick<LedgerHistory, "name" | "signer">,
): Promise<string | undefined> {
  const file = signingKeyOf({ folder });
  try {
    const keys = await readSigningKeys(file);
    if (keys === undefined || signer === undefined) return undefined;
    const { current, before } = new Signer(name, keys);
    if ([current, before].includes(signer)) return undefined;
    return `${file} is not the key on record: it holds ${current}, and ${signer} signs the ledger's heads`;
  } catch (error) {
    if (error instanceof LedgerRefused) return error.message;
    throw error;
  }
}
