import { replayAndFold } from "../../../packages/records/src/deep/deep.ts";
import { isSound } from "../../../packages/records/src/deep/found.ts";
import { openHistory } from "../../../packages/records/src/history.ts";
import { compareWithItself } from "../../../packages/records/src/replay/replay.ts";
import { readLedger } from "../../../packages/gate/src/ledger/mod.ts";

/**
 * Decides a ledger's checks again, as `verify --deep` and `replay` do.
 *
 * @param onSkip receives each row that cannot be decided again, with the reason
 * @returns the first difference
 */
export async function decidedAgain(
  folder: string,
  onSkip: (seq: number, why: string) => string | undefined,
): Promise<string | undefined> {
  const ledger = await readLedger(folder);
  const found = await replayAndFold(ledger, () => undefined);
  await ledger.close();
  if (!isSound(found)) return `verify --deep: ${JSON.stringify(found)}`;
  await using history = await openHistory({ folder });
  let problem: string | undefined;
  await compareWithItself(history, {
    onRow: () => undefined,
    onAgreement: () => undefined,
    onSkip: (seq, why) => (problem ??= onSkip(seq, why)),
    differs: ({ leaf }, difference) => (problem ??= `replay of row ${leaf.seq}: ${JSON.stringify(difference)}`),
  });
  return problem;
}
