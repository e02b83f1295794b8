import { addDecimals } from "../../../core/src/wire/mod.ts";
import { Fault } from "../../../gate/src/ledger/engine.ts";
import type { RowRange } from "../../../core/src/record/entry/erasure.ts";
import { keepIn, startOf, sumAfter, addReserved, withoutTaken } from "../../../gate/src/ledger/engine.ts";
import type { Entry } from "../../../gate/src/ledger/engine.ts";
import type { EventPosition, StoredEffect, StoredLookup, TakenQuery } from "../../../gate/src/ledger/engine.ts";
import type { KeptCounter, StoredCounter } from "../../../gate/src/ledger/engine.ts";

/** What later lookups of a counter no longer read. */
export interface Lookback {
  /** Milliseconds: events up to this time are joined to one total, because later lookups count all of them or none. */
  readonly through: number;
  /** True if later lookups count none of them. */
  readonly forgets: boolean;
}

/** @param now milliseconds: the time of the last event */
export type LookbackOf = (definition: string, now: number) => Lookback;

/** The events of one counter under one key, in the order of their times, each with the total up to it. */
interface EventSeries {
  readonly counter: string;
  readonly key: string;
  readonly at: number[];
  readonly seq: number[];
  readonly totals: string[];
  /** The events that were joined: the time of the last one, and their total. */
  joined: { readonly at: number; readonly total: string } | undefined;
  readonly reserved: StoredEffect[];
  readonly taken: StoredEffect[];
}

/** The counters of a ledger in memory, with their events and the amounts that approvals reserve. */
export class CounterTables {
  readonly #lookbackOf: LookbackOf | undefined;
  readonly #counters = new Map<string, KeptCounter>();
  readonly #series = new Map<string, EventSeries>();
  /** By row. */
  readonly #reservations = new Map<number, readonly StoredEffect[]>();
  /** The number of events in memory. */
  events = 0;
  #joinAt = eventsAtFirst;

  /** @param lookbackOf by default no event is joined */
  constructor(lookbackOf?: LookbackOf) {
    this.#lookbackOf = lookbackOf;
  }

  get counters(): readonly KeptCounter[] {
    return [...this.#counters.values()];
  }

  keeps(digest: string): boolean {
    return this.#counters.has(digest);
  }

  /** The tables of events, of amounts that are reserved, and of events that were taken back. No checksum is kept. */
  get entries(): { readonly [T in "effects" | "holds" | "withdrawals"]: () => readonly Entry<T>[] } {
    const all = [...this.#series.values()];
    const idOf = ({ counter }: Pick<EventSeries, "counter">): number => this.#counters.get(counter)?.id ?? -1;
    return {
      effects: () =>
        all.flatMap((series) =>
          series.seq.map((seq, index) => {
            const { at, key, totals } = series;
            const event = { counter: idOf(series), key, at: at[index] ?? 0, seq };
            return { ...event, total: totals[index] ?? "", folded: null };
          }),
        ),
      holds: () =>
        all.flatMap(({ reserved }) =>
          reserved.map(({ key, at, seq, amount, ...of }) => ({ counter: idOf(of), key, at, seq, amount })),
        ),
      withdrawals: () =>
        all.flatMap(({ taken }) =>
          taken.map(({ key, at, seq, amount, takenBy = 0, ...of }) => {
            return { counter: idOf(of), key, at, seq, amount, outcome: takenBy, folded: null };
          }),
        ),
    };
  }

  /** Like `StoreTransaction.values`, for one lookup. */
  value(lookup: StoredLookup): string | undefined {
    const after = startOf(lookup, this.#counters);
    if (after === undefined) return undefined;
    const series = this.#series.get(formatSeriesKey(lookup));
    if (series === undefined) return "0";
    const latest = latestOf(series);
    const sum = latest === undefined ? "0" : sumAfter(after, latest, () => totalThrough(series, after));
    const amounts = (effects: readonly StoredEffect[]): readonly string[] =>
      effects.filter(({ at }) => at > after).map(({ amount }) => amount);
    return withoutTaken(addReserved(sum, amounts(series.reserved)), amounts(series.taken));
  }

  /** Adds effects in order. @throws {Fault} if one cannot be added; then none is */
  add(effects: readonly StoredEffect[]): void {
    this.require(effects);
    for (const effect of effects) {
      const series = this.#seriesOf(effect);
      if (effect.held === true) this.#reserve(effect, series);
      else if (effect.takenBy !== undefined) series.taken.push(effect);
      else {
        series.totals.push(addDecimals(latestOf(series)?.[1] ?? "0", effect.amount));
        series.at.push(effect.at);
        series.seq.push(effect.seq);
        this.events += 1;
      }
    }
    if (this.events > this.#joinAt) this.#join(effects.at(-1)?.at ?? 0);
  }

  /** @throws {Fault} if a counter is not kept, or if an event is taken back twice. @param coming more counters */
  require(effects: readonly StoredEffect[], coming: ReadonlySet<string> = new Set()): void {
    for (const effect of effects) {
      const { counter, takenBy } = effect;
      if (!this.keeps(counter) && !coming.has(counter))
        throw new Fault(`the ledger does not keep the counter ${counter}`);
      if (takenBy !== undefined && this.#isTaken(effect)) throw new Fault(`row ${takenBy} takes an event back again`);
    }
  }

  #isTaken({ seq, at, ...of }: Pick<StoredEffect, "at" | "counter" | "key" | "seq">): boolean {
    return this.#series.get(formatSeriesKey(of))?.taken.some((each) => each.seq === seq && each.at === at) === true;
  }

  #seriesOf(of: Pick<StoredEffect, "counter" | "key">): EventSeries {
    const { counter, key } = of;
    const empty = (): EventSeries => ({
      counter,
      key,
      at: [],
      seq: [],
      totals: [],
      joined: undefined,
      reserved: [],
      taken: [],
    });
    return this.#series.getOrInsertComputed(formatSeriesKey(of), empty);
  }

  #reserve(effect: StoredEffect, { reserved }: EventSeries): void {
    const known = this.readReservations(effect.seq);
    if (known.some((each) => formatSeriesKey(each) === formatSeriesKey(effect))) return;
    this.#reservations.set(effect.seq, [...known, effect]);
    reserved.push(effect);
  }

  /** The amounts that a row reserves now. */
  readReservations(row: number): readonly StoredEffect[] {
    return this.#reservations.get(row) ?? [];
  }

  /** The amounts that approvals reserve in a lookup's window. */
  reservedIn({ after, ...of }: StoredLookup): readonly StoredEffect[] {
    return this.#series.get(formatSeriesKey(of))?.reserved.filter(({ at }) => at > after) ?? [];
  }

  release([from, to]: RowRange): void {
    const rows = from === to ? [from] : [...this.#reservations.keys()].filter((row) => row >= from && row <= to);
    for (const row of rows) {
      for (const effect of this.readReservations(row)) {
        const { reserved } = this.#seriesOf(effect);
        reserved.splice(reserved.indexOf(effect), 1);
      }
      this.#reservations.delete(row);
    }
  }

  /** Like `LedgerStore.keepCounter`. */
  keep(counter: StoredCounter, folded: readonly StoredEffect[]): void {
    const { kept, added } = keepIn(this.#counters, counter, folded);
    this.require(added, new Set([kept.digest]));
    const before = this.#counters.get(kept.digest)?.resetThrough ?? -1;
    this.#counters.set(kept.digest, kept);
    if (kept.resetThrough > before)
      for (const series of this.#series.values()) if (series.counter === kept.digest) reset(series, kept.resetThrough);
    this.add(added);
  }

  /** Like `totalsBefore`. */
  totals(positions: readonly EventPosition[]): readonly (string | undefined)[] {
    return positions.map((position) => {
      if (!this.keeps(position.counter)) return undefined;
      const series = this.#series.get(formatSeriesKey(position));
      return series === undefined ? "0" : (totalBefore(series, firstAt(series, position.at, position.seq)) ?? "0");
    });
  }

  /** The time of a row's event that can be taken back; undefined if there is no such event, or if it was joined. */
  timeOf({ amount, ...of }: Pick<StoredEffect, "amount" | "counter" | "key">, row: number): number | undefined {
    const series = this.#series.get(formatSeriesKey(of));
    const index = series?.seq.lastIndexOf(row) ?? -1;
    const [at, total] = [series?.at[index], series?.totals[index]];
    if (series === undefined || at === undefined || total === undefined) return undefined;
    const isSame = addDecimals(total, `-${totalBefore(series, index) ?? "0"}`) === addDecimals(amount, "0");
    return isSame && !this.#isTaken({ ...of, at, seq: row }) ? at : undefined;
  }

  /** Milliseconds: events up to this time are joined; -1 if none is. */
  joinedThrough(of: Pick<StoredEffect, "counter" | "key">): number {
    return this.#series.get(formatSeriesKey(of))?.joined?.at ?? -1;
  }

  /** Like `takenIn`. */
  listTakenAmounts(queries: readonly TakenQuery[]): readonly (readonly string[])[] {
    return queries.map(({ after, before, ...of }) =>
      (this.#series.get(formatSeriesKey(of))?.taken ?? [])
        .filter(({ at, takenBy = 0 }) => at > after && takenBy < before)
        .map(({ amount }) => amount),
    );
  }

  /** Joins events that no later lookup counts alone. It runs so seldom that the cost for each event is constant. */
  #join(now: number): void {
    const lookbackOf = this.#lookbackOf;
    if (lookbackOf === undefined) return;
    const found = new Map(this.counters.map(({ digest, definition }) => [digest, lookbackOf(definition, now)]));
    this.events = 0;
    for (const [name, series] of this.#series) {
      const lookback = found.get(series.counter);
      if (lookback !== undefined) join(series, lookback.through);
      const isOver = series.at.length + series.reserved.length + series.taken.length === 0;
      if (isOver && lookback?.forgets === true) this.#series.delete(name);
      this.events += series.at.length;
    }
    this.#joinAt = Math.max(eventsAtFirst, this.events * 2);
  }
}

const eventsAtFirst = 1024;

function formatSeriesKey({ counter, key }: Pick<StoredEffect, "counter" | "key">): string {
  return `${counter} ${key}`;
}

/** The time and the total of the latest event. */
function latestOf({ at, totals, joined }: EventSeries): readonly [at: number, total: string] | undefined {
  const [time, total] = [at.at(-1), totals.at(-1)];
  if (time !== undefined && total !== undefined) return [time, total];
  return joined && [joined.at, joined.total];
}

function totalBefore({ totals, joined }: EventSeries, index: number): string | undefined {
  return index === 0 ? joined?.total : totals[index - 1];
}

/** The total of the events at or before a time; undefined if there is none. */
function totalThrough(series: EventSeries, at: number): string | undefined {
  const index = firstAt(series, at, Infinity);
  return index === 0 && (series.joined?.at ?? 0) > at ? undefined : totalBefore(series, index);
}

/** The index of the first event at a position or after it. */
function firstAt({ at: times, seq: rows }: EventSeries, at: number, seq: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const time = times[middle] ?? 0;
    if (time < at || (time === at && (rows[middle] ?? 0) < seq)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Joins the events at or before a time, without those that were taken back. */
function join(series: EventSeries, through: number): void {
  const count = firstAt(series, through, Infinity);
  const [at, total] = [series.at[count - 1], series.totals[count - 1]];
  removeFirst(series, count);
  if (at !== undefined && total !== undefined) series.joined = { at, total };
  for (const { amount } of removeTaken(series, through)) subtract(series, amount);
}

/** Removes the events at or before a time, as if they had never been. */
function reset(series: EventSeries, through: number): void {
  const count = firstAt(series, through, Infinity);
  const gone = totalBefore(series, count);
  removeFirst(series, count);
  removeTaken(series, through);
  series.joined = undefined;
  if (gone !== undefined) subtract(series, gone);
}

function removeFirst({ at, seq, totals }: EventSeries, count: number): void {
  for (const column of [at, seq, totals]) column.splice(0, count);
}

function removeTaken({ taken }: EventSeries, through: number): readonly StoredEffect[] {
  const gone = taken.filter(({ at }) => at <= through);
  if (gone.length > 0) taken.splice(0, Infinity, ...taken.filter(({ at }) => at > through));
  return gone;
}

function subtract(series: EventSeries, amount: string): void {
  for (const [index, total] of series.totals.entries()) series.totals[index] = withoutTaken(total, [amount]);
  const { joined } = series;
  if (joined !== undefined) series.joined = { ...joined, total: withoutTaken(joined.total, [amount]) };
}
