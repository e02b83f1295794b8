import type { StoredRow } from "../../../../core/src/record/entry/mod.ts";
import type { Rows } from "../../ledger/mod.ts";
import type { OwnedCounter } from "../policy/owned-counters.ts";
import { outcomeIn, recountOutcome, reportedCall, rowsBehind } from "./events.ts";
import { presentEvents, type TotalSource } from "./settle-call.ts";
import type { CountedAmount, OutcomeAtRow, Settlement } from "./settle.ts";

export type FoldedRow = Pick<StoredRow, "evidence" | "leaf" | "seq">;

/** Where a fold reads what it needs besides the rows that it passes. */
export interface OutcomeSource {
  readonly rows: Pick<Rows<FoldedRow>, "rowsAt"> & TotalSource;
  keyDigest(key: string): string;
}

export interface FoldStart {
  /** The counter's digest. */
  readonly counter: string;
  /** The last row that was folded before: the store has the counter's events up to this row. */
  readonly through: number;
}

/** What an outcome does to the counter, with plain keys; undefined if it cannot be known. */
export interface FoldedOutcome {
  /** The row of its call; its own row if there is no such row. */
  readonly row: FoldedRow;
  readonly outcome: OutcomeAtRow;
  readonly settlement: Settlement | undefined;
}

/** Finds what the outcomes among some older rows do to a counter that comes into force. */
export async function foldOutcomes(
  owned: OwnedCounter,
  rows: readonly FoldedRow[],
  source: OutcomeSource,
  start: FoldStart,
): Promise<readonly FoldedOutcome[]> {
  const outcomes = rows.flatMap((row) => {
    const outcome = row.leaf.includes('"act":"outcome"') ? outcomeIn(row) : undefined;
    return outcome === undefined ? [] : [{ row, outcome }];
  });
  if (outcomes.length === 0) return [];
  const behind = [...new Set(outcomes.flatMap(({ outcome }) => rowsBehind(outcome)))].toSorted((a, b) => a - b);
  const found = new Map((await source.rows.rowsAt(behind)).map((row) => [row.seq, row]));
  const folded: FoldedOutcome[] = [];
  for (const { row, outcome } of outcomes) {
    const call = reportedCall(outcome, (seq) => found.get(seq));
    const settlement = call && recountOutcome(owned, call);
    const isThere = settlement === undefined || (await areThere(settlement.taken, source, start));
    folded.push({
      row: found.get(outcome.row) ?? row,
      outcome,
      settlement: isThere ? settlement : { added: [], taken: [] },
    });
  }
  return folded;
}

/** A counter that started at zero lacks the events of older rows, so nothing can be taken back there. */
async function areThere(taken: readonly CountedAmount[], source: OutcomeSource, start: FoldStart): Promise<boolean> {
  const { counter, through } = start;
  const older = taken.filter(({ seq }) => seq <= through);
  if (older.length === 0) return true;
  const events = older.map(({ key, amount, at, seq }) => ({ counter, key: source.keyDigest(key), amount, at, seq }));
  return (await presentEvents(events, source.rows)).length === events.length;
}
