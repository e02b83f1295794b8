import { addDecimals, decimalText } from "../../../../core/src/wire/mod.ts";
import { foldChecksum, takenChecksum } from "./checksums.ts";
import type { StoredEffect, StoredLookup } from "./store.ts";
import type { KeptCounter, StoredCounter } from "./tables.ts";
import { Fault } from "../errors.ts";

/** The counters that a ledger keeps, by digest. */
export type KeptCounters = ReadonlyMap<string, KeptCounter>;

/** A lookup as statements need it: with the counter's number and the key's bytes. */
export interface TotalQuery extends StoredLookup {
  readonly id: number;
  readonly bytes: Uint8Array;
}

/** The columns of an amount that is reserved: counter, key, at, row, amount. */
export type ReservationRow = readonly [number, Uint8Array, number, number, string];

/** The rows of amounts that are reserved for a person's decision. */
export function toReservationRows(effects: readonly StoredEffect[], counters: KeptCounters): readonly ReservationRow[] {
  return effects
    .filter(({ held }) => held === true)
    .map(({ counter, key, at, seq, amount }) => [
      keptIn(counters, counter).id,
      Buffer.from(key, "hex"),
      at,
      seq,
      amount,
    ]);
}

/** Adds the amounts that are reserved to a counter's value. */
export function addReserved(value: string, amounts: readonly string[]): string {
  return amounts.reduce((sum, amount) => addDecimals(sum, amount), value);
}

/** The columns of an event that an outcome took back: counter, key, at, seq, amount, outcome, and the checksum of a fold. */
export type TakenRow = readonly [number, Uint8Array, number, number, string, number, string | null];

/** The rows of events that outcomes took back. */
export function takenRows(
  effects: readonly StoredEffect[],
  counters: KeptCounters,
  isFolded: boolean,
): readonly TakenRow[] {
  return effects.flatMap(({ counter, key, at, seq, amount, takenBy }) => {
    if (takenBy === undefined) return [];
    const bytes = Buffer.from(key, "hex");
    const event = { counter, key, at, seq, amount, takenBy };
    return [
      [keptIn(counters, counter).id, bytes, at, seq, amount, takenBy, isFolded ? takenChecksum(event) : null] as const,
    ];
  });
}

/** Subtracts the amounts that outcomes took back. @throws {Fault} if more was taken back than there was */
export function withoutTaken(value: string, amounts: readonly string[]): string {
  if (amounts.length === 0) return value;
  const left = addDecimals(value, `-${sumOf(amounts)}`);
  if (left.startsWith("-"))
    throw new Fault("outcomes took back more than a counter has: restore the ledger from a backup");
  return left;
}

/** Adds decimals that are not negative. Whole numbers of one scale are added first, which takes a tenth of the time. */
export function sumOf(amounts: readonly string[]): string {
  const byScale = new Map<number, number>();
  let sum = "0";
  for (const amount of amounts) {
    const dot = amount.indexOf(".");
    const scale = dot === -1 ? 0 : amount.length - dot - 1;
    const digits = dot === -1 ? amount : amount.slice(0, dot) + amount.slice(dot + 1);
    const added = (byScale.get(scale) ?? 0) + Number(digits);
    if (digits.length <= 15 && Number.isSafeInteger(added)) byScale.set(scale, added);
    else sum = addDecimals(sum, amount);
  }
  for (const [scale, added] of byScale) sum = addDecimals(sum, decimalText(BigInt(added), -scale));
  return sum;
}

/**
 * The sum of a key's amounts after a moment.
 *
 * @param latest the moment and the total of its latest event
 * @param totalAtMoment reads the total at the moment, if there is one
 */
export function sumAfter(
  after: number,
  [at, total]: readonly [at: number, total: string],
  totalAtMoment: () => unknown,
): string {
  if (at <= after) return "0";
  const before = after < 0 ? undefined : totalAtMoment();
  return typeof before === "string" ? addDecimals(total, `-${before}`) : total;
}

/** The columns of an event: counter, key, at, seq, total, and the checksum if a fold found it. */
export type EventRow = readonly [number, Uint8Array, number, number, string, string | null];

/**
 * The latest total of each counter's key. Each event is stored with the total up to it, so that the sum of a window of
 * any length needs two look-ups. The stores only read and write rows.
 */
export class RunningTotals {
  /** By counter and key; null if the key has no events. */
  readonly #totals = new Map<string, string | null>();

  /**
   * Takes over the latest total of a key, and returns the sum of the amounts after the lookup's moment.
   *
   * @param latest the moment and the total of the key's latest event, if there is one
   * @param totalAtMoment reads the total at the lookup's moment, if there is one
   */
  sum({ counter, key, after }: TotalQuery, [at, total]: readonly unknown[], totalAtMoment: () => unknown): string {
    const hasEvents = typeof total === "string";
    this.#totals.set(`${counter} ${key}`, hasEvents ? total : null);
    return hasEvents ? sumAfter(after, [Number(at), total], totalAtMoment) : "0";
  }

  /** The queries that a store must answer with `sum` before it adds the events. */
  findMissing(events: readonly StoredEffect[], counters: KeptCounters): readonly TotalQuery[] {
    const found = new Map<string, TotalQuery>();
    for (const { counter, key, held, takenBy } of events) {
      if (held === true || takenBy !== undefined) continue;
      const name = `${counter} ${key}`;
      if (this.#totals.has(name)) continue;
      const { id } = keptIn(counters, counter);
      found.set(name, { counter, key, after: -1, id, bytes: Buffer.from(key, "hex") });
    }
    return [...found.values()];
  }

  /** Adds events in order, and returns their rows. */
  add(events: readonly StoredEffect[], counters: KeptCounters, isFolded: boolean): readonly EventRow[] {
    return events
      .filter(({ held, takenBy }) => held !== true && takenBy === undefined)
      .map(({ counter, key, at, seq, amount }) => {
        const before = this.#totals.get(`${counter} ${key}`);
        if (before === undefined) throw new Fault(`the latest total of the counter ${counter} was not read`);
        const total = before === null ? amount : addDecimals(before, amount);
        this.#totals.set(`${counter} ${key}`, total);
        const bytes = Buffer.from(key, "hex");
        const checksum = isFolded ? foldChecksum({ counter, key, at, seq, total, before }) : null;
        return [keptIn(counters, counter).id, bytes, at, seq, total, checksum];
      });
  }

  clear(): void {
    this.#totals.clear();
  }
}

function keptIn(counters: KeptCounters, digest: string): KeptCounter {
  const kept = counters.get(digest);
  if (kept === undefined) throw new Fault(`the ledger does not keep the counter ${digest}`);
  return kept;
}

/** The query of a lookup; undefined if the history that it needs is not known. */
export function queryFor(lookup: StoredLookup, counters: KeptCounters): TotalQuery | undefined {
  const after = startOf(lookup, counters);
  if (after === undefined) return undefined;
  return { ...lookup, after, id: keptIn(counters, lookup.counter).id, bytes: Buffer.from(lookup.key, "hex") };
}

/** The moment after which a lookup counts: not before the last reset. Undefined if the history is not known. */
export function startOf({ counter, after }: StoredLookup, counters: KeptCounters): number | undefined {
  const kept = counters.get(counter);
  return kept === undefined || after < kept.unknownThrough ? undefined : Math.max(after, kept.resetThrough);
}

/**
 * Returns the counter as it is kept from now on, and the folded events that it does not have yet, because two gates may
 * fold one counter at once. Unknown history becomes known only if the counter is reset while every new row updates it.
 */
export function keepIn(
  counters: KeptCounters,
  { digest, definition, through, unknownThrough, resetThrough = -1 }: StoredCounter,
  folded: readonly StoredEffect[],
): { readonly kept: KeptCounter; readonly added: readonly StoredEffect[] } {
  const known = counters.get(digest);
  const knownThrough = known === undefined ? 0 : (known.through ?? Number.POSITIVE_INFINITY);
  const isLive = known?.through === null && through === null;
  const added = folded.filter(({ seq, takenBy = seq }) => takenBy > knownThrough);
  const kept = {
    id: known?.id ?? Math.max(0, ...[...counters.values()].map(({ id }) => id)) + 1,
    digest,
    definition,
    through: through === null || known?.through == null ? through : Math.max(known.through, through),
    unknownThrough: isLive ? unknownThrough : Math.max(unknownThrough, known?.unknownThrough ?? -1),
    resetThrough: Math.max(resetThrough, known?.resetThrough ?? -1),
    folded: (known?.folded ?? 0) + added.filter(({ takenBy }) => takenBy === undefined).length,
  };
  return { kept, added };
}
