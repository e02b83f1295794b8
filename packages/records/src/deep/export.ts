import { exportedContract, scanExport } from "../export/mod.ts";
import type { History } from "../history.ts";
import { compareWithItself } from "../replay/replay.ts";
import { withoutInput } from "./deep.ts";
import { ReplayTally, type DecidedFound } from "./found.ts";

/**
 * Decides every check of an export again, under the contract that its receipt names. The export must have been verified
 * before. An export has rows but no counters, so the counters are computed in memory from the first row on. It does not
 * have the ledger's secret, so the keys in effects are not compared.
 *
 * @param size the number of rows in the export
 * @param passed receives the number of each row that was examined
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
  };
  const verdicts = new ReplayTally();
  await compareWithItself(history, {
    onRow: passed,
    withoutInput,
    onAgreement: () => verdicts.countAgreement(),
    onSkip: (seq, why) => verdicts.countSkip(seq, why),
    differs: ({ leaf: { seq } }, difference) => verdicts.countDifference(seq, difference),
  });
  return verdicts.summarize(size);
}
