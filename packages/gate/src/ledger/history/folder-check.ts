import { existsSync } from "node:fs";
import { join } from "node:path";
import { files, signingKeyOf } from "../files/data-folder.ts";
import { readIfThere } from "../files/durable-file.ts";
import type { LedgerHistory } from "./history.ts";
import type { Pin } from "./pin.ts";
import { LedgerRefused } from "../errors.ts";
import { readSigningKeys, Signer } from "../signing/signing-key.ts";

/**
 * Checks if the checkpoint is missing from a folder that a gate has served: a pin past row 0 was written with a
 * checkpoint. A backup has none.
 *
 * @returns a sentence for the operator, or nothing
 */
export async function missingCheckpoint(folder: string, pin: Pin | undefined): Promise<readonly string[]> {
  const file = join(folder, files.checkpoint);
  const hasServed = existsSync(join(folder, files.lock));
  if (!hasServed || pin === undefined || pin.seq === 0 || (await readIfThere(file)) !== undefined) return [];
  return [
    `the signed checkpoint ${file} is missing, so it cannot show whether rows are missing from the ledger's end: somebody ` +
      "removed it, or this is a restored backup. Compare the last row with the answers that callers received",
  ];
}

/**
 * Checks if the `signing.key` of a folder differs from the key on record. A gate with its key elsewhere does not read
 * this file.
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
    return `${file} is not the key on record: its key is ${current}, but ${signer} signs the ledger's heads`;
  } catch (error) {
    if (error instanceof LedgerRefused) return error.message;
    throw error;
  }
}
