import { hash } from "node:crypto";
import { addDecimals } from "../../wire/mod.ts";
import type { Broken } from "../entry/row.ts";
import { readEffects, type RecordedEffect } from "../entry/verifier.ts";
import { isEvent } from "../entry/outcome-rows.ts";
import { foldChecksum } from "../store/checksums.ts";
import type { KeptCounter } from "../store/store.ts";

/** The counters of a ledger, and the first one whose own row was changed, if any. */
export interface Counters {
  readonly kept: readonly KeptCounter[];
  readonly damaged: KeptCounter | undefined;
}

/** An event that a row recorded. */
export interface RecordedEvent extends RecordedEffect {
  readonly seq: number;
  readonly at: number;
}

/** The key of an event in the order of its table. */
export type EventKey = readonly [counter: number, key: Uint8Array, at: number, seq: number];

export interface EventQuery {
  readonly key: EventKey;
  /** True if the total before the event is also needed. */
  readonly withBefore: boolean;
}

/** The total after a recorded event, and the total before it. */
export interface StoredTotals {
  readonly total: string | undefined;
  readonly before: string | undefined;
}

/** The number of events between two keys. */
export interface EventTally {
  /** The key of the last of them; undefined if none follows. */
  readonly to: EventKey | undefined;
  /** Events that receipts recorded, up to the last row of the walk. */
  readonly live: number;
  readonly folded: number;
  /** Events of rows that do not exist. */
  readonly beyond: number;
  /** The last row of the ledger. */
  readonly last: number;
}

/** An event that a fold found: its total, its checksum, and the total before it. */
export interface FoldedRow {
  readonly key: EventKey;
  readonly total: string;
  readonly checksum: string;
  readonly before: string | undefined;
}

/** The number of events of a row, and the evidence that records them. */
export type RecordedCount = readonly [seq: number, count: number, evidence: string | undefined];

/** Reads the counters of a store, and other stored data that no row refers to. */
export interface CounterReader {
  counters(): Promise<Counters>;
  events(queries: readonly EventQuery[]): Promise<readonly StoredTotals[]>;
  /** @param after undefined for the first events */
  tally(after: EventKey | undefined, through: number): Promise<EventTally>;
  folds(after: EventKey | undefined, to: EventKey | undefined): Promise<readonly FoldedRow[]>;
  /** Returns the number of events for some rows after one, in order; none at the end. */
  recorded(after: number): Promise<readonly RecordedCount[]>;
  /** Returns the digests and texts of some contracts after a digest; none at the end. */
  contracts(after: string | undefined): Promise<readonly (readonly [digest: string, text: string])[]>;
}

/** The number of events that are read at once, which takes a few milliseconds. */
export const sliceEvents = 16_384;

/** The number of rows whose events are counted at once. */
export const sliceRows = 64;

/** The most totals that a walk keeps in memory, however many keys there are. */
const totalsMax = 8192;

/** Verifies the counters during a walk: first each event that a row recorded, then data that no row refers to. */
export class CounterWalk {
  readonly #reader: CounterReader;
  #counters: Counters = { kept: [], damaged: undefined };
  /** Totals by counter and key, as computed by the walk. They save half of the look-ups. */
  readonly #totals = new Map<string, string>();
  /** True if the walk began at row 1 and still has every total, so that a key without a total is new. */
  #sawAll: boolean;
  #events = 0;

  constructor(reader: CounterReader, isWhole: boolean) {
    this.#reader = reader;
    this.#sawAll = isWhole;
  }

  /** Checks that the stored events are those of the rows. */
  async step(events: readonly RecordedEvent[], counters: Counters | undefined): Promise<Broken | undefined> {
    if (counters !== undefined) this.#counters = counters;
    for (let from = 0; from < events.length; from += sliceEvents) {
      const broken = await this.#eventsOf(events.slice(from, from + sliceEvents));
      if (broken !== undefined) return broken;
    }
    return undefined;
  }

  /**
   * Returns the mistake if a counter's own row was changed.
   *
   * @param seq the row to report
   */
  damaged(seq: number): Broken | undefined {
    const { damaged } = this.#counters;
    if (damaged === undefined) return undefined;
    const problem = `the description of the counter ${damaged.id} was changed`;
    return { seq, problem, expected: "the description that was sealed", found: "another" };
  }

  /**
   * Checks that each event's total is the total before it plus the amount in the receipt. The total before it comes
   * from the walk, or from the store if the walk did not see all events.
   */
  async #eventsOf(events: readonly RecordedEvent[]): Promise<Broken | undefined> {
    const counters = new Map(this.#counters.kept.map((counter) => [counter.digest, counter]));
    const met = new Set<string>();
    const asked = events.map(({ counter, key, at, seq }) => {
      const { id = -1, folded = 0 } = counters.get(counter) ?? {};
      const of = `${counter} ${key}`;
      const hasFolds = folded > 0;
      const withBefore = hasFolds || !(this.#sawAll || this.#totals.has(of) || met.has(of));
      met.add(of);
      return { id, of, hasFolds, withBefore, key: [id, Buffer.from(key, "hex"), at, seq] as const };
    });
    const stored = await this.#reader.events(asked);
    for (const [index, { id, of, hasFolds, withBefore }] of asked.entries()) {
      const { amount, seq } = events[index] as RecordedEvent;
      if (this.#counters.damaged?.id === id) return this.damaged(seq);
      const { total, before } = stored[index] ?? {};
      const expected = sum(withBefore ? before : this.#totals.get(of), amount);
      const problem = "a counter's total differs from its receipts";
      if (total !== expected) return { seq, problem, expected, found: total ?? "no such event" };
      if (!hasFolds) this.#totals.set(of, expected);
    }
    this.#events += events.length;
    if (this.#totals.size > totalsMax) {
      this.#totals.clear();
      this.#sawAll = false;
    }
    return undefined;
  }

  /**
   * Checks data that no row refers to: events that no receipt recorded, events of a fold, and contracts that no row
   * names yet.
   *
   * @param through the last row of the walk; events of later rows are ignored
   */
  async rest(through: number): Promise<Broken | undefined> {
    const folded = new Map<number, number>();
    let live = 0;
    let after: EventKey | undefined;
    do {
      const tally = await this.#reader.tally(after, through);
      if (tally.beyond > 0) return beyond(tally.last + 1);
      live += tally.live;
      const broken = tally.folded === 0 ? undefined : await this.#folds(after, tally.to, folded);
      if (broken !== undefined) return broken;
      after = tally.to;
    } while (after !== undefined);
    if (live !== this.#events) return this.#unrecorded(live, through);
    return (await this.#foldedCounts(folded, through)) ?? (await this.#unnamedContract(through));
  }

  async #folds(
    after: EventKey | undefined,
    to: EventKey | undefined,
    counts: Map<number, number>,
  ): Promise<Broken | undefined> {
    const folds = await this.#reader.folds(after, to);
    const { kept } = await this.#reader.counters();
    const digests = new Map(kept.map(({ id, digest }) => [id, digest]));
    for (const { key: place, total, checksum, before } of folds) {
      const [id, key, at, seq] = place;
      const expected = foldChecksum({ counter: digests.get(id) ?? "", key, at, seq, total, before });
      const problem = "an event that was folded into a counter was changed";
      if (checksum !== expected) return { seq, problem, expected, found: checksum };
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return undefined;
  }

  /**
   * Compares the number of folded events with the counters before and after the walk, because a fold may be running.
   */
  async #foldedCounts(counts: ReadonlyMap<number, number>, through: number): Promise<Broken | undefined> {
    const later = new Map((await this.#reader.counters()).kept.map(({ digest, folded }) => [digest, folded]));
    for (const { id, digest, folded } of this.#counters.kept) {
      const found = counts.get(id) ?? 0;
      const problem = `the counter ${id} does not have the events that were folded into it`;
      if (found < folded || found > (later.get(digest) ?? folded))
        return { seq: through, problem, expected: String(folded), found: String(found) };
    }
    return undefined;
  }

  async #unnamedContract(through: number): Promise<Broken | undefined> {
    for (let after: string | undefined; ;) {
      const contracts = await this.#reader.contracts(after);
      for (const [digest, text] of contracts) {
        const found = hash("sha256", text, "hex");
        const problem = "the text of a contract that no row names yet was changed";
        if (found !== digest) return { seq: through + 1, problem, expected: digest, found };
        after = digest;
      }
      if (contracts.length === 0) return undefined;
    }
  }

  /** Finds the first row whose events differ from those that it recorded. */
  async #unrecorded(live: number, through: number): Promise<Broken> {
    for (let after = Number.MIN_SAFE_INTEGER; ;) {
      const counted = await this.#reader.recorded(after);
      for (const [seq, count, evidence] of counted) {
        const effects = evidence === undefined ? [] : (readEffects(evidence) ?? []);
        const recorded = effects.filter(isEvent).length;
        const problem = "the counters have an event that its receipt did not record";
        if (recorded !== count) return { seq, problem, expected: String(recorded), found: String(count) };
        after = seq;
      }
      if (counted.length === 0) break;
    }
    const problem = "the counters do not have the events that the receipts recorded";
    return { seq: through, problem, expected: String(this.#events), found: String(live) };
  }
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function keyOf([counter, key, at, seq]: readonly unknown[]): EventKey {
  return [Number(counter), Buffer.from(key as Uint8Array), Number(at), Number(seq)];
}

/** Adds an amount. A total that was changed by hand may not be a decimal. */
function sum(before: string | undefined, amount: string): string {
  if (before === undefined) return amount;
  const areDecimals = [before, amount].every((text) => /^[0-9]+(?:\.[0-9]+)?$/.test(text));
  return areDecimals ? addDecimals(before, amount) : `${before} and ${amount}`;
}

function beyond(seq: number): Broken {
  const problem = "the counters have an event of a row that does not exist: rows are missing from the end";
  return { seq, problem, expected: `row ${seq}`, found: "no row" };
}
