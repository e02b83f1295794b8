import { unlink } from "node:fs/promises";
import { LedgerRefused, type LedgerStore } from "../store/store.ts";
import { placeOfKeys, readSigningKeys, Signer, writeFirstKey, type SigningKeys } from "./signing-key.ts";

/** Who signs a ledger's heads now. */
export interface OpenSigner {
  readonly signer: Signer;
  /** The key is another than the one on record: a row must say so, in the batch from which on it counts. */
  readonly change: SignerChange | undefined;
}

export interface SignerChange {
  /** Verifier keys. */
  readonly from: string;
  readonly to: string;
  /** Does the key before sign too? Else it is lost, and the operator vouches for the new one. */
  readonly isRotation: boolean;
}

/** Where the key of a ledger lies, and what the operator says of it. */
export interface SignerPlace {
  readonly file: string;
  /** The key before is lost. */
  readonly acceptNew: boolean;
}

/**
 * Takes the key from its file and holds it against the one on record; the first of all is made.
 *
 * @throws {LedgerRefused} where it is another: heads that nobody expects are worth nothing
 */
export async function openSigner(store: LedgerStore, { file, acceptNew }: SignerPlace): Promise<OpenSigner> {
  const { log, signer: recorded } = store.opened;
  const found = await readSigningKeys(file);
  if (found === undefined && recorded !== undefined && !acceptNew) {
    throw new LedgerRefused(
      `the heads of the ledger "${log}" are signed by the key ${recorded}, and its file ${placeOfKeys(file)} is not there: ` +
        "restore it, or name it with SVC_SIGNING_KEY; if it is lost, say once --accept signing-key, at a start or with resume, " +
        "and a new one is made",
    );
  }
  const signer = new Signer(log, found ?? (await makeKeys(file)));
  const kept = recorded ?? (await store.keepSigner(signer.current));
  try {
    return { signer, change: changeOf(signer, kept, { file, acceptNew }) };
  } catch (error) {
    // Meanwhile another gate on the same database has begun the ledger with its own key.
    if (found === undefined) await unlink(file);
    throw error;
  }
}

function changeOf(signer: Signer, recorded: string, { file, acceptNew }: SignerPlace): SignerChange | undefined {
  if (recorded === signer.current) return undefined;
  const isRotation = recorded === signer.before;
  if (isRotation || acceptNew) return { from: recorded, to: signer.current, isRotation };
  throw new LedgerRefused(
    `the ledger's heads are signed by the key ${recorded}, and ${placeOfKeys(file)} holds ${signer.current}: ` +
      "put the ledger's own key there, or name its file with SVC_SIGNING_KEY (gates that share a ledger share its key); if it is lost, " +
      "start once with --accept signing-key",
  );
}

/** Of two gates that make a file's first key at once, one does, and both have it. */
async function makeKeys(file: string): Promise<SigningKeys> {
  try {
    return await writeFirstKey(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new LedgerRefused(
      `a signing key cannot be written to ${file} (${code}): SVC_SIGNING_KEY names a file that this user can write`,
    );
  }
}
