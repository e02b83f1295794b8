import { unlink } from "node:fs/promises";
import type { LedgerStore } from "../store/store.ts";
import { LedgerRefused } from "../errors.ts";
import { describeKeySource, readSigningKeys, Signer, writeFirstKey, type SigningKeys } from "./signing-key.ts";

/** The signer of a ledger's heads. */
export interface OpenSigner {
  readonly signer: Signer;
  /** The change if the key is not the one on record. A row must record it, in the first batch that the key signs. */
  readonly change: SignerChange | undefined;
}

export interface SignerChange {
  /** Verifier keys. */
  readonly from: string;
  readonly to: string;
  /** True if the old key signs too. Otherwise the old key is lost, and the operator trusts the new one. */
  readonly isRotation: boolean;
}

/** The key file of a ledger, and what the operator accepts. */
export interface SignerKeyFile {
  readonly file: string;
  /** The old key is lost, so a new key is accepted. */
  readonly acceptNew: boolean;
}

/**
 * Reads the key from its file and compares it with the key on record. Makes the first key of a ledger.
 *
 * @throws {LedgerRefused} if it differs, because nobody would trust heads of an unexpected key
 */
export async function openSigner(store: LedgerStore, { file, acceptNew }: SignerKeyFile): Promise<OpenSigner> {
  const { log, signer: recorded } = store.opened;
  const found = await readSigningKeys(file);
  if (found === undefined && recorded !== undefined && !acceptNew) {
    throw new LedgerRefused(
      `the signing key of the ledger "${log}" is ${recorded}, but its file ${describeKeySource(file)} is missing: ` +
        "restore the file, or name it with SVC_SIGNING_KEY; if the key is lost, use --accept signing-key once, at a start or " +
        "with `svc-gate resume`, to make a new key",
    );
  }
  const signer = new Signer(log, found ?? (await makeKeys(file)));
  const kept = recorded ?? (await keepSigner(store, signer.current));
  try {
    return { signer, change: changeOf(signer, kept, { file, acceptNew }) };
  } catch (error) {
    // Another gate on the same database has meanwhile created the ledger with its own key.
    if (found === undefined) await unlink(file);
    throw error;
  }
}

/** Puts a key on record, durably, unless another gate has put one there. @returns the key on record */
async function keepSigner(store: LedgerStore, verifier: string): Promise<string> {
  const transaction = await store.begin();
  if (transaction.signer === undefined) await transaction.commit([], [], { signer: verifier });
  else await transaction.abort();
  return transaction.signer ?? verifier;
}

function changeOf(signer: Signer, recorded: string, { file, acceptNew }: SignerKeyFile): SignerChange | undefined {
  if (recorded === signer.current) return undefined;
  const isRotation = recorded === signer.before;
  if (isRotation || acceptNew) return { from: recorded, to: signer.current, isRotation };
  throw new LedgerRefused(
    `the signing key of the ledger is ${recorded}, but ${describeKeySource(file)} has ${signer.current}: ` +
      "put the ledger's own key there, or name its file with SVC_SIGNING_KEY (gates that share a ledger share its key); if it is lost, " +
      "start once with --accept signing-key",
  );
}

/** Makes the first key of a file. If two gates do so at the same time, both get the same key. */
async function makeKeys(file: string): Promise<SigningKeys> {
  try {
    return await writeFirstKey(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new LedgerRefused(
      `a signing key cannot be written to ${file} (${code}): set SVC_SIGNING_KEY to a file that this user can write`,
    );
  }
}
