import { windowStart, type Counter, type Lookup, type CounterUpdate } from "../contract/mod.ts";
import { addDecimals } from "../wire/mod.ts";

/**
 * The values of counters, in memory: the events of calls that were decided one after another, for tests and replays.
 *
 * They are exact, and counters with one identity are one counter. Events that no later lookup can read are removed:
 * events that have left their window, and the single events of a counter whose lookups always read all events. Time
 * goes forward: `at` never decreases.
 */
export class InMemoryCounters {
  readonly #series = new Map<string, Series>();
  /** By row: the amounts that its approval holds. */
  readonly #holds = new Map<number, readonly Hold[]>();
  #kept = 0;
  #sweepAt = eventsAtFirst;

  /**
   * The sum of the amounts under the key after `after`, as a decimal.
   *
   * @param own the row of the call's own approval, whose amounts do not count against the call
   */
  value({ counter, key, after }: Lookup, own?: number): string {
    const id = name(counter, key);
    const series = this.#series.get(id);
    const total = series === undefined ? "0" : sumAfter(series, after);
    if (this.#holds.size === 0) return total;
    const held = [...this.#holds].flatMap(([row, holds]) => (row === own ? [] : holds));
    return held.reduce((sum, hold) => (hold.id === id && hold.at > after ? addDecimals(sum, hold.amount) : sum), total);
  }

  /** Holds amounts until a person decides the call of a row. */
  hold(row: number, updates: readonly CounterUpdate[], at: number): void {
    if (updates.length === 0) return;
    const holds = updates.map(({ counter, key, amount }) => ({ id: name(counter, key), at, amount }));
    this.#holds.set(row, [...(this.#holds.get(row) ?? []), ...holds]);
  }

  /** The amounts that some rows hold count no more. */
  release([from, to]: readonly [from: number, to: number]): void {
    for (const row of this.#holds.keys()) if (row >= from && row <= to) this.#holds.delete(row);
  }

  /** @param at milliseconds since the epoch: the time of the call's decision */
  add({ counter, key, amount }: CounterUpdate, at: number): void {
    const id = name(counter, key);
    let series = this.#series.get(id);
    if (series === undefined) this.#series.set(id, (series = empty(counter)));
    const total = addDecimals(series.totals.at(-1) ?? series.before, amount);
    if (series.isForEver) series.before = total;
    else if (series.at.at(-1) === at) series.totals[series.totals.length - 1] = total;
    else {
      series.at.push(at);
      series.totals.push(total);
      this.#kept += 1;
      if (this.#kept > this.#sweepAt) this.#sweep(at);
    }
  }

  /** Takes back an event that was added at a time. An event that has left its window may be gone already. */
  take({ counter, key, amount }: CounterUpdate, at: number): void {
    const series = this.#series.get(name(counter, key));
    if (series === undefined) return;
    const less = (total: string): string => addDecimals(total, `-${amount}`);
    const first = firstAfter(series.at, at - 1);
    if (series.isForEver || series.at[first] !== at) series.before = less(series.before);
    const from = series.at[first] === at ? first : 0;
    for (let place = from; place < series.totals.length; place += 1)
      series.totals[place] = less(series.totals[place] ?? "0");
  }

  /** Removes all events of a counter: from now on it counts from zero. */
  reset(identity: string): void {
    for (const [id, { counter }] of this.#series) if (counter.identity === identity) this.#series.delete(id);
    for (const [row, holds] of this.#holds) {
      const left = holds.filter(({ id }) => !id.startsWith(`${identity} `));
      this.#holds.set(row, left);
    }
  }

  /** The number of events in memory. */
  get events(): number {
    return this.#kept;
  }

  /** Removes events that have left their window. It runs so seldom that the cost for each event is constant. */
  #sweep(now: number): void {
    this.#kept = 0;
    for (const [id, series] of this.#series) {
      if (series.isForEver) continue;
      drop(series, windowStart(series.counter.window, now));
      if (series.at.length === 0) this.#series.delete(id);
      this.#kept += series.at.length;
    }
    this.#sweepAt = Math.max(eventsAtFirst, this.#kept * 2);
  }
}

interface Hold {
  readonly id: string;
  readonly at: number;
  readonly amount: string;
}

const eventsAtFirst = 1024;

/** The events of one counter under one key, in order, each with the total up to it. */
interface Series {
  readonly counter: Counter;
  /** Each lookup reads all events, so `before` is enough. */
  readonly isForEver: boolean;
  readonly at: number[];
  readonly totals: string[];
  /** The total of the events that are not in `totals`. */
  before: string;
}

function name({ identity }: Counter, key: string): string {
  return `${identity} ${key}`;
}

function empty(counter: Counter): Series {
  return { counter, isForEver: counter.window.kind === "ever" && !settles(counter), at: [], totals: [], before: "0" };
}

/** Does the counter have a `since:`? Its identity is its definition, as JSON. */
function settles({ identity }: Counter): boolean {
  return (JSON.parse(identity) as { readonly since: string | null }).since !== null;
}

function sumAfter({ isForEver, at, totals, before }: Series, after: number): string {
  const all = totals.at(-1) ?? before;
  if (isForEver) return all;
  const first = firstAfter(at, after);
  const gone = first === 0 ? before : (totals[first - 1] ?? before);
  return gone === "0" ? all : addDecimals(all, `-${gone}`);
}

/** The index of the first time after `after`; the times are sorted. */
function firstAfter(at: readonly number[], after: number): number {
  let [low, high] = [0, at.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((at[middle] ?? 0) > after) high = middle;
    else low = middle + 1;
  }
  return low;
}

function drop(series: Series, through: number): void {
  const gone = firstAfter(series.at, through);
  if (gone === 0) return;
  series.before = series.totals[gone - 1] ?? series.before;
  series.at.splice(0, gone);
  series.totals.splice(0, gone);
}
