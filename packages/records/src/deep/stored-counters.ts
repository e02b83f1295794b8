import {
  counterDigest,
  recountRow,
  totalsAround,
  type OwnedCounter,
  type OutcomeAtRow,
} from "../../../gate/src/server/mod.ts";
import {
  ledgerTables,
  type CounterLookup,
  type KeptCounter,
  type LedgerHistory,
  type StoredEffect,
} from "../../../gate/src/ledger/mod.ts";
import { outcomeRows, parseLeaf, type Leaf } from "../../../core/src/record/entry/mod.ts";
import { addDecimals } from "../../../core/src/wire/mod.ts";
import type { RecordedRow } from "../history.ts";
import { isAmount } from "../replay/recorded.ts";
import type { FoldedEvents, ReplayLedger } from "../replay/replay-ledger.ts";
import type { DeepFound, WrongCounter } from "./found.ts";

/** What is known of a counter that was folded again. */
interface CounterFold {
  /** Events that were folded into it and are in the ledger. */
  found: number;
  /** Could every row that it was folded from be counted? */
  isSure: boolean;
  /** Was a row that cannot be counted perhaps counted by an earlier folding? */
  isShort: boolean;
}

type Reservation = ledgerTables.TabledApproval["reservations"][number];

/** Approvals that are compared together. */
const sliceRows = 64;

/** The digest of a counter that the ledger does not keep. */
const unknownCounter = "";

/**
 * Compares what a ledger keeps of its counters with what a replay makes of its rows: the events that no receipt commits
 * to, because they come from rows older than the counter, and the amounts that open approvals reserve. A row's own events are
 * in its evidence; the walk over the chain compared those.
 *
 * It keeps a few numbers for each counter: events are looked up in the ledger, in slices.
 */
export class StoredCounters {
  readonly #ledger: LedgerHistory;
  readonly #kept: ReadonlyMap<string, KeptCounter>;
  readonly #folds = new Map<string, CounterFold>();
  /** Outcomes that an older gate settled by other rules. */
  readonly #older = new Set<number>();
  readonly #unknown = new Set<string>();
  #hasOutcomes = false;
  #firstWrong: WrongCounter | undefined;

  constructor(ledger: LedgerHistory) {
    this.#ledger = ledger;
    this.#kept = new Map(ledger.counters.map((counter) => [counter.digest, counter]));
  }

  /** Notes counters that were unknown when a check was decided. */
  noteUnknown(digests: readonly string[]): void {
    for (const digest of digests) this.#unknown.add(digest);
  }

  /** Notes an outcome before counters are folded over it. */
  note({ rules, seq }: OutcomeAtRow): void {
    this.#hasOutcomes = true;
    if (rules !== outcomeRows.outcomeRules) this.#older.add(seq);
  }

  #foldOf(digest: string): CounterFold {
    return this.#folds.getOrInsertComputed(digest, () => ({ found: 0, isSure: true, isShort: false }));
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
  noteUncounted(digest: string, { leaf }: Pick<RecordedRow, "leaf">, at: number): void {
    const fold = this.#foldOf(digest);
    if (parseLeaf(leaf) === undefined || at > this.#coveredThrough(digest)) fold.isSure = false;
    fold.isShort = true;
  }

  /** Compares events of older rows with those of the ledger. @returns those that the ledger has */
  async compareEvents(folding: FoldedEvents): Promise<readonly StoredEffect[]> {
    const { owned, events, mayLack } = folding;
    const digest = counterDigest(owned.counter.identity);
    const fold = this.#foldOf(digest);
    const ofOlder = ({ seq, takenBy = seq }: StoredEffect): boolean => this.#older.has(takenBy);
    if (events.some(ofOlder)) fold.isSure = false;
    else await this.#checkTaken(folding);
    const added = events.filter((event) => event.takenBy === undefined && !ofOlder(event));
    const totals = await totalsAround(added, this.#ledger);
    const missing = new Set<StoredEffect>();
    for (const [index, event] of added.entries()) {
      const { amount, at, seq } = event;
      const found = between(...(totals[index] ?? []));
      if (mayLack && found === "0" && addDecimals(amount, "0") === "0") {
        fold.isSure = false; // Totals do not show an event of nothing.
        missing.add(event);
      } else if (found !== undefined && addDecimals(found, `-${amount}`) === "0") fold.found += 1;
      else if (found === "0" && (mayLack || at <= this.#coveredThrough(digest))) missing.add(event);
      else
        this.#noteWrong(owned, {
          seq,
          problem: "an event that was folded into a counter differs from its receipt",
          expected: amount,
          found: found ?? "no such event",
        });
    }
    return events.filter((event) => !missing.has(event));
  }

  /** The ledger must have taken back what outcomes took back under each key, and nothing else. */
  async #checkTaken({ owned, events, through, tables, mayLack }: FoldedEvents): Promise<void> {
    // Only a ledger with outcomes has taken events back.
    if (!this.#hasOutcomes || mayLack) return;
    const byKey = [...Map.groupBy(events, ({ key }) => key)].map(([key, own]) => {
      const counter = counterDigest(owned.counter.identity);
      const query = { counter, key, after: tables.joinedThrough({ counter, key }), before: through + 1 };
      const taken = own.filter(({ takenBy }) => takenBy !== undefined);
      const expected = [...(tables.listTakenAmounts([query])[0] ?? []), ...taken.map(({ amount }) => amount)];
      return { query, expected, row: (taken[0] ?? own[0])?.takenBy ?? through };
    });
    const queries = byKey.map(({ query }) => query);
    const found = await ledgerTables.takenIn(this.#ledger.tables, queries);
    for (const [index, { expected, row }] of byKey.entries()) {
      const [is, was] = [expected, found[index] ?? []].map((amounts) => [...amounts].toSorted().join(", "));
      if (is !== was)
        this.#noteWrong(owned, {
          seq: row,
          problem: "the ledger has not taken back exactly the events that outcomes took back",
          expected: is || "nothing taken back",
          found: was || "nothing taken back",
        });
    }
  }

  /** @param last the last row that was examined */
  async end(replayed: ReplayLedger, last: number): Promise<DeepFound["counters"]> {
    await this.#foldOn(replayed, last);
    const later = new Map((await this.#ledger.tables.counters()).kept.map((counter) => [counter.digest, counter]));
    const again = new Map(replayed.tables.counters.map((counter) => [counter.digest, counter]));
    let [events, unverifiable] = [0, 0];
    for (const [digest, owned] of replayed.owned) {
      const [kept, now] = [this.#kept.get(digest), later.get(digest)];
      const isMoving = (["folded", "resetThrough", "unknownThrough"] as const).some((of) => kept?.[of] !== now?.[of]);
      events += this.#foldOf(digest).found;
      const wrong = isMoving ? undefined : this.#wrongKept(digest, again.get(digest));
      if (wrong !== undefined) this.#noteWrong(owned, { ...wrong, seq: last });
      else if (isMoving || !this.#isVerifiable(digest)) unverifiable += 1;
    }
    unverifiable += [...this.#kept.values()].filter(
      ({ digest, folded }) => folded > 0 && !replayed.owned.has(digest),
    ).length;
    const wrong = [this.#firstWrong, await this.#findWrongReservation(replayed)].filter((each) => each !== undefined);
    const [firstWrong] = wrong.toSorted((one, other) => one.seq - other.seq);
    return { kept: this.#kept.size, events, unverifiable, firstWrong };
  }

  #isVerifiable(digest: string): boolean {
    const { found, isSure, isShort } = this.#foldOf(digest);
    return isSure && !(isShort && (this.#kept.get(digest)?.folded ?? 0) > found);
  }

  /** What the ledger keeps of a counter besides its events, compared with what its rows say. */
  #wrongKept(digest: string, again: KeptCounter | undefined): Omit<WrongCounter, "counter" | "seq"> | undefined {
    const kept = this.#kept.get(digest);
    const { found, isShort, isSure } = this.#foldOf(digest);
    const { resetThrough = -1, unknownThrough = -1 } = again ?? {};
    if (kept !== undefined && kept.resetThrough !== resetThrough)
      return {
        problem: "the ledger resets the counter at a different time than its receipts",
        expected: String(resetThrough),
        found: String(kept.resetThrough),
      };
    const isBelow = kept !== undefined && kept.unknownThrough < unknownThrough;
    const isOther = isSure && !isShort && kept !== undefined && kept.unknownThrough !== unknownThrough;
    if (isOther || (isBelow && this.#unknown.has(digest)))
      return {
        problem: "the ledger knows the counter from a different time on than its receipts",
        expected: String(unknownThrough),
        found: String(kept.unknownThrough),
      };
    if (!this.#isVerifiable(digest) || kept?.folded === found) return undefined;
    return {
      problem: "the ledger does not have the events of older receipts",
      expected: String(found),
      found: kept === undefined ? "no such counter" : String(kept.folded),
    };
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

  /** Compares what the ledger has reserved for the approvals that are still open. A later row may have ended one. */
  async #findWrongReservation(replayed: ReplayLedger): Promise<WrongCounter | undefined> {
    const rows = [...replayed.open.rows.keys()].toSorted((one, other) => one - other);
    for (let from = 0; from < rows.length; from += sliceRows) {
      for (const stored of await ledgerTables.openApprovalsAt(
        this.#ledger.tables,
        rows.slice(from, from + sliceRows),
      )) {
        const wrong = checkReservations(stored, replayed);
        if (wrong !== undefined) return wrong;
      }
    }
    return undefined;
  }

  #noteWrong({ counter }: OwnedCounter, wrong: Omit<WrongCounter, "counter">): void {
    if (this.#firstWrong === undefined || wrong.seq < this.#firstWrong.seq)
      this.#firstWrong = { counter: counter.name, ...wrong };
  }
}

function checkReservations(
  { seq: row, reservations: stored }: ledgerTables.TabledApproval,
  replayed: ReplayLedger,
): WrongCounter | undefined {
  const reservations = replayed.tables.readReservations(row);
  const texts = new Set(stored.map(formatReservation));
  const missing = reservations.find((each) => !texts.has(formatReservation(each)));
  const recount = (counter: string): readonly Reservation[] => recountReservations(counter, row, replayed);
  // A counter may have been in force between two rows, so that no row names its contract.
  const isLawful = (reservation: Reservation): boolean => {
    if (reservations.some((each) => formatReservation(each) === formatReservation(reservation))) return true;
    if (!replayed.owned.has(reservation.counter)) return reservation.counter !== unknownCounter;
    return recount(reservation.counter).some((each) => formatReservation(each) === formatReservation(reservation));
  };
  const wrong = missing ?? stored.find((each) => !isLawful(each));
  if (wrong === undefined) return undefined;
  const { counter, key } = wrong;
  const amountIn = (all: readonly Reservation[]): string =>
    all.find((each) => each.counter === counter && each.key === key)?.amount ?? "nothing";
  return {
    counter: replayed.owned.get(counter)?.counter.name ?? counter,
    seq: row,
    problem: "the amount that an open approval reserves differs from its receipt",
    expected: amountIn(missing === undefined ? recount(counter) : [missing]),
    found: amountIn(stored),
  };
}

function recountReservations(counter: string, row: number, replayed: ReplayLedger): readonly Reservation[] {
  const [owned, open] = [replayed.owned.get(counter), replayed.open.rows.get(row)];
  const updates = owned && open && recountRow(owned, open.leaf, open.row.evidence);
  return (updates ?? [])
    .filter(({ held }) => held === true)
    .map(({ key, amount }) => ({ counter, key: replayed.digest(key), at: open?.leaf.at ?? 0, amount }));
}

function formatReservation({ counter, key, at, amount }: Reservation): string {
  return [counter, key, at, amount].join(" ");
}

/** The values that a row's lookups have in the ledger: its events in their windows, without those that were taken back. */
export async function storedValues(
  ledger: LedgerHistory,
  lookups: readonly CounterLookup[],
  { at, seq }: Leaf,
): Promise<readonly (string | undefined)[]> {
  const kept = new Map(ledger.counters.map((counter) => [counter.digest, counter]));
  const windows = lookups.map(({ counter, key, after }) => {
    const { resetThrough = -1 } = kept.get(counter) ?? {};
    const start = Math.max(after, resetThrough < at ? resetThrough : -1);
    return { counter, key: ledger.keyDigest(key), after: Math.min(start, at) };
  });
  const totals = await ledger.totals(
    windows.flatMap(({ after, ...of }) => [
      { ...of, at: after, seq: after < at ? Number.MAX_SAFE_INTEGER : seq },
      { ...of, at, seq },
    ]),
  );
  const queries = windows.map((window) => ({ ...window, before: seq }));
  const taken = await ledgerTables.takenIn(ledger.tables, queries);
  return windows.map((_, index) => {
    const value = between(totals[index * 2], totals[index * 2 + 1]);
    const unknown = kept.get(lookups[index]?.counter ?? "")?.unknownThrough ?? -1;
    if (unknown < at && (lookups[index]?.after ?? -1) < unknown) return undefined;
    return value && (taken[index] ?? []).reduce((sum, amount) => addDecimals(sum, `-${amount}`), value);
  });
}

/** The amount between two totals; undefined if one does not exist, or is not a decimal because somebody changed it. */
function between(before?: string, after?: string): string | undefined {
  return isAmount(before) && isAmount(after) ? addDecimals(after, `-${before}`) : undefined;
}
