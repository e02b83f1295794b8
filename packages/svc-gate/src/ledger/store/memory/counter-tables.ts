import { addDecimals } from "../../../wire/mod.ts";
import { Fault } from "../../errors.ts";
import type { RowRange } from "../../entry/erasure.ts";
import {
  keepIn,
  queryFor,
  RunningTotals,
  withHeld,
  withoutTaken,
  type TotalledEvent,
  type TotalQuery,
} from "../running-totals.ts";
import type {
  EventPosition,
  KeptCounter,
  OpenHolds,
  StoredCounter,
  StoredEffect,
  StoredLookup,
  TakenQuery,
} from "../store.ts";

/** Which events of a counter no later lookup reads alone. */
export interface Lookback {
  /** Milliseconds: events at or before this time are joined. */
  readonly through: number;
  /** True if no later lookup counts them at all. */
  readonly forgets: boolean;
}

/** @param now milliseconds: the time of the last event */
export type LookbackOf = (definition: string, now: number) => Lookback;

/** The events of one counter under one key, in order, each with the total up to it. */
interface Series {
  readonly counter: string;
  readonly at: number[];
  readonly seq: number[];
  readonly totals: string[];
  /** The events that were joined: the time of the last one, and their total. */
  joined: { readonly at: number; readonly total: string } | undefined;
  readonly held: StoredEffect[];
  readonly taken: StoredEffect[];
}

/** The counters of a ledger, with their events and the amounts that approvals hold. */
export class CounterTables {
  readonly #lookbackOf: LookbackOf | undefined;
  readonly #counters = new Map<string, KeptCounter>();
  readonly #series = new Map<string, Series>();
  /** By row. */
  readonly #holds = new Map<number, readonly StoredEffect[]>();
  readonly #totals = new RunningTotals();
  #events = 0;
  #joinAt = eventsAtFirst;

  /** @param lookbackOf by default no event is joined */
  constructor(lookbackOf: LookbackOf | undefined) {
    this.#lookbackOf = lookbackOf;
  }

  get counters(): readonly KeptCounter[] {
    return [...this.#counters.values()];
  }

  keeps(digest: string): boolean {
    return this.#counters.has(digest);
  }

  /** The number of events in memory. */
  get events(): number {
    return this.#events;
  }

  /** Like `StoreTransaction.values`, for one lookup. */
  value(lookup: StoredLookup): string | undefined {
    const query = queryFor(lookup, this.#counters);
    if (query === undefined) return undefined;
    const { after } = query;
    const series = this.#series.get(nameOf(lookup));
    const sum = this.#sum(query);
    if (series === undefined || series.held.length + series.taken.length === 0) return sum;
    const amounts = (effects: readonly StoredEffect[]): readonly string[] =>
      effects.filter(({ at }) => at > after).map(({ amount }) => amount);
    return withoutTaken(withHeld(sum, amounts(series.held)), amounts(series.taken));
  }

  #sum(query: TotalQuery): string {
    const series = this.#series.get(nameOf(query));
    return this.#totals.sum(query, latest(series), () => totalThrough(series, query.after));
  }

  /** @throws {Fault} if a counter is not kept */
  require(effects: readonly StoredEffect[]): void {
    for (const { counter } of effects)
      if (!this.#counters.has(counter)) throw new Fault(`the ledger does not keep the counter ${counter}`);
  }

  add(effects: readonly StoredEffect[]): void {
    if (effects.length === 0) return;
    for (const query of this.#totals.missing(effects, this.#counters)) this.#sum(query);
    for (const event of this.#totals.add(effects, this.#counters)) this.#put(event);
    for (const effect of effects) {
      if (effect.held === true) this.#hold(effect);
      else if (effect.takenBy !== undefined) this.#seriesOf(effect).taken.push(effect);
    }
    this.#totals.clear();
    if (this.#events > this.#joinAt) this.#join(effects.at(-1)?.at ?? 0);
  }

  #put({ counter, key, at, seq, total }: TotalledEvent): void {
    const series = this.#seriesOf({ counter, key });
    series.at.push(at);
    series.seq.push(seq);
    series.totals.push(total);
    this.#events += 1;
  }

  #seriesOf(of: Pick<StoredEffect, "counter" | "key">): Series {
    const name = nameOf(of);
    const known = this.#series.get(name);
    if (known !== undefined) return known;
    const { counter } = of;
    const made = { counter, at: [], seq: [], totals: [], joined: undefined, held: [], taken: [] };
    this.#series.set(name, made);
    return made;
  }

  #hold(effect: StoredEffect): void {
    const known = this.#holds.get(effect.seq) ?? [];
    if (known.some((each) => nameOf(each) === nameOf(effect))) return;
    this.#holds.set(effect.seq, [...known, effect]);
    this.#seriesOf(effect).held.push(effect);
  }

  /** The amounts that a row holds now. */
  holdsOf(row: number): readonly StoredEffect[] {
    return this.#holds.get(row) ?? [];
  }

  release([from, to]: RowRange): void {
    const rows = from === to ? [from] : [...this.#holds.keys()].filter((row) => row >= from && row <= to);
    for (const row of rows) {
      for (const effect of this.holdsOf(row)) {
        const { held } = this.#seriesOf(effect);
        held.splice(held.indexOf(effect), 1);
      }
      this.#holds.delete(row);
    }
  }

  /** Like `LedgerStore.keepCounter`. */
  keep(counter: StoredCounter, folded: readonly StoredEffect[]): void {
    const before = this.#counters.get(counter.digest)?.resetThrough ?? -1;
    const { kept, added } = keepIn(this.#counters, counter, folded);
    this.#counters.set(kept.digest, kept);
    if (kept.resetThrough > before)
      for (const series of this.#series.values()) if (series.counter === kept.digest) reset(series, kept.resetThrough);
    this.add(added);
  }

  /** The amounts that approvals hold in a lookup's window. */
  held({ after, ...of }: StoredLookup): readonly StoredEffect[] {
    return this.#series.get(nameOf(of))?.held.filter(({ at }) => at > after) ?? [];
  }

  /** Like `HistoryReader.totals`. */
  totals(places: readonly EventPosition[]): readonly (string | undefined)[] {
    return places.map((place) => {
      if (!this.#counters.has(place.counter)) return undefined;
      const series = this.#series.get(nameOf(place));
      if (series === undefined) return "0";
      const index = firstAt(series, place.at, place.seq);
      return (index === 0 ? series.joined?.total : series.totals[index - 1]) ?? "0";
    });
  }

  /** The time of a row's event that can be taken back; undefined if there is no such event, or if it was joined. */
  timeOf({ amount, ...of }: Pick<StoredEffect, "amount" | "counter" | "key">, row: number): number | undefined {
    const { seq, at, totals, taken, joined } = this.#series.get(nameOf(of)) ?? noSeries;
    const index = seq.lastIndexOf(row);
    const before = (index === 0 ? joined?.total : totals[index - 1]) ?? "0";
    const isTaken = taken.some((each) => each.seq === row);
    return index === -1 || isTaken || addDecimals(before, amount) !== totals[index] ? undefined : at[index];
  }

  /** Like `HistoryReader.taken`. */
  taken(queries: readonly TakenQuery[]): readonly (readonly string[])[] {
    return queries.map(({ after, before, ...of }) =>
      (this.#series.get(nameOf(of))?.taken ?? [])
        .filter(({ at, takenBy = 0 }) => at > after && takenBy < before)
        .map(({ amount }) => amount),
    );
  }

  openHolds(rows: readonly number[]): readonly OpenHolds[] {
    return rows.map((row) => ({ row, holds: this.holdsOf(row) }));
  }

  /** Joins events that no later lookup reads alone. It runs so seldom that the cost for each event is constant. */
  #join(now: number): void {
    const lookbackOf = this.#lookbackOf;
    if (lookbackOf === undefined) return;
    const found = new Map(this.counters.map(({ digest, definition }) => [digest, lookbackOf(definition, now)]));
    this.#events = 0;
    for (const [name, series] of this.#series) {
      const lookback = found.get(series.counter);
      if (lookback !== undefined) join(series, lookback.through);
      const isOver = series.at.length + series.held.length + series.taken.length === 0;
      if (isOver && lookback?.forgets === true) this.#series.delete(name);
      this.#events += series.at.length;
    }
    this.#joinAt = Math.max(eventsAtFirst, this.#events * 2);
  }
}

const eventsAtFirst = 1024;

const noSeries: Omit<Series, "counter" | "held"> = { at: [], seq: [], totals: [], joined: undefined, taken: [] };

function nameOf({ counter, key }: Pick<StoredEffect, "counter" | "key">): string {
  return `${counter} ${key}`;
}

/** The time and the total of the latest event. */
function latest(series: Series | undefined): readonly unknown[] {
  if (series !== undefined && series.at.length > 0) return [series.at.at(-1), series.totals.at(-1)];
  return series?.joined === undefined ? [] : [series.joined.at, series.joined.total];
}

/** The total of the events at or before a time; undefined if there is none. */
function totalThrough(series: Series | undefined, at: number): string | undefined {
  if (series === undefined) return undefined;
  const index = firstAt(series, at, Infinity);
  if (index > 0) return series.totals[index - 1];
  return series.joined !== undefined && series.joined.at <= at ? series.joined.total : undefined;
}

/** The index of the first event at a position or after it. */
function firstAt({ at: times, seq: rows }: Series, at: number, seq: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const time = times[middle] ?? 0;
    if (time < at || (time === at && (rows[middle] ?? 0) < seq)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function join(series: Series, through: number): void {
  const count = firstAt(series, through, Infinity);
  const total = series.totals[count - 1];
  if (count > 0 && total !== undefined) series.joined = { at: series.at[count - 1] ?? through, total };
  removeFirst(series, count);
  const old = series.taken.filter(({ at }) => at <= through);
  if (old.length === 0) return;
  subtract(
    series,
    withHeld(
      "0",
      old.map(({ amount }) => amount),
    ),
  );
  series.taken.splice(0, Infinity, ...series.taken.filter(({ at }) => at > through));
}

/** Removes the events at or before a time, as if they had never been. */
function reset(series: Series, through: number): void {
  const count = firstAt(series, through, Infinity);
  const gone = (count === 0 ? series.joined?.total : series.totals[count - 1]) ?? "0";
  removeFirst(series, count);
  series.joined = undefined;
  subtract(series, gone);
  series.taken.splice(0, Infinity, ...series.taken.filter(({ at }) => at > through));
}

function removeFirst({ at, seq, totals }: Series, count: number): void {
  for (const column of [at, seq, totals]) column.splice(0, count);
}

function subtract(series: Series, amount: string): void {
  const less = (total: string): string => withoutTaken(total, [amount]);
  for (const [index, total] of series.totals.entries()) series.totals[index] = less(total);
  if (series.joined !== undefined) series.joined = { ...series.joined, total: less(series.joined.total) };
}
