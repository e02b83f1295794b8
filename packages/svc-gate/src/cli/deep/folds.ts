import { countersOf, foldOutcomes, isSettled, recountRow, type OwnedCounter } from "../../gate/mod.ts";
import type { EventPosition, KeptCounter, LedgerHistory } from "../../ledger/mod.ts";
import type { PolicySet } from "../../contract/mod.ts";
import { outcomeRows } from "../../ledger/entry/mod.ts";
import { counterDigest } from "../replay/replay-counters.ts";
import { readLeaf } from "../replay/recorded.ts";
import type { WrongCounter } from "./found.ts";
import { between, placesOf } from "./totals.ts";

/** How far a counter was folded again. */
interface Refolded {
  owned: OwnedCounter;
  /** The last row that it counted before it left; undefined while it is in force. */
  through: number | undefined;
  /** Events that were folded into it and are in the ledger. */
  found: number;
  /** Could every row that it was folded from be counted? */
  isSure: boolean;
  /** Was a row that cannot be counted perhaps counted by an earlier folding? */
  isShort: boolean;
}

/** The result of folding the counters again. */
export interface FoldsFound {
  /** Counters that the ledger keeps. */
  readonly kept: number;
  /** Events of older rows that were found again in them. */
  readonly events: number;
  /** Counters that depend on rows which cannot be counted again, or whose contract no row names yet. */
  readonly unverifiable: number;
  readonly firstWrong: WrongCounter | undefined;
}

/**
 * Finds again the events that no receipt commits to. They come from rows older than the counter, and were folded into
 * it when its contract came into force. A row's own updates are in its evidence; the walk over the chain compared those
 * with the counters.
 *
 * Memory grows only with the number of counters: events are looked up in the ledger, in slices.
 */
export class Folds {
  readonly #ledger: LedgerHistory;
  readonly #kept: ReadonlyMap<string, KeptCounter>;
  readonly #folds = new Map<string, Refolded>();
  #firstWrong: WrongCounter | undefined;

  constructor(ledger: LedgerHistory) {
    this.#ledger = ledger;
    this.#kept = new Map(ledger.kept.map((counter) => [counter.digest, counter]));
  }

  /** Records that a contract is in force from a row on: its new counters are folded from the rows before. */
  async align(policySet: PolicySet, from: number): Promise<void> {
    const owned = countersOf(policySet);
    const inForce = new Set(owned.map(({ counter }) => counter.identity));
    for (const [identity, fold] of this.#folds) if (!inForce.has(identity)) fold.through ??= from - 1;
    const coming = owned.filter(({ counter }) => {
      const known = this.#folds.get(counter.identity);
      return known === undefined || known.through !== undefined;
    });
    for (const each of coming) await this.#fold(each, from - 1);
  }

  /** The contract of some rows is unknown: from here on, the folds of all counters are uncertain. */
  lose(): void {
    for (const fold of this.#folds.values()) fold.isSure = false;
  }

  /**
   * @param last the last row that was examined
   * @param resets by the counter's digest: the time through which rows have reset it
   */
  async end(last: number, resets: ReadonlyMap<string, number>): Promise<FoldsFound> {
    // A counter that came into force again since then is folded beyond the rows of its contract.
    for (const { owned, through } of this.#folds.values()) {
      const kept = this.#keptOf(owned);
      const upTo = kept?.through === null ? last : Math.min(last, kept?.through ?? 0);
      if (through !== undefined && upTo > through) await this.#fold(owned, upTo);
    }
    const later = new Map((await this.#ledger.counters()).map((counter) => [counter.digest, counter]));
    let [events, unverifiable] = [0, 0];
    for (const [identity, { owned, found, isSure, isShort }] of this.#folds) {
      const kept = this.#keptOf(owned);
      events += found;
      const digest = counterDigest(identity);
      const now = later.get(digest);
      const isMoving = kept?.folded !== now?.folded || kept?.resetThrough !== now?.resetThrough;
      const resetThrough = resets.get(digest) ?? -1;
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
    const named = new Set([...this.#folds.keys()].map(counterDigest));
    unverifiable += [...this.#kept.values()].filter(({ digest, folded }) => folded > 0 && !named.has(digest)).length;
    return { kept: this.#kept.size, events, unverifiable, firstWrong: this.#firstWrong };
  }

  #keptOf({ counter }: OwnedCounter): KeptCounter | undefined {
    return this.#kept.get(counterDigest(counter.identity));
  }

  async #fold(owned: OwnedCounter, upTo: number): Promise<void> {
    const { identity } = owned.counter;
    const known = this.#folds.get(identity);
    const fold = known ?? { owned, through: 0, found: 0, isSure: true, isShort: false };
    const isFirst = known === undefined;
    this.#folds.set(identity, fold);
    const from = (fold.through ?? 0) + 1;
    fold.owned = owned;
    fold.through = undefined;
    // A counter that began empty has no event of older rows, unless the ledger had it before any row named it.
    if (isFirst && owned.counter.startsEmpty && (this.#keptOf(owned)?.folded ?? 0) === 0) return;
    if (from > upTo) return;
    for await (const slice of this.#ledger.scan(from)) {
      const rows = slice.filter(({ seq }) => seq <= upTo);
      await this.#count(fold, rows, isFirst && owned.counter.startsEmpty);
      if (rows.length < slice.length) return;
    }
  }

  /** @param mayLack the counter began at one of these rows, and it is unknown at which one */
  async #count(fold: Refolded, rows: Rows, mayLack: boolean): Promise<void> {
    const { owned } = fold;
    const counter = counterDigest(owned.counter.identity);
    const { unknownThrough = -1, resetThrough = -1 } = this.#keptOf(owned) ?? {};
    // The row that reset it may record a loss as well, which then is one millisecond later.
    const coveredThrough = Math.max(unknownThrough, resetThrough + 1);
    const events: (EventPosition & { readonly amount: string })[] = [];
    const taken: (EventPosition & { readonly amount: string; readonly takenBy: number })[] = [];
    for (const row of rows) {
      const leaf = readLeaf(row);
      const updates = typeof leaf === "string" ? undefined : recountRow(owned, leaf, row.evidence);
      if (typeof leaf === "string" || updates === undefined) {
        if (typeof leaf === "string" || leaf.at > coveredThrough) fold.isSure = false;
        fold.isShort = true;
        continue;
      }
      const { at, seq } = leaf;
      for (const { key, amount, held } of updates)
        if (held !== true) events.push({ counter, key: this.#ledger.keyDigest(key), at, seq, amount });
    }
    if (isSettled(owned.counter)) {
      for (const { outcome, settlement } of await foldOutcomes(owned, rows, this.#ledger, {
        counter,
        through: Number.MAX_SAFE_INTEGER,
      })) {
        const isOlder = outcome.rules !== outcomeRows.outcomeRules;
        if (isOlder || (settlement === undefined && outcome.at > coveredThrough)) fold.isSure = false;
        if (settlement === undefined) fold.isShort = true;
        if (isOlder) continue;
        const named = ({ key }: { readonly key: string }): string => this.#ledger.keyDigest(key);
        const { seq, at } = outcome;
        for (const each of settlement?.added ?? []) events.push({ ...each, counter, key: named(each), at, seq });
        for (const each of settlement?.taken ?? []) taken.push({ ...each, counter, key: named(each), takenBy: seq });
      }
    }
    await this.#checkTaken(owned, taken);
    const totals = await this.#ledger.totals(events.flatMap(placesOf));
    for (const [index, { at, seq, amount }] of events.entries()) {
      const found = between(totals[index * 2], totals[index * 2 + 1]);
      if (found !== undefined && between(amount, found) === "0") fold.found += 1;
      else if (found !== "0" || !(mayLack || at <= coveredThrough))
        this.#wrong(owned, {
          seq,
          problem: "an event that was folded into a counter differs from its receipt",
          expected: amount,
          found: found ?? "no such event",
        });
    }
  }

  /** An event that an outcome took back must be taken back in the ledger, by that outcome. */
  async #checkTaken(
    owned: OwnedCounter,
    events: readonly (EventPosition & { readonly amount: string; readonly takenBy: number })[],
  ): Promise<void> {
    if (events.length === 0) return;
    const asked = events.flatMap(({ counter, key, at, takenBy }) => {
      const query = { counter, key, after: at - 1 };
      return [
        { ...query, before: takenBy },
        { ...query, before: takenBy + 1 },
      ];
    });
    const found = await this.#ledger.taken(asked);
    for (const [index, { amount, takenBy }] of events.entries()) {
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

  #wrong({ counter }: OwnedCounter, wrong: Omit<WrongCounter, "counter">): void {
    if (this.#firstWrong === undefined || wrong.seq < this.#firstWrong.seq)
      this.#firstWrong = { counter: counter.name, ...wrong };
  }
}

type Rows = readonly Parameters<typeof readLeaf>[0][];
