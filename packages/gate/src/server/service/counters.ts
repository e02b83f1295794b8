import type { PolicySet } from "../../../../core/src/contract/mod.ts";
import {
  resumeOf,
  type AppendTransaction,
  type FoldedEvent,
  type KeptCounter,
  type Ledger,
  type Rows,
} from "../../ledger/mod.ts";
import { parseLeaf, type Leaf } from "../../../../core/src/record/entry/mod.ts";
import { counterDigest, countersOf, recountRow, type OwnedCounter } from "../policy/owned-counters.ts";
import { foldOutcomes, type FoldedRow, type OutcomeSource } from "../outcomes/fold.ts";
import { isSettled } from "../outcomes/settle.ts";
import { visible } from "../../../../core/src/wire/mod.ts";

/** A counter that starts, for the answer and the log. */
export interface FoldedCounter {
  readonly counter: string;
  /** The number of older receipts that were read, and of events in them. */
  readonly rows: number;
  readonly events: number;
  /** Milliseconds. The counter is unknown up to this time; -1 if it is known from the start. */
  readonly unknownThrough: number;
  /** True if the counter starts now, because its contract says so. */
  readonly startsEmpty: boolean;
}

export interface FoldProgress {
  readonly through: number;
  readonly unknownThrough: number;
  readonly rows: number;
  readonly events: number;
}

/** A ledger whose counters are folded from its rows. */
export interface FoldSource extends OutcomeSource {
  readonly head: { readonly at: number };
  readonly rows: OutcomeSource["rows"] & Pick<Rows<FoldedRow>, "scan">;
  readonly tables: {
    counters(): Promise<{
      readonly kept: readonly Pick<KeptCounter, "digest" | "definition" | "through" | "unknownThrough">[];
    }>;
  };
  keepCounter: Ledger["keepCounter"];
  /**
   * Called for a row that cannot be counted. By default the counter is unknown up to the row's time.
   *
   * @returns the time up to which it is unknown, in milliseconds; -1 if it is not
   */
  readonly uncounted?: (counter: string, row: FoldedRow, at: number) => number;
}

/** The part of a transaction that puts counters in force. */
interface AligningTransaction extends Pick<AppendTransaction, "head" | "keepCounter"> {
  readonly counters: Pick<AppendTransaction["counters"], "reserve">;
  openApprovals(): Promise<readonly FoldedRow[]>;
}

/**
 * Folds new counters from the stored receipts while checks go on. It works in slices, so a long history needs little
 * memory, and an interrupted fold continues later.
 *
 * @returns the progress of each counter, by identity
 */
export async function foldAhead(policySet: PolicySet, source: FoldSource): Promise<ReadonlyMap<string, FoldProgress>> {
  const kept = new Map((await source.tables.counters()).kept.map((counter) => [counter.digest, counter]));
  const folds = countersOf(policySet).flatMap((owned): readonly Fold[] => {
    const counter = counterDigest(owned.counter.identity);
    const { through = 0, unknownThrough = -1 } = kept.get(counter) ?? {};
    if (through === null) return [];
    // A counter that once started empty continues from its last state, as every counter does that comes back.
    if (owned.counter.startsEmpty && !kept.has(counter)) return [];
    return [{ owned, counter, from: through, progress: { through, unknownThrough, rows: 0, events: 0 } }];
  });
  await catchUp(folds, source, (counter, found) => source.keepCounter(counter, found));
  return new Map(folds.map(({ owned, progress }) => [owned.counter.identity, progress]));
}

/**
 * Makes the ledger's counters match a contract, in the transaction that puts the contract in force. New counters are
 * folded up to the last row. Counters that are no longer in force stop.
 *
 * @param lostThrough the time of a loss after which no check was answered; -1 if there is none
 */
export async function alignCounters(
  policySet: PolicySet,
  source: FoldSource,
  transaction: AligningTransaction,
  { ahead, lostThrough }: { readonly ahead: ReadonlyMap<string, FoldProgress>; readonly lostThrough: number },
): Promise<readonly FoldedCounter[]> {
  const owned = countersOf(policySet);
  const inForce = new Set(owned.map(({ counter }) => counterDigest(counter.identity)));
  const live = new Set<string>();
  for (const { digest, definition, through, unknownThrough } of (await source.tables.counters()).kept) {
    if (through !== null) continue;
    live.add(digest);
    if (!inForce.has(digest))
      await transaction.keepCounter({ definition, through: transaction.head.seq, unknownThrough }, []);
  }
  const coming = owned.flatMap((each): readonly NewCounter[] => {
    const counter = counterDigest(each.counter.identity);
    if (live.has(counter)) return [];
    const known = ahead.get(each.counter.identity);
    const startsEmpty = each.counter.startsEmpty && known === undefined;
    const unknownThrough = startsEmpty ? lostThrough : -1;
    const progress = known ?? { through: 0, unknownThrough, rows: 0, events: 0 };
    return [{ owned: each, counter, from: progress.through, progress, startsEmpty }];
  });
  const folds = coming.filter(({ startsEmpty }) => !startsEmpty);
  await catchUp(folds, source, (counter, found) => transaction.keepCounter(counter, found));
  for (const { owned: each, counter, progress, startsEmpty } of coming) {
    const { identity: definition, mayReserve } = each.counter;
    await transaction.keepCounter({ definition, through: null, unknownThrough: progress.unknownThrough }, []);
    if (mayReserve && !startsEmpty) await reserveForOpen(each, counter, transaction, source);
  }
  return coming.map(({ owned: { counter }, progress: { rows, events, unknownThrough }, startsEmpty }) => {
    return { counter: counter.name, rows, events, unknownThrough, startsEmpty };
  });
}

/** Adds what open approvals reserve to a counter that comes into force. The store has some of it if the counter came back. */
async function reserveForOpen(
  owned: OwnedCounter,
  counter: string,
  transaction: AligningTransaction,
  { uncounted }: FoldSource,
): Promise<void> {
  for (const row of await transaction.openApprovals()) {
    const leaf = parseLeaf(row.leaf);
    const updates = leaf === undefined ? undefined : recountRow(owned, leaf, row.evidence);
    if (updates === undefined) uncounted?.(counter, row, leaf?.at ?? 0);
    for (const { key, amount, held } of updates ?? [])
      if (held === true) transaction.counters.reserve({ counter, key, amount, seq: row.seq, at: leaf?.at ?? 0 });
  }
}

/**
 * Returns the time of a loss if no check was answered since, else -1. A counter that would start empty now may have
 * counted calls in the lost rows.
 */
export async function freshLoss(ledger: Ledger, transaction: AppendTransaction): Promise<number> {
  const { changed } = transaction.store;
  if (changed === 0 || transaction.head.seq > changed) return -1;
  const changes = await ledger.rows.changes(0);
  const index = changes.findLastIndex(({ act, body }) => resumeOf(act, body)?.lost !== undefined);
  const { seq, at } = changes[index] ?? { seq: 0, at: -1 };
  const onlyActsSince = transaction.head.seq - seq === changes.length - 1 - index;
  return index !== -1 && onlyActsSince ? at : -1;
}

/** Returns sentences on counters that were reset since the last check. Each counts from zero, so a limit is weaker. */
export async function resetWarnings(ledger: Ledger): Promise<readonly string[]> {
  const changes = await ledger.rows.changes(0);
  const later = changes.filter(({ seq }, index) => ledger.head.seq - seq === changes.length - 1 - index);
  return later.flatMap(({ act, body, seq, by }) => {
    const names = [...(resumeOf(act, body)?.reset.values() ?? [])].join(", ");
    if (names === "") return [];
    return [`row ${seq} (by ${visible(by)}) reset ${visible(names)}: earlier calls no longer count`];
  });
}

/** A counter that is folded from older rows. */
export interface Fold {
  readonly owned: OwnedCounter;
  /** Its digest. */
  readonly counter: string;
  /** The last row that was folded before. */
  readonly from: number;
  progress: FoldProgress;
}

interface NewCounter extends Fold {
  readonly startsEmpty: boolean;
}

/** Folds counters in one pass over the rows that they lack. */
export async function catchUp(
  folds: readonly Fold[],
  source: FoldSource,
  keep: FoldSource["keepCounter"],
): Promise<void> {
  if (folds.length === 0) return;
  for await (const slice of source.rows.scan(Math.min(...folds.map(({ progress }) => progress.through)) + 1)) {
    const rows = slice.map((row) => ({ ...row, read: parseLeaf(row.leaf) }));
    for (const fold of folds) {
      if (fold.progress.through >= (rows.at(-1)?.seq ?? 0)) continue;
      const found = await foldSlice(fold, rows, source);
      const { through, unknownThrough } = fold.progress;
      await keep({ definition: fold.owned.counter.identity, through, unknownThrough }, found);
    }
  }
}

type ReadRow = FoldedRow & { readonly read: Leaf | undefined };

async function foldSlice(fold: Fold, slice: readonly ReadRow[], source: FoldSource): Promise<readonly FoldedEvent[]> {
  const { owned, counter, from, progress } = fold;
  const rows = slice.filter(({ seq }) => seq > progress.through);
  let { unknownThrough } = progress;
  const markUnknown = (row: FoldedRow, at: number): void => {
    unknownThrough = Math.max(unknownThrough, source.uncounted?.(counter, row, at) ?? at);
  };
  const found: FoldedEvent[] = [];
  for (const row of rows) {
    const { seq, at } = row.read ?? { seq: row.seq, at: source.head.at };
    const updates = row.read === undefined ? undefined : recountRow(owned, row.read, row.evidence);
    if (updates === undefined) markUnknown(row, at);
    // An amount that an approval reserves is not an event. The approvals that are still open are looked up at the end of the fold.
    else for (const { key, amount, held } of updates) if (held !== true) found.push({ seq, at, counter, key, amount });
  }
  if (isSettled(owned.counter)) {
    for (const { row, outcome, settlement } of await foldOutcomes(owned, rows, source, { counter, through: from })) {
      const { seq, at } = outcome;
      if (settlement === undefined) markUnknown(row, at);
      else {
        found.push(...settlement.added.map((event) => ({ ...event, seq, at, counter })));
        found.push(...settlement.taken.map((event) => ({ ...event, counter, takenBy: seq })));
      }
    }
  }
  // Each event is stored with the total before it, so the events must be in the order of their rows.
  found.sort((one, other) => (one.takenBy ?? one.seq) - (other.takenBy ?? other.seq));
  fold.progress = {
    through: rows.at(-1)?.seq ?? progress.through,
    unknownThrough,
    rows: progress.rows + rows.length,
    events: progress.events + found.length,
  };
  return found;
}
