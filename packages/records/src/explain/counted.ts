import {
  readJudgement,
  findEndedApproval,
  endedBy,
  parseLeaf,
  readEffects,
  type Leaf,
} from "../../../core/src/record/entry/mod.ts";
import { eachRow, type History, type RecordedRow } from "../history.ts";
import type { CounterSeen } from "../evaluate.ts";
import { showProgress } from "../../../gate/src/cli/progress.ts";
import { otherKind, recordedAt, resetIn } from "../replay/recorded.ts";
import { counterDigest } from "../../../gate/src/server/mod.ts";

/** The value of a counter, and the receipts that it was counted from. */
export interface CounterExplained extends CounterSeen {
  /** Undefined if it is unknown: without the ledger's secret no key can be recognised. */
  readonly counted: CountedReceipts | undefined;
}

export interface CountedReceipts {
  readonly receipts: number;
  /** The last of these receipts. */
  readonly last: readonly CountedReceipt[];
}

interface CountedReceipt {
  readonly seq: number;
  readonly amount: string;
}

const lastMax = 5;

/**
 * Finds the receipts before this one that updated its counters, within their windows.
 *
 * @param own the row of the call's own approval, whose amounts were left out
 */
export async function countersExplained(
  counters: readonly CounterSeen[],
  { seq }: Leaf,
  history: History,
  own?: number,
): Promise<readonly CounterExplained[]> {
  const { keyDigest } = history;
  if (keyDigest === undefined) return counters.map((counter) => ({ ...counter, counted: undefined }));
  const tallies = counters.map((counter) => {
    const { lookup } = counter;
    const digest = lookup === undefined ? "" : counterDigest(lookup.counter.identity);
    const of = lookup && `${digest} ${keyDigest(lookup.key)}`;
    return {
      counter,
      digest,
      of,
      after: lookup?.after ?? 0,
      first: 0,
      receipts: 0,
      last: [] as readonly CountedReceipt[],
      reserved: new Map<number, string>(),
    };
  });
  if (tallies.every(({ of }) => of === undefined))
    return counters.map((counter) => ({ ...counter, counted: undefined }));
  using progress = showProgress(seq);
  for await (const row of eachRow(history, 1, seq)) {
    progress.at(row.seq);
    if (otherKind(row) === "change") {
      const reset = resetIn(row);
      for (const counts of tallies)
        if (reset.has(counts.digest)) Object.assign(counts, { receipts: 0, last: [], reserved: new Map() });
    }
    for (const [from, to] of findEndedReservations(row))
      for (const { reserved } of tallies)
        for (const of of reserved.keys()) if (of >= from && of <= to) reserved.delete(of);
    const effects = readEffects(row.evidence) ?? [];
    if (effects.length === 0) continue;
    const at = recordedAt(row.leaf);
    for (const { amount, counter, key, held, withdrawn } of effects) {
      for (const counts of tallies) {
        if (counts.of !== `${counter} ${key}`) continue;
        if (withdrawn !== undefined) takeBack(counts, withdrawn);
        if (withdrawn !== undefined || at <= counts.after) continue;
        if (held === true) {
          counts.reserved.set(row.seq, amount);
          continue;
        }
        if (counts.receipts === 0) counts.first = row.seq;
        counts.receipts += 1;
        counts.last = [...counts.last, { seq: row.seq, amount }].slice(-lastMax);
      }
    }
  }
  return tallies.map(({ counter, of, receipts, last, reserved }) => {
    if (own !== undefined) reserved.delete(own);
    const all = [...last, ...[...reserved].map(([row, amount]) => ({ seq: row, amount }))];
    const latest = all.toSorted((one, other) => one.seq - other.seq).slice(-lastMax);
    return { ...counter, counted: of === undefined ? undefined : { receipts: receipts + reserved.size, last: latest } };
  });
}

/** The rows whose approvals a row ends, and with them the amounts that they reserve. */
function findEndedReservations(row: RecordedRow): readonly (readonly [from: number, to: number])[] {
  const ended = findEndedApproval(readJudgement(row.evidence) ?? {});
  if (ended !== undefined) return [[ended, ended]];
  const leaf = otherKind(row) === "change" ? parseLeaf(row.leaf) : undefined;
  return leaf === undefined ? [] : endedBy(leaf, row.evidence);
}

interface Tally {
  /** The first receipt that counts. */
  readonly first: number;
  receipts: number;
  last: readonly CountedReceipt[];
}

/** An outcome took the event of a receipt back. Rows are in the order of time, so it counted if it is not before the first. */
function takeBack(tally: Tally, seq: number): void {
  if (tally.receipts === 0 || seq < tally.first) return;
  tally.receipts -= 1;
  tally.last = tally.last.filter((each) => each.seq !== seq);
}
