import { readEffects, type Leaf } from "../../ledger/entry/mod.ts";
import type { History } from "../history.ts";
import type { CounterSeen } from "../evaluate.ts";
import { showProgress } from "../progress.ts";
import { otherKind, recordedAt, resetIn } from "../replay/recorded.ts";
import { counterDigest } from "../replay/replay-counters.ts";

/** The value of a counter, and the receipts that it was counted from. */
export interface CounterExplained extends CounterSeen {
  /** Undefined if it is unknown: without the ledger's secret no key can be recognised. */
  readonly counted: Counted | undefined;
}

export interface Counted {
  readonly receipts: number;
  /** The last of these receipts. */
  readonly last: readonly { readonly seq: number; readonly amount: string }[];
}

const lastMax = 5;

/** Finds the receipts before this one that updated its counters, within their windows. */
export async function countersExplained(
  counters: readonly CounterSeen[],
  { seq }: Leaf,
  history: History,
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
      last: [] as { seq: number; amount: string }[],
    };
  });
  if (tallies.every(({ of }) => of === undefined))
    return counters.map((counter) => ({ ...counter, counted: undefined }));
  const progress = showProgress(seq);
  for await (const slice of history.scan(1)) {
    for (const row of slice) {
      if (row.seq >= seq) break;
      progress.at(row.seq);
      if (otherKind(row) === "change") {
        const reset = resetIn(row);
        for (const counts of tallies) if (reset.has(counts.digest)) Object.assign(counts, { receipts: 0, last: [] });
      }
      const effects = readEffects(row.evidence) ?? [];
      if (effects.length === 0) continue;
      const at = recordedAt(row.leaf);
      for (const { amount, counter, key, withdrawn } of effects) {
        for (const counts of tallies) {
          if (counts.of !== `${counter} ${key}`) continue;
          if (withdrawn !== undefined) takeBack(counts, withdrawn);
          if (withdrawn !== undefined || at <= counts.after) continue;
          if (counts.receipts === 0) counts.first = row.seq;
          counts.receipts += 1;
          counts.last.push({ seq: row.seq, amount });
          if (counts.last.length > lastMax) counts.last.shift();
        }
      }
    }
    if ((slice.at(-1)?.seq ?? 0) >= seq) break;
  }
  progress.end();
  return tallies.map(({ counter, of, receipts, last }) => ({
    ...counter,
    counted: of === undefined ? undefined : { receipts, last },
  }));
}

interface Tally {
  /** The first receipt that counts. */
  readonly first: number;
  receipts: number;
  last: { readonly seq: number; readonly amount: string }[];
}

/** An outcome took the event of a receipt back. Rows are in the order of time, so it counted if it is not before the first. */
function takeBack(tally: Tally, seq: number): void {
  if (tally.receipts === 0 || seq < tally.first) return;
  tally.receipts -= 1;
  tally.last = tally.last.filter((each) => each.seq !== seq);
}
