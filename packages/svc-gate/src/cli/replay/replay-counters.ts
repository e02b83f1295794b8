import { hash } from "node:crypto";
import type { PolicySet, Lookup, CounterUpdate } from "../../contract/mod.ts";
import {
  countersOf,
  isSettled,
  placedOutcome,
  recountRow,
  settlementOf,
  type OwnedCounter,
  type PlacedOutcome,
} from "../../gate/mod.ts";
import { readResume } from "../../ledger/mod.ts";
import { askOf, endedAsk, endedBy, type Leaf, type RowRange } from "../../ledger/entry/mod.ts";
import { InMemoryCounters } from "../in-memory-counters.ts";
import type { History, RecordedRow } from "../history.ts";
import { hasErasedPart, movedCounters, readLeaf, recordedAt } from "./recorded.ts";

/** The longest time in which a contract lets an outcome be reported. */
const outcomeMsMax = 90 * 86_400_000;
const callsAtFirst = 4096;

interface CalledBefore {
  readonly at: number;
  updates: readonly CounterUpdate[];
}

/** How far the history of a counter is known. */
interface Kept {
  /** The last row that it counted before it went out of force; undefined while it is in force. */
  through: number | undefined;
  /**
   * Milliseconds: a window that includes this time was incomplete in the original decision too; -1 if nothing is
   * missing.
   */
  unknownThrough: number;
  /** Milliseconds: a window that includes this time was complete then, but is incomplete now. */
  lackingThrough: number;
}

/**
 * Counters while a history is decided again, as the ledger kept them at that time. A counter that comes into force is
 * folded from the rows before. A counter that goes out of force keeps its value.
 */
export class ReplayCounters {
  readonly #counters = new InMemoryCounters();
  readonly #kept = new Map<string, Kept>();
  readonly #history: History;
  /** By the counter's digest: the last row that reset it. Rows before it do not count. */
  readonly #resets = new Map<string, Pick<Leaf, "at" | "seq">>();
  /** The rows whose approvals are open: only they hold amounts. */
  readonly #open = new Set<number>();
  /** What calls added to the counters that their outcomes may change, by row. */
  readonly #calls = new Map<number, CalledBefore>();
  /** The outcomes of calls, by their rows. */
  readonly #outcomes = new Map<number, PlacedOutcome>();
  #forgetAt = callsAtFirst;
  /** Milliseconds: the time of a loss after which no check was answered yet; -1 if there is none. */
  #freshLoss = -1;

  constructor(history: History) {
    this.#history = history;
  }

  /** Updates the set of counters to the contract that is in force from a row on. */
  async align(policySet: PolicySet, from: number): Promise<void> {
    const owned = countersOf(policySet);
    const inForce = new Set(owned.map(({ counter }) => counter.identity));
    for (const [identity, kept] of this.#kept) if (!inForce.has(identity)) kept.through ??= from - 1;
    const missing = owned.filter(({ counter }) => {
      const kept = this.#kept.get(counter.identity);
      return kept === undefined || kept.through !== undefined;
    });
    const isFolded = ({ identity, startsEmpty }: OwnedCounter["counter"]): boolean =>
      !startsEmpty || this.#kept.has(identity);
    const folded = missing.filter(({ counter }) => isFolded(counter) && this.#next(counter.identity) < from);
    if (folded.length > 0) await this.#fold(folded, from);
    for (const { counter } of missing)
      this.#kept.set(counter.identity, {
        through: undefined,
        unknownThrough:
          this.#kept.get(counter.identity)?.unknownThrough ??
          (counter.startsEmpty ? this.#lossOf(counter.identity) : -1),
        lackingThrough: this.#lacking(counter.identity),
      });
  }

  #next(identity: string): number {
    const reset = this.#resets.get(counterDigest(identity))?.seq ?? 0;
    return Math.max(this.#kept.get(identity)?.through ?? 0, reset) + 1;
  }

  /** For a counter that starts empty: the loss after which events may be missing, unless it was reset since then. */
  #lossOf(identity: string): number {
    const reset = this.#resets.get(counterDigest(identity))?.at ?? -1;
    return reset < this.#freshLoss ? this.#freshLoss : -1;
  }

  #lacking(identity: string): number {
    return this.#kept.get(identity)?.lackingThrough ?? -1;
  }

  /** One pass over the older rows for all of them. */
  async #fold(counters: readonly OwnedCounter[], before: number): Promise<void> {
    for await (const slice of this.#history.scan(
      Math.min(...counters.map(({ counter }) => this.#next(counter.identity))),
    )) {
      for (const row of slice) {
        const { seq, evidence } = row;
        if (seq >= before) return;
        const read = readLeaf(row);
        const leaf = typeof read === "string" ? undefined : read;
        for (const owned of counters) {
          if (seq < this.#next(owned.counter.identity)) continue;
          const updates = leaf === undefined ? undefined : recountRow(owned, leaf, evidence);
          if (updates === undefined)
            this.#lacks(owned.counter.identity, leaf?.at ?? recordedAt(row.leaf), hasErasedPart(evidence));
          else {
            this.add(this.#open.has(seq) ? updates : updates.filter(({ held }) => held !== true), leaf?.at ?? 0, seq);
            // Its approval may have been open when the counter was folded.
            if (hasErasedPart(evidence) && updates.some(({ held }) => held === true))
              this.#lacks(owned.counter.identity, leaf?.at ?? 0, true);
          }
          if (leaf !== undefined && isSettled(owned.counter)) this.#foldSettled(owned, leaf, evidence);
        }
      }
    }
  }

  /** Folds an older row into a counter that outcomes may change: what a call added, or what an outcome did. */
  #foldSettled(owned: OwnedCounter, leaf: Leaf, evidence: string): void {
    if (leaf.kind === "check") this.called(recountRow(owned, leaf, evidence, true) ?? [], leaf.at, leaf.seq);
    const outcome = placedOutcome(leaf, evidence);
    if (outcome === undefined) return;
    if (!this.#settle(outcome, (identity) => identity === owned.counter.identity))
      this.#lacks(owned.counter.identity, leaf.at, true);
  }

  /**
   * An erased part may have been present when the counter was folded, so the counter was not necessarily unknown then.
   */
  #lacks(identity: string, at: number, isErased: boolean): void {
    const { through = 0, unknownThrough = -1, lackingThrough = -1 } = this.#kept.get(identity) ?? {};
    const [unknown, lacking] = isErased ? [-1, at] : [at, -1];
    this.#kept.set(identity, {
      through,
      unknownThrough: Math.max(unknownThrough, unknown),
      lackingThrough: Math.max(lackingThrough, lacking),
    });
  }

  /**
   * A row that cannot be decided again leaves counters in force without its updates.
   *
   * @param moved the digests of the counters that it updated; undefined if they cannot be read, so it may be any
   *   counter
   */
  skip(at: number, moved: ReadonlySet<string> | undefined): void {
    for (const [identity, kept] of this.#kept) {
      if (kept.through === undefined && moved?.has(counterDigest(identity)) !== false) kept.lackingThrough = at;
    }
  }

  /** @param own the row of the call's own approval, whose amounts do not count against the call */
  value({ counter, key, after }: Lookup, own: number | undefined): string | undefined {
    const { unknownThrough = -1 } = this.#kept.get(counter.identity) ?? {};
    return after < unknownThrough ? undefined : this.#counters.value({ counter, key, after }, own);
  }

  /** Applies a person's act. After one that records a loss, counters are unknown. A reset counter counts from zero. */
  act(leaf: Leaf, evidence: string): void {
    for (const ended of endedBy(leaf, evidence)) this.#release(ended);
    const outcome = placedOutcome(leaf, evidence);
    if (outcome !== undefined) {
      this.#outcomes.set(outcome.seq, outcome);
      const isInForce = (identity: string): boolean => this.#kept.get(identity)?.through === undefined;
      if (!this.#settle(outcome, isInForce)) this.skip(leaf.at, movedCounters({ seq: leaf.seq, leaf: "", evidence }));
    }
    const row = readResume(leaf, evidence);
    if (row === undefined) return;
    if (row.lost !== undefined) this.#freshLoss = leaf.at;
    for (const digest of row.reset.keys()) this.#resets.set(digest, leaf);
    for (const [identity, kept] of this.#kept) {
      if (row.reset.has(counterDigest(identity))) {
        this.#counters.reset(identity);
        for (const call of this.#calls.values())
          call.updates = call.updates.filter(({ counter }) => counter.identity !== identity);
        kept.unknownThrough = -1;
        kept.lackingThrough = -1;
      } else if (row.lost !== undefined) kept.unknownThrough = Math.max(kept.unknownThrough, leaf.at);
    }
  }

  /** A check was passed: what the approval holds that it used or replaced counts no more. */
  passed({ seq, evidence }: RecordedRow): void {
    const asked = askOf(evidence) ?? {};
    const ended = endedAsk(asked);
    if (ended !== undefined) this.#release([ended, ended]);
    if (asked.how === "opened") this.#open.add(seq);
    this.answered();
  }

  #release([from, to]: RowRange): void {
    for (const row of this.#open) if (row >= from && row <= to) this.#open.delete(row);
    this.#counters.release([from, to]);
  }

  /**
   * Notes what a call added to the counters that its outcome may change.
   *
   * @param updates as if its outcome were `done`
   */
  called(updates: readonly CounterUpdate[], at: number, seq: number): void {
    const settled = updates.filter(({ counter }) => isSettled(counter));
    if (settled.length === 0) return;
    const call = this.#calls.get(seq);
    if (call !== undefined) call.updates = [...call.updates, ...settled];
    else this.#calls.set(seq, { at, updates: settled });
    if (this.#calls.size > this.#forgetAt) this.#forget(at);
  }

  /** Forgets calls that can have no outcome any more. It runs so seldom that the cost for each call is constant. */
  #forget(now: number): void {
    for (const notes of [this.#calls, this.#outcomes])
      for (const [seq, { at }] of notes) if (at < now - outcomeMsMax) notes.delete(seq);
    this.#forgetAt = Math.max(callsAtFirst, this.#calls.size * 2);
  }

  /** Applies an outcome to some counters. @returns false if its call, or an earlier outcome of it, cannot be read */
  #settle(outcome: PlacedOutcome, isOne: (identity: string) => boolean): boolean {
    const call = this.#calls.get(outcome.row);
    const before = outcome.before.map((seq) => this.#outcomes.get(seq)).filter((each) => each !== undefined);
    if (before.length < outcome.before.length) return false;
    for (const updates of Map.groupBy(call?.updates ?? [], ({ counter }) => counter.identity).values()) {
      const [first] = updates;
      if (call === undefined || first === undefined || !isOne(first.counter.identity)) continue;
      const { counter } = first;
      const called = updates.map(({ key, amount }) => ({ key, amount, seq: outcome.row, at: call.at }));
      const { added, taken } = settlementOf(counter, called, [...before, outcome]);
      for (const { key, amount } of added) this.#counters.add({ counter, key, amount }, outcome.at);
      for (const { key, amount, at } of taken) this.#counters.take({ counter, key, amount }, at);
    }
    return call !== undefined;
  }

  /** A check was passed: a counter that starts empty after it has lost nothing. */
  answered(): void {
    this.#freshLoss = -1;
  }

  /** Does the counter depend on a row that can no longer be read? */
  isLacking({ counter, after }: Lookup): boolean {
    return after < this.#lacking(counter.identity);
  }

  add(updates: readonly CounterUpdate[], at: number, seq: number): void {
    for (const move of updates) if (move.held !== true) this.#counters.add(move, at);
    this.#counters.hold(
      seq,
      updates.filter(({ held }) => held === true),
      at,
    );
  }
}

/** The digest with which receipts name a counter. */
export function counterDigest(identity: string): string {
  const known = digests.get(identity);
  if (known !== undefined) return known;
  const digest = hash("sha256", identity, "hex");
  digests.set(identity, digest);
  return digest;
}

const digests = new Map<string, string>();
