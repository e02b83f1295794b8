import type { PolicySet } from "../../../core/src/contract/mod.ts";
import type { LedgerHistory } from "../../../gate/src/ledger/mod.ts";
import { outcomeRows, wholeText } from "../../../core/src/record/entry/mod.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { ledgerHistory } from "../history.ts";
import type { Difference } from "../replay/decide-again.ts";
import { inputNotKept, type ReceiptCheck } from "../replay/recorded.ts";
import { compareWithItself } from "../replay/replay.ts";
import { ReplayTally, type DeepFound } from "./found.ts";
import { StoredCounters, storedValues } from "./stored-counters.ts";

/**
 * Decides every recorded check again under the contract that it names, over counters that are made again from the rows,
 * and compares these counters with the ledger's: the walk over the chain cannot check this. Run that walk too, because
 * it compares the ledger's counters with the effects on receipts.
 *
 * @param passed receives the number of each row that was examined
 * @returns the findings through the last row that existed when the ledger was opened
 */
export async function replayAndFold(ledger: LedgerHistory, passed: (seq: number) => void): Promise<DeepFound> {
  const last = ledger.rows;
  const verdicts = new ReplayTally();
  const counters = new StoredCounters(ledger);
  const replayed = await compareWithItself(ledgerHistory(ledger), {
    onRow: passed,
    withoutInput,
    onAgreement: (_, { unknown }) => {
      verdicts.countAgreement();
      counters.noteUnknown(unknown);
    },
    onSkip: (seq, why) => verdicts.countSkip(seq, why),
    differs: ({ leaf: { seq } }, difference) => verdicts.countDifference(seq, difference),
    settled: (row, outcome, settled) => {
      counters.note(outcome);
      if (settled === undefined || outcome.rules !== outcomeRows.outcomeRules) return;
      const was = wholeText(row.evidence, "effects") ?? "";
      const is = outcomeRows.outcomeEffects(settled.added, settled.taken);
      if (was !== is) verdicts.countDifference(row.seq, { what: "effects", was, is });
    },
    uncounted: (counter, row, at) => {
      counters.noteUncounted(counter, row, at);
      return undefined;
    },
    folded: (folding) => counters.compareEvents(folding),
    lost: () => counters.lose(),
    stored: (lookups, leaf) => storedValues(ledger, lookups, leaf),
  });
  return { ...verdicts.summarize(last), counters: await counters.end(replayed, last) };
}

/**
 * Why a check cannot be decided again if its input was not stored whole. It can be if no contract routes the tool. A
 * gate always stores the whole input of a call that a rule decided.
 */
export function withoutInput(
  policySet: PolicySet,
  { cutInput, leaf, request: { toolName } }: ReceiptCheck,
): Difference | string | undefined {
  if (cutInput === undefined) return undefined;
  if (!policySet.tools.has(policySet.aliases.get(toolName) ?? toolName)) return undefined;
  const rule = leaf.rule ?? "";
  if (leaf.verdict === "BLOCK" && /\.\$(?:input|platform|requires\.[0-9]+)$/.test(rule)) return inputNotKept;
  return { what: "input", was: "a part of it", is: `all of it, since ${visible(rule)} decided` };
}
