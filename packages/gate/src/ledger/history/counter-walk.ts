import { hash } from "node:crypto";
import { addDecimals } from "../../../../core/src/wire/mod.ts";
import type { Mistake } from "../../../../core/src/record/entry/row.ts";
import { parseLeaf } from "../../../../core/src/record/entry/leaf.ts";
import { readEffects, type RecordedEffect } from "../../../../core/src/record/entry/verifier.ts";
import { isEvent } from "../../../../core/src/record/entry/outcome-rows.ts";
import { foldChecksum } from "../store/checksums.ts";
import {
  keyIn,
  keyText,
  type Counters,
  type Entry,
  type EntryKey,
  type EntryRange,
  type Tables,
} from "../store/tables.ts";
import { reportDamageAt } from "./findings.ts";
import { pagesOf, rowsAt } from "./table-reads.ts";

/** An event that a row recorded. */
export interface RecordedEvent extends RecordedEffect {
  readonly seq: number;
  readonly at: number;
}

/** The number of events that are read at once, which takes a few milliseconds. */
const sliceEvents = 16_384;

/** The number of contracts that are read at once. */
const sliceContracts = 16;

/** The most totals that a walk keeps in memory, however many keys there are. */
const totalsMax = 8192;

/** Verifies the counters during a walk: first each event that a row recorded, then data that no row refers to. */
export class CounterWalk {
  readonly #tables: Tables;
  #counters: Counters = { kept: [], damaged: undefined };
  /** Totals by counter and key, as computed by the walk. They save half of the look-ups. */
  readonly #totals = new Map<string, string>();
  /** True if the walk started at row 1 and still has every total, so that a key without a total is new. */
  #sawAll: boolean;
  #events = 0;

  constructor(tables: Tables, isWhole: boolean) {
    this.#tables = tables;
    this.#sawAll = isWhole;
  }

  /** Checks that the stored events are those of the rows. */
  async step(events: readonly RecordedEvent[], counters: Counters | undefined): Promise<Mistake | undefined> {
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
  findDamage(seq: number): Mistake | undefined {
    const { damaged } = this.#counters;
    if (damaged === undefined) return undefined;
    const problem = `the description of the counter ${damaged.id} was changed`;
    return { seq, problem, expected: "the description that was sealed", found: "another" };
  }

  /**
   * Checks that each event's total is the total before it plus the amount in the receipt. The total before it comes
   * from the walk, or from the store if the walk did not see all events.
   */
  async #eventsOf(events: readonly RecordedEvent[]): Promise<Mistake | undefined> {
    const counters = new Map(this.#counters.kept.map((counter) => [counter.digest, counter]));
    const met = new Set<string>();
    const lookups = events.map(({ counter, key, at, seq }) => {
      const { id = -1, folded = 0 } = counters.get(counter) ?? {};
      const of = `${counter} ${key}`;
      const hasFolds = folded > 0;
      const withBefore = hasFolds || !(this.#sawAll || this.#totals.has(of) || met.has(of));
      met.add(of);
      return { id, of, hasFolds, withBefore, key: [id, key, at, seq] as const };
    });
    const keys = lookups.map(({ key }) => key);
    const positions = lookups.filter(({ withBefore }) => withBefore).map(({ key }) => key);
    const rowOf = ([, , , seq]: (typeof keys)[number]): number => seq;
    const [stored, totals] = await Promise.all([
      reportDamageAt(keys.map(rowOf), () => this.#tables.at("effects", keys, ["total", "folded"])),
      reportDamageAt(positions.map(rowOf), () => this.#tables.totals(positions)),
    ]);
    let next = 0;
    for (const [index, { id, of, hasFolds, withBefore }] of lookups.entries()) {
      const { amount, seq } = events[index] as RecordedEvent;
      const { total: kept, folded } = stored[index] ?? {};
      const total = folded === null ? kept : undefined;
      const before = withBefore ? totals[next++] : this.#totals.get(of);
      if (this.#counters.damaged?.id === id) return this.findDamage(seq);
      const expected = sum(before, amount);
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
  rest(through: number): Promise<Mistake | undefined> {
    return reportDamageAt(through + 1, async () => {
      const folded = new Map<number, number>();
      let live = 0;
      let after: EntryKey | undefined;
      do {
        const tally = await this.#tables.tally(after, through);
        if (tally.beyond > 0) return beyond(tally.last + 1);
        live += tally.live;
        const broken = tally.folded === 0 ? undefined : await this.#folds({ after, through: tally.to }, folded);
        if (broken !== undefined) return broken;
        after = tally.to;
      } while (after !== undefined);
      if (live !== this.#events) return this.#findUnrecordedEvent(live, through);
      return (await this.#foldedCounts(folded, through)) ?? (await this.#unnamedContract(through));
    });
  }

  /** An event of a fold protects itself: no row recorded it under its counter. @param counts of each counter */
  async #folds(range: Partial<EntryRange>, counts: Map<number, number>): Promise<Mistake | undefined> {
    for await (const events of pagesOf(this.#tables, "effects", range)) {
      const [first] = events;
      const [[total], { kept }] = await Promise.all([
        this.#tables.totals(first === undefined ? [] : [keyIn("effects", first)]),
        this.#tables.counters(),
      ]);
      const digests = new Map(kept.map(({ id, digest }) => [id, digest]));
      for (const [index, { counter, key, at, seq, ...event }] of events.entries()) {
        const last = events[index - 1];
        const before = index === 0 ? total : last?.counter === counter && last.key === key ? last.total : undefined;
        if (event.folded === null) continue;
        const of = { counter: digests.get(counter) ?? "", key, at, seq };
        const expected = foldChecksum({ ...of, total: event.total, before });
        const problem = "an event that was folded into a counter was changed";
        if (event.folded !== expected) return { seq, problem, expected, found: event.folded };
        counts.set(counter, (counts.get(counter) ?? 0) + 1);
      }
    }
    return undefined;
  }

  /**
   * Compares the number of folded events with the counters before and after the walk, because a fold may be running.
   */
  async #foldedCounts(counts: ReadonlyMap<number, number>, through: number): Promise<Mistake | undefined> {
    const later = new Map((await this.#tables.counters()).kept.map(({ digest, folded }) => [digest, folded]));
    for (const { id, digest, folded } of this.#counters.kept) {
      const found = counts.get(id) ?? 0;
      const problem = `the counter ${id} does not have the events that were folded into it`;
      if (found < folded || found > (later.get(digest) ?? folded))
        return { seq: through, problem, expected: String(folded), found: String(found) };
    }
    return undefined;
  }

  async #unnamedContract(through: number): Promise<Mistake | undefined> {
    for await (const contracts of pagesOf(this.#tables, "contracts", { limit: sliceContracts })) {
      for (const { digest, text } of contracts) {
        const found = hash("sha256", text, "hex");
        const problem = "the text of a contract that no row names yet was changed";
        if (found !== digest) return { seq: through + 1, problem, expected: digest, found };
      }
    }
    return undefined;
  }

  /** Finds the first row with an event that it did not record. */
  async #findUnrecordedEvent(live: number, through: number): Promise<Mistake> {
    const ids = new Map(this.#counters.kept.map(({ digest, id }) => [digest, id]));
    let first: Entry<"effects"> | undefined;
    for await (const events of pagesOf(this.#tables, "effects")) {
      const rows = [...new Set(events.map(({ seq }) => seq))];
      const found = await rowsAt(this.#tables, rows);
      const recorded = new Set(
        found.flatMap(({ evidence, leaf, seq }) =>
          (readEffects(evidence) ?? [])
            .filter(isEvent)
            .map(({ counter, key }) => keyText([ids.get(counter) ?? -1, key, parseLeaf(leaf)?.at ?? -1, seq])),
        ),
      );
      for (const event of events.filter(({ seq }) => seq <= through)) {
        const isStray = event.folded === null && !recorded.has(keyText(keyIn("effects", event)));
        if (isStray && event.seq < (first?.seq ?? Infinity)) first = event;
      }
    }
    if (first !== undefined) {
      const problem = "the counters have an event that its receipt did not record";
      return { seq: first.seq, problem, expected: "no such event", found: first.total };
    }
    const problem = "the counters do not have the events that the receipts recorded";
    return { seq: through, problem, expected: String(this.#events), found: String(live) };
  }
}

/** Adds an amount. A total that was changed by hand may not be a decimal, and in a damaged file not even a text. */
function sum(before: string | undefined, amount: string): string {
  if (before === undefined) return amount;
  const isDecimal = (text: unknown): boolean => typeof text === "string" && /^[0-9]+(?:\.[0-9]+)?$/.test(text);
  const areDecimals = [before, amount].every(isDecimal);
  return areDecimals ? addDecimals(before, amount) : `${before} and ${amount}`;
}

function beyond(seq: number): Mistake {
  const problem = "the counters have an event of a row that does not exist: rows are missing from the end";
  return { seq, problem, expected: `row ${seq}`, found: "no row" };
}
