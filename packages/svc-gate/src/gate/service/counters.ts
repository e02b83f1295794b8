import { hash } from "node:crypto";
import type { PolicySet } from "../../contract/mod.ts";
import { resumeOf, type FoldedEvent, type Ledger, type AppendTransaction } from "../../ledger/mod.ts";
import { parseLeaf } from "../../ledger/entry/mod.ts";
import { countersOf, recountRow, type OwnedCounter } from "../policy/owned-counters.ts";
import { foldOutcomes } from "../outcomes/fold.ts";
import { isSettled } from "../outcomes/settle.ts";
import { visible } from "../../wire/mod.ts";

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

/** The progress of folding a counter. */
export interface Progress {
  readonly through: number;
  readonly unknownThrough: number;
  readonly rows: number;
  readonly events: number;
}

/**
 * Folds new counters from the stored receipts while checks go on. It works in slices, so a long history needs little
 * memory, and an interrupted fold continues later.
 *
 * @returns the progress of each counter, by identity
 */
export async function foldAhead(policySet: PolicySet, ledger: Ledger): Promise<ReadonlyMap<string, Progress>> {
  const kept = new Map((await ledger.counters()).map((counter) => [counter.definition, counter]));
  const reached = new Map<string, Progress>();
  for (const owned of countersOf(policySet)) {
    const { identity: definition } = owned.counter;
    const { through = 0, unknownThrough = -1 } = kept.get(definition) ?? {};
    if (through === null) continue;
    // A counter that once started empty continues from its last state, as every counter does that comes back.
    if (owned.counter.startsEmpty && !kept.has(definition)) continue;
    const start = { through, unknownThrough, rows: 0, events: 0 };
    const keep: Keep = (progress, found) => ledger.keepCounter({ definition, ...progress }, found);
    reached.set(definition, await catchUp(owned, ledger, start, keep));
  }
  return reached;
}

/**
 * Makes the ledger's counters match a contract, in the transaction that puts the contract in force. New counters are
 * folded up to the last row. Counters that are no longer in force stop.
 */
export async function alignCounters(
  policySet: PolicySet,
  ledger: Ledger,
  transaction: AppendTransaction,
  ahead: ReadonlyMap<string, Progress>,
): Promise<readonly FoldedCounter[]> {
  const owned = countersOf(policySet);
  const inForce = new Set(owned.map(({ counter }) => counter.identity));
  const live = new Set<string>();
  for (const { definition, through, unknownThrough } of await ledger.counters()) {
    if (through !== null) continue;
    live.add(definition);
    if (!inForce.has(definition))
      await transaction.keepCounter({ definition, through: transaction.head.seq, unknownThrough }, []);
  }
  const folded: FoldedCounter[] = [];
  const lostThrough = await freshLoss(ledger, transaction);
  for (const each of owned) {
    const { identity: definition, name } = each.counter;
    if (live.has(definition)) continue;
    const startsEmpty = each.counter.startsEmpty && !ahead.has(definition);
    const start = ahead.get(definition) ?? { through: 0, unknownThrough: -1, rows: 0, events: 0 };
    const keep: Keep = (progress, found) => transaction.keepCounter({ definition, ...progress }, found);
    const { rows, events, unknownThrough } = startsEmpty
      ? { ...start, unknownThrough: lostThrough }
      : await catchUp(each, ledger, start, keep);
    await transaction.keepCounter({ definition, through: null, unknownThrough }, []);
    if (each.counter.mayHold && !startsEmpty) await holdOpen(each, transaction);
    folded.push({ counter: name, rows, events, unknownThrough, startsEmpty });
  }
  return folded;
}

/** Adds what open approvals hold to a counter that comes into force. The store has some of it if the counter came back. */
async function holdOpen(owned: OwnedCounter, transaction: AppendTransaction): Promise<void> {
  const counter = hash("sha256", owned.counter.identity, "hex");
  for (const row of await transaction.openApprovals()) {
    const leaf = parseLeaf(row.leaf);
    const updates = leaf === undefined ? undefined : recountRow(owned, leaf, row.evidence);
    for (const { key, amount, held } of updates ?? [])
      if (held === true) transaction.hold({ counter, key, amount, seq: row.seq, at: leaf?.at ?? 0 });
  }
}

/**
 * Returns the time of a loss if no check was answered since, else -1. A counter that would start empty now may have
 * counted calls in the lost rows.
 */
async function freshLoss(ledger: Ledger, transaction: AppendTransaction): Promise<number> {
  if (transaction.changed === 0 || transaction.head.seq > transaction.changed) return -1;
  const changes = await ledger.changes(0);
  const place = changes.findLastIndex(({ act, body }) => resumeOf(act, body)?.lost !== undefined);
  const { seq, at } = changes[place] ?? { seq: 0, at: -1 };
  const onlyActsSince = transaction.head.seq - seq === changes.length - 1 - place;
  return place !== -1 && onlyActsSince ? at : -1;
}

/** Returns sentences on counters that were reset since the last check. Each counts from zero, so a limit is weaker. */
export async function resetWarnings(ledger: Ledger): Promise<readonly string[]> {
  const changes = await ledger.changes(0);
  const later = changes.filter(({ seq }, index) => ledger.head.seq - seq === changes.length - 1 - index);
  return later.flatMap(({ act, body, seq, by }) => {
    const names = [...(resumeOf(act, body)?.reset.values() ?? [])].join(", ");
    if (names === "") return [];
    return [`row ${seq} (by ${visible(by)}) reset ${visible(names)}: earlier calls no longer count`];
  });
}

type Keep = (progress: Pick<Progress, "through" | "unknownThrough">, found: readonly FoldedEvent[]) => Promise<void>;

async function catchUp(owned: OwnedCounter, ledger: Ledger, start: Progress, keep: Keep): Promise<Progress> {
  const counter = hash("sha256", owned.counter.identity, "hex");
  const from = start.through;
  let { through, unknownThrough, rows, events } = start;
  for await (const slice of ledger.rows(through + 1)) {
    const found: FoldedEvent[] = [];
    for (const row of slice) {
      const leaf = parseLeaf(row.leaf);
      const { seq, at } = leaf ?? { seq: row.seq, at: ledger.head.at };
      const updates = leaf === undefined ? undefined : recountRow(owned, leaf, row.evidence);
      if (updates === undefined) unknownThrough = Math.max(unknownThrough, at);
      // An amount that an approval holds is not an event. The approvals that are still open are looked up at the end of the fold.
      else
        for (const { key, amount, held } of updates) if (held !== true) found.push({ seq, at, counter, key, amount });
    }
    if (isSettled(owned.counter)) {
      for (const { outcome, settlement } of await foldOutcomes(owned, slice, ledger, { counter, through: from })) {
        const { seq, at } = outcome;
        if (settlement === undefined) unknownThrough = Math.max(unknownThrough, at);
        else {
          found.push(...settlement.added.map((event) => ({ ...event, seq, at, counter })));
          found.push(...settlement.taken.map((event) => ({ ...event, counter, takenBy: seq })));
        }
      }
    }
    through = slice.at(-1)?.seq ?? through;
    rows += slice.length;
    events += found.length;
    // Each event is stored with the total before it, so the events must be in the order of their rows.
    found.sort((one, other) => (one.takenBy ?? one.seq) - (other.takenBy ?? other.seq));
    await keep({ through, unknownThrough }, found);
  }
  return { through, unknownThrough, rows, events };
}
