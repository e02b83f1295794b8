import { setTimeout } from "node:timers/promises";
import { LedgerRefused } from "../../../gate/src/ledger/errors.ts";
import type { LedgerHistory } from "../../../gate/src/ledger/mod.ts";
import { NotYetUnderHead, writeExport, type ExportResult } from "./mod.ts";
import { claimedText, parseCheckpointText } from "../../../core/src/record/tree/mod.ts";
import { ledgerSource, type DatabaseOption, type LedgerSource } from "../../../gate/src/cli/ledger-source.ts";
import { BadInput, counted, type Outcome } from "../../../gate/src/cli/mod.ts";
import { exportReadable, isReadableFormat, readableFormats } from "./readable.ts";
import { showExport } from "./show.ts";

export interface ExportOptions {
  readonly dataDir: string;
  readonly database: DatabaseOption;
  /** Through the latest head that witnesses have cosigned, instead of the latest of all. */
  readonly cosigned: boolean;
  readonly format: string | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly json: boolean;
}

/**
 * `svc-gate export`: writes a folder that outsiders can verify, or the readable fields of receipts for people and
 * programs.
 */
export async function exportCommand(target: string, options: ExportOptions): Promise<Outcome> {
  const { database, dataDir, format, from, to } = options;
  const source = ledgerSource(dataDir, database);
  if (format !== undefined) {
    if (!isReadableFormat(format))
      throw new BadInput(`--format must be ${readableFormats.join(" or ")}, not "${format}"`);
    return exportReadable(target, { format, from, to, open: source.open });
  }
  if (from !== undefined || to !== undefined)
    throw new BadInput("--from and --to need --format: a folder must have every row, or it could not be verified");
  if (target === "-") throw new BadInput("an export is a folder: name one, or add --format csv or --format jsonl");
  const exported = await exportFolder(target, source, options.cosigned);
  return {
    exitCode: 0,
    text: options.json ? JSON.stringify({ ...exported, folder: target }) : formatExport(target, exported),
  };
}

const tries = 6;
const waitMs = 500;

/** A gate keeps its head once a second. An erasure in that second is covered by the next head. */
async function exportFolder(folder: string, source: LedgerSource, cosigned: boolean): Promise<ExportResult> {
  for (let left = tries; ; left -= 1) {
    try {
      await using history = await source.open();
      using progress = showExport(history.rows);
      return await writeExport({ history, note: headOf(history, cosigned) }, folder, (row) => progress.at(row));
    } catch (error) {
      if (!(error instanceof NotYetUnderHead)) throw error;
      if (left === 1) throw new LedgerRefused(`${error.message}: try again, or run \`svc-gate verify\``);
    }
    await setTimeout(waitMs);
  }
}

/** The latest signed head that is kept, with witnesses' signatures if it has them already. */
function headOf({ name, checkpoints }: LedgerHistory, cosigned: boolean): string {
  const [latest, withWitnesses] = checkpoints;
  if (cosigned && withWitnesses === undefined)
    throw new LedgerRefused(`no stored head of the ledger "${name}" is cosigned by witnesses`);
  const note = cosigned || sizeOf(withWitnesses) === sizeOf(latest) ? withWitnesses : latest;
  if (note !== undefined) return note;
  throw new LedgerRefused(
    `no signed head of the ledger "${name}" is stored yet: start its gate, which stores one each second`,
  );
}

function sizeOf(note: string | undefined): number | undefined {
  return note === undefined ? undefined : parseCheckpointText(claimedText(note) ?? "")?.size;
}

function formatExport(folder: string, { log, size, before, vkey }: ExportResult): string {
  return [
    `${folder}: ${counted(size, "row")} of ${log}${before === 0 ? "" : `, ${size - before} of them new`}`,
    `  verify it with  svc-gate verify ${folder} --key ${vkey}`,
    "  send that key to an auditor separately from the folder: a key in the folder proves nothing",
  ].join("\n");
}
