import { counterDigest, recountRow, type OwnedCounter, type PlacedOutcome } from "../../gate/mod.ts";
import type { EventPosition, KeptCounter, LedgerHistory, StoredEffect } from "../../ledger/mod.ts";
import { outcomeRows, parseLeaf, type Leaf } from "../../ledger/entry/mod.ts";
import { addDecimals } from "../../wire/mod.ts";
import type { RecordedRow } from "../history.ts";
import { isAmount } from "../replay/recorded.ts";
import type { ReplayLedger } from "../replay/replay-ledger.ts";
import type { DeepFound, WrongCounter } from "./found.ts";

/** What is known of a counter that was folded again. */
interface Refolded {
  /** Events that were folded into it and are in the ledger. */
  found: number;
  /** Could every row that it was folded from be counted? */
  isSure: boolean;
  /** Was a row that cannot be counted perhaps counted by an earlier folding? */
  isShort: boolean;
}

type OpenHolds = Awaited<ReturnType<LedgerHistory["openHolds"]>>[number];
type Hold = OpenHolds["holds"][number];

/** Approvals that are compared together. */
const sliceRows = 64;

/** The digest of a counter that the ledger does not keep. */
const unknownCounter = "";

/**
 * Compares what a ledger keeps of its counters with what a replay makes of its rows: the events that no receipt commits
 * to, because they come from rows older than the counter, and the amounts that open approvals hold. A row's own events are
 * in its evidence; the walk over the chain compared those.
 *
 * Memory grows only with the number of counters: events are looked up in the ledger, in slices.
 */
export class StoredCounters {
  readonly #ledger: LedgerHistory;
  readonly #kept: ReadonlyMap<string, KeptCounter>;
  readonly #folds = new Map<string, Refolded>();
  /** Outcomes that an older gate settled by other rules. */
  readonly #older = new Set<number>();
  #firstWrong: WrongCounter | undefined;

  constructor(ledger: LedgerHistory) {
    this.#ledger = ledger;
    this.#kept = new Map(ledger.kept.map((counter) => [counter.digest, counter]));
  }

  /** True if a counter has events of older rows. */
  hasFolded(digest: string): boolean {
    return (this.#kept.get(digest)?.folded ?? 0) > 0;
  }

  /** Notes an outcome before counters are folded over it. */
  note({ rules, seq }: PlacedOutcome): void {
    if (rules !== outcomeRows.outcomeRules) this.#older.add(seq);
  }

  #foldOf(digest: string): Refolded {
    const fold = this.#folds.get(digest) ?? { found: 0, isSure: true, isShort: false };
    this.#folds.set(digest, fold);
    return fold;
  }

  /** Events up to this time may be missing. A row that resets a counter may record a loss as well, one millisecond later. */
  #coveredThrough(digest: string): number {
    const { unknownThrough = -1, resetThrough = -1 } = this.#kept.get(digest) ?? {};
    return Math.max(unknownThrough, resetThrough + 1);
  }

  /** The contract of some rows is unknown: from here on, the folds of all counters are uncertain. */
  lose(): void {
    for (const fold of this.#folds.values()) fold.isSure = false;
  }

  /** Notes a row that a counter cannot count. */
  uncounted(digest: string, { leaf }: Pick<RecordedRow, "leaf">, at: number): void {
    const fold = this.#foldOf(digest);
    if (parseLeaf(leaf) === undefined || at > this.#coveredThrough(digest)) fold.isSure = false;
    fold.isShort = true;
  }

  /** Compares events of older rows with those of the ledger. @returns those that the ledger has */
  async folded(owned: OwnedCounter, events: readonly StoredEffect[]): Promise<readonly StoredEffect[]> {
    const digest = counterDigest(owned.counter.identity);
    const fold = this.#foldOf(digest);
    const ofOlder = ({ seq, takenBy = seq }: StoredEffect): boolean => this.#older.has(takenBy);
    if (events.some(ofOlder)) fold.isSure = false;
    const added = events.filter((event) => event.takenBy === undefined && !ofOlder(event));
    await this.#checkTaken(
      owned,
      events.filter((event) => event.takenBy !== undefined && !ofOlder(event)),
    );
    const amounts = await amountsAt(this.#ledger, added);
    const missing = new Set<StoredEffect>();
    for (const [index, event] of added.entries()) {
      const { amount, at, seq } = event;
      const found = amounts[index];
      if (found !== undefined && addDecimals(found, `-${amount}`) === "0") fold.found += 1;
      else if (found === "0" && (owned.counter.startsEmpty || at <= this.#coveredThrough(digest))) missing.add(event);
      else
        this.#wrong(owned, {
          seq,
          problem: "an event that was folded into a counter differs from its receipt",
          expected: amount,
          found: found ?? "no such event",
        });
    }
    return events.filter((event) => !missing.has(event));
  }

  /** An event that an outcome took back must be taken back in the ledger, by that outcome. */
  async #checkTaken(owned: OwnedCounter, events: readonly StoredEffect[]): Promise<void> {
    if (events.length === 0) return;
    const found = await this.#ledger.taken(
      events.flatMap(({ counter, key, at, takenBy = 0 }) => {
        const query = { counter, key, after: at - 1 };
        return [
          { ...query, before: takenBy },
          { ...query, before: takenBy + 1 },
        ];
      }),
    );
    for (const [index, { amount, takenBy = 0 }] of events.entries()) {
      const [before = [], after = []] = [found[index * 2], found[index * 2 + 1]];
      if (after.length === before.length + 1 && after.includes(amount)) continue;
      this.#wrong(owned, {
        seq: takenBy,
        problem: "an outcome took an event back that the ledger still counts",
        expected: amount,
        found: "nothing taken back",
      });
    }
  }

  /** @param last the last row that was examined */
  async end(replayed: ReplayLedger, last: number): Promise<DeepFound["counters"]> {
    await this.#foldOn(replayed, last);
    const later = new Map((await this.#ledger.counters()).map((counter) => [counter.digest, counter]));
    const again = new Map(replayed.tables.counters.map((counter) => [counter.digest, counter]));
    let [events, unverifiable] = [0, 0];
    for (const [digest, owned] of replayed.owned) {
      const { found, isSure, isShort } = this.#foldOf(digest);
      const [kept, now] = [this.#kept.get(digest), later.get(digest)];
      events += found;
      const isMoving = kept?.folded !== now?.folded || kept?.resetThrough !== now?.resetThrough;
      const resetThrough = again.get(digest)?.resetThrough ?? -1;
      if (kept !== undefined && !isMoving && kept.resetThrough !== resetThrough)
        this.#wrong(owned, {
          seq: last,
          problem: "the ledger resets the counter at a different time than its receipts",
          expected: String(resetThrough),
          found: String(kept.resetThrough),
        });
      else if (!isSure || isMoving || (isShort && (kept?.folded ?? 0) > found)) unverifiable += 1;
      else if (kept?.folded !== found)
        this.#wrong(owned, {
          seq: last,
          problem: "the ledger does not have the events of older receipts",
          expected: String(found),
          found: kept === undefined ? "no such counter" : String(kept.folded),
        });
    }
    unverifiable += [...this.#kept.values()].filter(
      ({ digest, folded }) => folded > 0 && !replayed.owned.has(digest),
    ).length;
    const wrong = [this.#firstWrong, await this.#wrongHold(replayed)].filter((each) => each !== undefined);
    const [firstWrong] = wrong.toSorted((one, other) => one.seq - other.seq);
    return { kept: this.#kept.size, events, unverifiable, firstWrong };
  }

  /** A counter that came into force again since then is folded beyond the rows of its contract. */
  async #foldOn(replayed: ReplayLedger, last: number): Promise<void> {
    for (const { digest, through } of replayed.tables.counters) {
      const owned = replayed.owned.get(digest);
      const kept = this.#kept.get(digest);
      const upTo = kept?.through === null ? last : Math.min(last, kept?.through ?? 0);
      if (owned !== undefined && through !== null && upTo > through) await replayed.foldOn(owned, upTo);
    }
  }

  /** Compares what the ledger holds for the approvals that are still open. A later row may have ended one. */
  async #wrongHold(replayed: ReplayLedger): Promise<WrongCounter | undefined> {
    const rows = [...replayed.open.keys()].toSorted((one, other) => one - other);
    for (let from = 0; from < rows.length; from += sliceRows) {
      for (const stored of await this.#ledger.openHolds(rows.slice(from, from + sliceRows))) {
        const wrong = wrongHold(stored, replayed);
        if (wrong !== undefined) return wrong;
      }
    }
    return undefined;
  }

  #wrong({ counter }: OwnedCounter, wrong: Omit<WrongCounter, "counter">): void {
    if (this.#firstWrong === undefined || wrong.seq < this.#firstWrong.seq)
      this.#firstWrong = { counter: counter.name, ...wrong };
  }
}

function wrongHold({ row, holds: stored }: OpenHolds, replayed: ReplayLedger): WrongCounter | undefined {
  const holds = replayed.tables.holdsOf(row);
  const texts = new Set(stored.map(textOf));
  const missing = holds.find((hold) => !texts.has(textOf(hold)));
  const recount = (counter: string): readonly Hold[] => recountHolds(counter, row, replayed);
  // A counter may have been in force between two rows, so that no row names its contract.
  const isLawful = (hold: Hold): boolean => {
    if (holds.some((each) => textOf(each) === textOf(hold))) return true;
    if (!replayed.owned.has(hold.counter)) return hold.counter !== unknownCounter;
    return recount(hold.counter).some((each) => textOf(each) === textOf(hold));
  };
  const wrong = missing ?? stored.find((hold) => !isLawful(hold));
  if (wrong === undefined) return undefined;
  const { counter, key } = wrong;
  const amountIn = (all: readonly Hold[]): string =>
    all.find((hold) => hold.counter === counter && hold.key === key)?.amount ?? "nothing";
  return {
    counter: replayed.owned.get(counter)?.counter.name ?? counter,
    seq: row,
    problem: "the amount that an open approval holds differs from its receipt",
    expected: amountIn(missing === undefined ? recount(counter) : [missing]),
    found: amountIn(stored),
  };
}

function recountHolds(counter: string, row: number, replayed: ReplayLedger): readonly Hold[] {
  const [owned, asked] = [replayed.owned.get(counter), replayed.open.get(row)];
  const updates = owned && asked && recountRow(owned, asked.leaf, asked.row.evidence);
  return (updates ?? [])
    .filter(({ held }) => held === true)
    .map(({ key, amount }) => ({ counter, key: replayed.digest(key), at: asked?.leaf.at ?? 0, amount }));
}

function textOf({ counter, key, at, amount }: Hold): string {
  return [counter, key, at, amount].join(" ");
}

/** The amount at each position, by the totals before and after it; undefined if the counter is not kept, or was changed. */
async function amountsAt(
  ledger: LedgerHistory,
  places: readonly EventPosition[],
): Promise<readonly (string | undefined)[]> {
  const totals = await ledger.totals(
    places.flatMap(({ counter, key, at, seq }) => [
      { counter, key, at, seq },
      { counter, key, at, seq: seq + 1 },
    ]),
  );
  return places.map((_, index) => between(totals[index * 2], totals[index * 2 + 1]));
}

/** The values that a row's lookups have in the ledger: its events in their windows, without those that were taken back. */
export async function storedValues(
  ledger: LedgerHistory,
  lookups: readonly { readonly counter: string; readonly key: string; readonly after: number }[],
  { at, seq }: Leaf,
): Promise<readonly (string | undefined)[]> {
  const resets = new Map(ledger.kept.map(({ digest, resetThrough }) => [digest, resetThrough]));
  const windows = lookups.map(({ counter, key, after }) => {
    const start = Math.max(after, (resets.get(counter) ?? -1) < at ? (resets.get(counter) ?? -1) : -1);
    return { counter, key: ledger.keyDigest(key), after: Math.min(start, at) };
  });
  const totals = await ledger.totals(
    windows.flatMap(({ after, ...of }) => [
      { ...of, at: after, seq: after < at ? Number.MAX_SAFE_INTEGER : seq },
      { ...of, at, seq },
    ]),
  );
  const taken = await ledger.taken(windows.map((window) => ({ ...window, before: seq })));
  return windows.map((_, index) => {
    const value = between(totals[index * 2], totals[index * 2 + 1]);
    return value && (taken[index] ?? []).reduce((sum, amount) => addDecimals(sum, `-${amount}`), value);
  });
}

/** The amount between two totals; undefined if one does not exist, or is not a decimal because somebody changed it. */
function between(before: string | undefined, after: string | undefined): string | undefined {
  return isAmount(before) && isAmount(after) ? addDecimals(after, `-${before}`) : undefined;
}
