import { exportedContract, scanExport } from "../../ledger/export/mod.ts";
import type { History } from "../history.ts";
import { holdAgainstItself } from "../replay/replay.ts";
import { withoutInput } from "./deep.ts";
import { VerdictAccumulator, type DecidedFound } from "./found.ts";

/**
 * Decides every check of an export again, under the contract that its receipt names. To be asked of one that was found
 * whole. An export has no counters beside its rows, so they are counted from the first row on, in memory; and it has not
 * the ledger's secret, so the keys in effects are not compared.
 *
 * @param size rows that the export has
 * @param passed told of each row that was looked at
 */
export async function decideExportAgain(
  folder: string,
  size: number,
  passed: (seq: number) => void,
): Promise<DecidedFound> {
  const history: History = {
    rows: size,
    scan: (from) => scanExport(folder, size, from),
    contractText: (digest) => exportedContract(folder, digest),
    keyDigest: undefined,
    close: async () => undefined,
  };
  const verdicts = new VerdictAccumulator();
  await holdAgainstItself(history, {
    passed,
    withoutInput,
    agreed: () => verdicts.agreed(),
    skipped: (seq, why) => verdicts.skipped(seq, why),
    differs: ({ leaf: { seq } }, difference) => verdicts.differed(seq, difference),
  });
  return verdicts.found(size);
}
