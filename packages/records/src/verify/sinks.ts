import {
  divergences,
  statedLosses,
  type Divergence,
  type LedgerCheck,
  type LedgerHistory,
  type ObservedHead,
} from "../../../gate/src/ledger/mod.ts";
import type { Mistake } from "../../../core/src/record/entry/mod.ts";
import { rootAt } from "../../../core/src/record/tree/mod.ts";
import type { LedgerSource } from "../../../gate/src/cli/ledger-source.ts";
import { areOthersNamed, othersOf } from "../../../gate/src/cli/others.ts";
import { BadInput, counted } from "../../../gate/src/cli/mod.ts";

/** A ledger that was walked, and compared with file sinks and collected checkpoints too. */
export interface SinkComparison {
  readonly check: LedgerCheck;
  /** Files are named, but none of them has a checkpoint of the ledger. */
  readonly isUnknown: boolean;
}

/**
 * Asks file sinks and collected checkpoints how far the ledger went, like a start, a restore and a resume.
 *
 * @param walked the result of the walk; if the ledger is broken, the result stays the same
 * @param source must be opened after the files were read, because a serving gate may add rows meanwhile
 * @param files collected checkpoints; if empty, the file that SVC_SEEN names
 * @throws {BadInput} if one cannot be read
 */
export async function compareWithSinks(
  walked: LedgerCheck,
  { tenant, open }: LedgerSource,
  files: readonly string[],
): Promise<SinkComparison> {
  if (walked.broken !== undefined || !areOthersNamed(files)) return { check: walked, isUnknown: false };
  const seen = await ask(walked, tenant, files);
  if (seen.length === 0) return { check: walked, isUnknown: true };
  await using ledger = await open();
  return { check: await compareHeads(walked, ledger, seen), isUnknown: false };
}

async function ask(
  { log, rows }: LedgerCheck,
  tenant: string | null,
  files: readonly string[],
): Promise<readonly ObservedHead[]> {
  try {
    return await othersOf(tenant, files)(log);
  } catch (error) {
    if (error instanceof BadInput)
      throw new BadInput(`the ledger is consistent, with ${counted(rows, "row")}, but ${error.message}`);
    throw error;
  }
}

async function compareHeads(
  walked: LedgerCheck,
  ledger: LedgerHistory,
  observed: readonly ObservedHead[],
): Promise<LedgerCheck> {
  const diverged = await divergences(ledger, observed);
  const stated = diverged.length === 0 ? undefined : statedLosses(await ledger.changes(0));
  const unstated = diverged.find(({ head }) => stated?.names(head) !== true);
  if (unstated !== undefined) return { ...walked, rows: ledger.rows, broken: await brokenBy(unstated, ledger) };
  const present = observed.filter((head) => diverged.every((divergence) => divergence.head !== head));
  const anchors = [...(walked.anchored === undefined ? [] : [walked.anchored]), ...present];
  const furthest = anchors.toSorted((a, b) => b.seq - a.seq)[0];
  return { ...walked, anchored: furthest && { seq: furthest.seq, by: furthest.by } };
}

async function brokenBy(
  { kind, head: { by, root = "", seq } }: Divergence,
  { hashes, rows }: LedgerHistory,
): Promise<Mistake> {
  if (kind === "forked") {
    const problem = `the root of the tree is not the one that the ${by} has seen`;
    return { seq, problem, expected: root, found: (await rootAt(hashes, seq)).toString("base64") };
  }
  const problem = `rows are missing from the end: the ${by} has seen row ${seq}`;
  return { seq: rows + 1, problem, expected: `row ${seq}`, found: `row ${rows}` };
}
