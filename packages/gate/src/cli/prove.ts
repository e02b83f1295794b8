import { writeFile } from "node:fs/promises";
import { ledgerTables, type LedgerHistory } from "../ledger/mod.ts";
import {
  inclusionProof,
  openCheckpoint,
  parseVerifierKey,
  proofText,
  verifyProof,
  type VerifierKey,
} from "../../../core/src/record/tree/mod.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { ledgerSource, type DatabaseOption } from "./ledger-source.ts";
import { BadInput, notWritten, type Outcome } from "./outcome.ts";
import { counted } from "./counted.ts";

export interface ProveOptions {
  readonly out: string | undefined;
  readonly database: DatabaseOption;
}

/** `svc-gate prove`: writes one file which proves that a row is in the ledger, under a signed head. */
export async function proveCommand(row: string, folder: string, options: ProveOptions): Promise<Outcome> {
  if (!/^[1-9][0-9]{0,15}$/.test(row))
    throw new BadInput(`"${row}" is not a row: a row's number is a whole number from 1`);
  const seq = Number(row);
  await using ledger = await ledgerSource(folder, options.database).open();
  const keys = keysOf(ledger);
  const { size, note } = headOver(ledger, keys, seq);
  const [leaf = ""] = await ledgerTables.leavesOf(ledger.tables, seq, 1);
  const proof = await inclusionProof(ledger.hashes, seq - 1, size);
  const text = proofText({ leaf, index: seq - 1, proof, checkpoint: note });
  requireProven(text, keys, seq);
  const file = options.out ?? `${seq}.tlog-proof`;
  if (file === "-") return { exitCode: 0, text: text.trimEnd(), forPrograms: true };
  await writeFile(file, text).catch((error: unknown) => {
    throw notWritten(file, error);
  });
  const key = ledger.signer === undefined ? "" : `\n  verify it with  svc-gate verify ${file} --key ${ledger.signer}`;
  return {
    exitCode: 0,
    text: `${file}: row ${seq} is in the tree of ${counted(size, "row")} of ${ledger.name}${key}`,
  };
}

/** The key on record for heads; none before the first head is signed. */
function keysOf({ signer }: LedgerHistory): readonly VerifierKey[] {
  const key = signer === undefined ? undefined : parseVerifierKey(signer);
  return key?.ok === true ? [key.value] : [];
}

/** If a row, or a hash of the tree, was changed since then, its proof is not valid. */
function requireProven(text: string, keys: readonly VerifierKey[], seq: number): void {
  const proven = verifyProof(text, keys);
  if (proven.ok) return;
  throw new BadInput(
    `row ${seq} cannot be proven: the rows do not give the signed root (${visible(proven.problem)}); run \`svc-gate verify\``,
  );
}

interface KeptHead {
  readonly size: number;
  readonly note: string;
}

/**
 * The head for the proof: one that witnesses have cosigned if it covers the row, else the latest. A head that the key
 * on record did not sign proves nothing.
 */
function headOver({ checkpoints, rows }: LedgerHistory, keys: readonly VerifierKey[], seq: number): KeptHead {
  const heads = checkpoints.map((note) => {
    const opened = openCheckpoint(note, keys);
    return { note, size: opened.ok ? opened.value.size : 0 };
  });
  const head = heads.findLast(({ size }) => size >= seq);
  if (head !== undefined) return head;
  if (seq > rows) throw new BadInput(`the ledger has no row ${seq}: it ends at row ${rows}`);
  throw new BadInput(
    `row ${seq} is not covered by a stored signed head yet: the gate that serves the ledger stores one each second; ` +
      `try again, and if that does not help, run \`svc-gate verify\``,
  );
}
